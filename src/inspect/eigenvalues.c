/* Eigenvalues: to Hessenberg form by elimination, then QR steps with Wilkinson's shift.
 *
 * All in complex numbers, so that a step has one shift and a pair of conjugate values is
 * nothing special. Only values are wanted, so a step works on the block that is not yet
 * split off, and no vectors are kept. */
#include "inspect/eigenvalues.h"

#include <math.h>

typedef att_complex z;

static z plus(z a, z b) { return (z){a.re + b.re, a.im + b.im}; }
static z minus(z a, z b) { return (z){a.re - b.re, a.im - b.im}; }
static z times(z a, z b) { return (z){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static z conjugate(z a) { return (z){a.re, -a.im}; }
static z scaled(z a, double by) { return (z){a.re * by, a.im * by}; }

double att_complex_size(att_complex a) {
  const double x = fabs(a.re), y = fabs(a.im), most = x > y ? x : y, least = x > y ? y : x;
  return most > 0 ? most * sqrt(1 + least / most * (least / most)) : most;
}

static double size(z a) { return att_complex_size(a); }

/* The root with a real part that is not negative. */
static z root(z a) {
  const double r = size(a), re = sqrt((r + fabs(a.re)) / 2);
  if (re == 0) return (z){0, 0};
  const double im = fabs(a.im) / (2 * re);
  const z out = a.re >= 0 ? (z){re, im} : (z){im, re};
  return a.im < 0 ? conjugate(out) : out;
}

/* ---- Hessenberg form: zeros below the first diagonal under the main one ---- */

static void swap(z *a, z *b) {
  const z kept = *a;
  *a = *b, *b = kept;
}

/* Row i loses `by` times row m, column m gains as much of column i: the values stay. */
static void eliminate(z *h, int64_t n, int64_t i, int64_t m, double by) {
  for (int64_t k = 0; k < n; k++) h[i * n + k].re -= by * h[m * n + k].re;
  for (int64_t k = 0; k < n; k++) h[k * n + m].re += by * h[k * n + i].re;
}

static void to_hessenberg(z *h, int64_t n) {
  for (int64_t m = 1; m + 1 < n; m++) {
    int64_t pivot = m;
    for (int64_t i = m + 1; i < n; i++)
      if (fabs(h[i * n + m - 1].re) > fabs(h[pivot * n + m - 1].re)) pivot = i;
    if (h[pivot * n + m - 1].re == 0) continue;
    for (int64_t k = 0; pivot != m && k < n; k++) swap(&h[pivot * n + k], &h[m * n + k]);
    for (int64_t k = 0; pivot != m && k < n; k++) swap(&h[k * n + pivot], &h[k * n + m]);
    for (int64_t i = m + 1; i < n; i++) {
      const double by = h[i * n + m - 1].re / h[m * n + m - 1].re;
      if (by != 0) eliminate(h, n, i, m, by);
      h[i * n + m - 1].re = 0;
    }
  }
}

/* ---- steps on the block low … high ---- */

/* The eigenvalue of the last two by two that is nearer to the last number. */
static z shift_of(const z *h, int64_t n, int64_t high) {
  const z a = h[(high - 1) * n + high - 1], b = h[(high - 1) * n + high];
  const z c = h[high * n + high - 1], d = h[high * n + high];
  const z half = scaled(minus(a, d), 0.5), middle = scaled(plus(a, d), 0.5);
  const z r = root(plus(times(half, half), times(b, c)));
  const z one = plus(middle, r), other = minus(middle, r);
  return size(minus(one, d)) < size(minus(other, d)) ? one : other;
}

/* x and y of two rows, or columns, turned: x' = c x + s y, y' = -s* x + c y. */
static void turn(z *x, z *y, double c, z s) {
  const z kept = *x;
  *x = plus(scaled(kept, c), times(s, *y));
  *y = minus(scaled(*y, c), times(conjugate(s), kept));
}

/* h = R Q + shift of h - shift = Q R. A rotation is applied from the right as soon as the
 * next one has been made, which needs no memory for them. */
static void step(z *h, int64_t n, int64_t low, int64_t high, z shift) {
  double last_c = 1;
  z last_s = {0, 0};
  for (int64_t i = low; i <= high; i++) h[i * n + i] = minus(h[i * n + i], shift);
  for (int64_t k = low; k <= high; k++) {
    double c = 1;
    z s = {0, 0};
    if (k < high) {
      const z a = h[k * n + k], b = h[(k + 1) * n + k];
      const double r = size((z){size(a), size(b)});
      if (r > 0 && size(a) > 0) {
        c = size(a) / r;
        s = scaled(times(a, conjugate(b)), 1 / (size(a) * r));
      } else if (r > 0) {
        c = 0, s = scaled(conjugate(b), 1 / r);
      }
      for (int64_t j = k; j <= high; j++) turn(&h[k * n + j], &h[(k + 1) * n + j], c, s);
    }
    for (int64_t i = low; k > low && i <= k; i++)
      turn(&h[i * n + k - 1], &h[i * n + k], last_c, conjugate(last_s));
    last_c = c, last_s = s;
  }
  for (int64_t i = low; i <= high; i++) h[i * n + i] = plus(h[i * n + i], shift);
}

/* The first row of the last block: what is above is as good as split off. */
static int64_t split(z *h, int64_t n, int64_t high) {
  int64_t low = high;
  for (; low > 0; low--) {
    const double around = size(h[(low - 1) * n + low - 1]) + size(h[low * n + low]);
    if (size(h[low * n + low - 1]) <= 0x1p-52 * around) break;
  }
  if (low > 0) h[low * n + low - 1] = (z){0, 0};
  return low;
}

att_status att_eigenvalues(att_complex *out, const double *a, int64_t n, att_complex *scratch) {
  enum { MOST_STEPS = 100, UNUSUAL = 12 };
  z *h = scratch;
  for (int64_t i = 0; i < n * n; i++) h[i] = (z){a[i], 0};
  to_hessenberg(h, n);
  int steps = 0;
  for (int64_t high = n - 1; high >= 0;) {
    const int64_t low = split(h, n, high);
    if (low == high) {
      out[high] = h[high * n + high];
      high--, steps = 0;
      continue;
    }
    if (++steps > MOST_STEPS)
      return att_fail(ATT_DIVERGED, "%lld eigenvalues of %lld are not found", (long long)high + 1,
                      (long long)n);
    z shift = shift_of(h, n, high); /* one out of the way ends a circle of steps */
    if (steps % UNUSUAL == 0) shift = plus(shift, (z){size(h[high * n + high - 1]), 0});
    step(h, n, low, high, shift);
  }
  return ATT_OK;
}
