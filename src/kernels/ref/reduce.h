/* Reductions along a row: tree16 and the largest element.
 *
 * tree16: element i goes to partial sum i mod 16, in ascending order; then the
 * 16 partial sums are added in pairs (p, p+8), (p, p+4), (p, p+2), (p, p+1). */

static float ref_tree16(float partial[ATT_LANES]) {
  for (int half = ATT_LANES / 2; half >= 1; half /= 2)
    for (int p = 0; p < half; p++) partial[p] = partial[p] + partial[p + half];
  return partial[0];
}

static float ref_sum(const float *x, int64_t n) {
  float partial[ATT_LANES] = {0};
  for (int64_t i = 0; i < n; i++) partial[i % ATT_LANES] = partial[i % ATT_LANES] + x[i];
  return ref_tree16(partial);
}

static float ref_sum_of_squares(const float *x, int64_t n) {
  float partial[ATT_LANES] = {0};
  for (int64_t i = 0; i < n; i++)
    partial[i % ATT_LANES] = v_fma(x[i], x[i], partial[i % ATT_LANES]);
  return ref_tree16(partial);
}

/* A NaN is never picked. */
static float ref_max(const float *x, int64_t n) {
  float m = -INFINITY;
  for (int64_t i = 0; i < n; i++) m = m < x[i] ? x[i] : m;
  return m;
}
