/* sin and cos of float64, for every finite argument.
 *
 * x = q * pi/2 + r with |r| <= pi/4; q mod 4 picks sin or cos of r and a sign.
 * Up to 2^20 r comes from three parts of pi/2 (Cody and Waite). Beyond, and
 * where that subtraction cancels too far, x times 2/pi is taken in integers:
 * of the product's bits only those just around the binary point matter, so a
 * window of 7 words out of the 37 words of 2/pi is enough (Payne and Hanek).
 * Coefficients and words come from tools/approx/function64.py. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/double_double.h"
#include "kernels/function64.h"

typedef struct reduced {
  double2 r;
  int quadrant;
} reduced;

static const uint32_t TWO_OVER_PI[37] = {
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
    0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
    0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
    0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
    0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046};
enum { WINDOW = 7 };

/* sin r = r + r^3 S(r^2), cos r = 1 - r^2/2 + r^4 C(r^2) for |r| <= pi/4;
 * relative errors 2^-57.9 and 2^-64.0. */
static const double SIN_S[6] = {-0x1.5555555555548p-3,  0x1.111111110f7dp-7,
                                -0x1.a01a019bfdefcp-13, 0x1.71de3567d42aap-19,
                                -0x1.ae5e5a9241993p-26, 0x1.5d8fd1e417362p-33};
static const double COS_C[6] = {0x1.555555555554bp-5,  -0x1.6c16c16c14f91p-10,
                                0x1.a01a019c844eap-16, -0x1.27e4f7eac42ebp-22,
                                0x1.1ee9d7b47c3c9p-29, -0x1.8fa499cfde95ep-37};

static double horner6(const double c[6], double z) {
  return c[0] + z * (c[1] + z * (c[2] + z * (c[3] + z * (c[4] + z * c[5]))));
}

/* The 32 bits of a little-endian number that start at bit `from`. */
static uint32_t bits_at(const uint32_t *number, int from) {
  uint64_t pair = number[from / 32] | (uint64_t)number[from / 32 + 1] << 32;
  return (uint32_t)(pair >> from % 32);
}

/* product = m * (the WINDOW words of 2/pi from word `first`), little-endian. */
static void multiply_window(uint32_t product[WINDOW + 4], uint64_t m, int first) {
  uint64_t low = m & 0xffffffff, high = m >> 32, carry = 0;
  memset(product, 0, (WINDOW + 4) * sizeof *product);
  for (int i = 0; i < WINDOW; i++) {
    carry += product[i] + low * TWO_OVER_PI[first + WINDOW - 1 - i];
    product[i] = (uint32_t)carry;
    carry >>= 32;
  }
  product[WINDOW] = (uint32_t)carry;
  carry = 0;
  for (int i = 0; i < WINDOW; i++) {
    carry += product[i + 1] + high * TWO_OVER_PI[first + WINDOW - 1 - i];
    product[i + 1] = (uint32_t)carry;
    carry >>= 32;
  }
  product[WINDOW + 1] = (uint32_t)carry;
}

/* Reduction of x = m 2^e > 0 in integers. Words of 2/pi whose product with x is
 * a multiple of 4 do not change the quadrant and are left out in front. */
static reduced reduce_exactly(double x) {
  uint64_t m;
  memcpy(&m, &x, sizeof m);
  int e = (int)(m >> 52) - 1075;
  m = (m & 0x000fffffffffffff) | 0x0010000000000000;
  int first = e >= 34 ? (e - 2) / 32 : 0;
  uint32_t product[WINDOW + 4];
  multiply_window(product, m, first);

  /* 128 bits after the binary point; from 1/2 on count down from the next one. */
  int point = 32 * (first + WINDOW) - e;
  uint32_t quadrant = bits_at(product, point);
  uint32_t flip = bits_at(product, point - 32) >> 31 ? 0xffffffff : 0;
  double2 fraction = {0, 0};
  for (int word = 1; word <= 4; word++) {
    double part = bits_at(product, point - 32 * word) ^ flip;
    for (int k = 0; k < word; k++) part *= 0x1p-32;
    fraction = dd_add(fraction, (double2){part, 0});
  }
  if (flip) quadrant++, fraction = dd_neg(fraction);
  const double2 half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
  return (reduced){dd_mul(fraction, half_pi), (int)(quadrant & 3)};
}

/* Reduction of finite x. */
static reduced reduce(double x) {
  double a = fabs(x);
  reduced out;
  if (a < 0x1p20) {
    double n = (x * 0x1.45f306dc9c883p-1 + 0x1.8p52) - 0x1.8p52;
    double r = (x - n * 0x1.921fb544p+0);
    out.r = two_sum(r, -(n * 0x1.0b4611a6p-34));
    out.r = dd_add(out.r, (double2){-(n * 0x1.3198a2e037073p-69), 0});
    out.quadrant = (int)n & 3;
    if (n == 0 || fabs(out.r.hi) > 0x1p-20) return out;
  }
  out = reduce_exactly(a);
  if (x < 0) out.r = dd_neg(out.r), out.quadrant = -out.quadrant & 3;
  return out;
}

static double sin_reduced(double2 r) {
  double z = r.hi * r.hi;
  return r.hi + (r.lo * (1 - 0.5 * z) + r.hi * z * horner6(SIN_S, z));
}

/* 1 - z/2 is taken with its rounding error, which goes to the small terms. */
static double cos_reduced(double2 r) {
  double z = r.hi * r.hi;
  double2 head = fast_two_sum(1, -0.5 * z);
  return head.hi + (head.lo + (z * z * horner6(COS_C, z) - r.hi * r.lo));
}

/* sin(x + quarter_turns * pi/2). */
static double sine(double x, int quarter_turns) {
  if (!(fabs(x) < INFINITY)) return NAN;
  reduced at = reduce(x);
  int quadrant = (at.quadrant + quarter_turns) & 3;
  double y = quadrant & 1 ? cos_reduced(at.r) : sin_reduced(at.r);
  return quadrant & 2 ? -y : y;
}

double att_sin64(double x) { return x == 0 ? x : sine(x, 0); }

double att_cos64(double x) { return sine(x, 1); }
