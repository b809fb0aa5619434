/* textbook_attention.c — attention laid out like its equations, and slow.
 *
 *     S = Q Kᵀ / √d          how well each query fits each key
 *     P = softmax(S)         weights of a row sum to one; hidden keys get 0
 *     O = P V                each output mixes the values by its row of weights
 *
 *     head_h = attention(X W_Q^h, X W_K^h, X W_V^h)
 *     Y      = [head_1 … head_H] W_O
 *
 * A single file of C17 and libm, in double, without the library: read it beside
 * a textbook. tests/unit/test_textbook.c holds it against att_sdpa. As a program
 * it prints a small example; with TEXTBOOK_WITHOUT_MAIN it is only functions.
 *
 *     cc -std=c17 textbook_attention.c -lm && ./a.out
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* Matrices are row-major: element (i,j) of an [n,m] matrix lies at i·m + j. */
void textbook_scores(double *s, const double *q, const double *k, int t, int n, int d);
void textbook_causal_mask(double *s, int t, int n);
void textbook_softmax(double *p, const double *s, int t, int n);
void textbook_product(double *y, const double *a, const double *b, int t, int n, int m);
void textbook_attention(double *o, double *p, const double *q, const double *k, const double *v,
                        int t, int n, int d, int dv, bool causal);
void textbook_multi_head(double *y, const double *x, const double *const w[4], double *work, int n,
                         int c, int heads, bool causal);

/* S[i,j] = (Σ_c Q[i,c] K[j,c]) / √d */
void textbook_scores(double *s, const double *q, const double *k, int t, int n, int d) {
  for (int i = 0; i < t; i++)
    for (int j = 0; j < n; j++) {
      double dot = 0.0;
      for (int c = 0; c < d; c++) dot += q[i * d + c] * k[j * d + c];
      s[i * n + j] = dot / sqrt(d);
    }
}

/* S[i,j] = -∞ for j > i: nobody sees the future. With fewer queries than keys
 * the queries are the last ones. */
void textbook_causal_mask(double *s, int t, int n) {
  for (int i = 0; i < t; i++)
    for (int j = i + n - t + 1; j < n; j++) s[i * n + j] = -INFINITY;
}

/* P[i,j] = e^(S[i,j] - m_i) / Σ_j e^(S[i,j] - m_i). Taking the row's maximum m_i
 * away changes nothing but the size of the exponentials: none overflows. */
void textbook_softmax(double *p, const double *s, int t, int n) {
  for (int i = 0; i < t; i++) {
    double m = -INFINITY, sum = 0.0;
    for (int j = 0; j < n; j++) m = fmax(m, s[i * n + j]);
    for (int j = 0; j < n; j++) sum += p[i * n + j] = exp(s[i * n + j] - m);
    for (int j = 0; j < n; j++) p[i * n + j] /= sum;
  }
}

/* Y = A B, [t,m] = [t,n] · [n,m] */
void textbook_product(double *y, const double *a, const double *b, int t, int n, int m) {
  for (int i = 0; i < t; i++)
    for (int c = 0; c < m; c++) {
      y[i * m + c] = 0.0;
      for (int j = 0; j < n; j++) y[i * m + c] += a[i * n + j] * b[j * m + c];
    }
}

/* One head: Q [t,d], K [n,d], V [n,dv] to O [t,dv], its weights to P [t,n]. */
void textbook_attention(double *o, double *p, const double *q, const double *k, const double *v,
                        int t, int n, int d, int dv, bool causal) {
  textbook_scores(p, q, k, t, n, d);
  if (causal) textbook_causal_mask(p, t, n);
  textbook_softmax(p, p, t, n);
  textbook_product(o, p, v, t, n, dv);
}

/* Columns h·d … h·d+d-1 of an [n,c] matrix: what belongs to head h. */
static void take_head(double *head, const double *all, int n, int c, int h, int d) {
  for (int i = 0; i < n; i++)
    for (int e = 0; e < d; e++) head[i * d + e] = all[i * c + h * d + e];
}

static void put_head(double *all, const double *head, int n, int c, int h, int d) {
  for (int i = 0; i < n; i++)
    for (int e = 0; e < d; e++) all[i * c + h * d + e] = head[i * d + e];
}

/* Self-attention of n positions of width c: w holds W_Q, W_K, W_V, W_O, each
 * [c,c], heads side by side in their columns. `work` has 8·n·c + n·n numbers. */
void textbook_multi_head(double *y, const double *x, const double *const w[4], double *work, int n,
                         int c, int heads, bool causal) {
  int d = c / heads, size = n * c;
  double *q = work, *k = q + size, *v = k + size, *mixed = v + size;
  double *qh = mixed + size, *kh = qh + size, *vh = kh + size, *oh = vh + size, *p = oh + size;
  textbook_product(q, x, w[0], n, c, c);
  textbook_product(k, x, w[1], n, c, c);
  textbook_product(v, x, w[2], n, c, c);
  for (int h = 0; h < heads; h++) {
    take_head(qh, q, n, c, h, d);
    take_head(kh, k, n, c, h, d);
    take_head(vh, v, n, c, h, d);
    textbook_attention(oh, p, qh, kh, vh, n, n, d, d, causal);
    put_head(mixed, oh, n, c, h, d);
  }
  textbook_product(y, mixed, w[3], n, c, c);
}

#ifndef TEXTBOOK_WITHOUT_MAIN
static void print_matrix(const char *name, const double *x, int n, int m) {
  for (int i = 0; i < n; i++) {
    printf("%-4s", i == 0 ? name : "");
    for (int j = 0; j < m; j++) printf("%8.4f", x[i * m + j]);
    puts("");
  }
}

int main(void) {
  enum { N = 3, D = 2 };
  const double q[N * D] = {1, 0, 0, 1, 1, 1}, k[N * D] = {1, 0, 0, 1, 1, 1};
  const double v[N * D] = {1, 0, 0, 1, 2, 2};
  double p[N * N], o[N * D];
  textbook_attention(o, p, q, k, v, N, N, D, D, true);
  puts("Three positions, the future hidden.");
  print_matrix("P", p, N, N);
  print_matrix("O", o, N, D);

  /* The same through two heads of one feature; all four matrices the identity. */
  const double identity[D * D] = {1, 0, 0, 1};
  const double *const w[4] = {identity, identity, identity, identity};
  double y[N * D], work[8 * N * D + N * N];
  textbook_multi_head(y, q, w, work, N, D, 2, true);
  puts("X through two heads of one feature each.");
  print_matrix("Y", y, N, D);
  return 0;
}
#endif
