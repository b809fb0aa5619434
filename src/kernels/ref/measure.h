/* Loops that measure the machine; their results mean nothing. */

static void ref_fma_loop(double *flops, float *state, int64_t rounds) {
  float x[ATT_LANES];
  for (int i = 0; i < ATT_LANES; i++) x[i] = state[i];
  for (int64_t n = 0; n < rounds; n++)
    for (int i = 0; i < ATT_LANES; i++) x[i] = v_fma(x[i], 0.999f, 1e-3f);
  for (int i = 0; i < ATT_LANES; i++) state[i] = x[i];
  *flops = 2.0 * ATT_LANES * (double)rounds;
}

static void ref_read_loop(float *out, const float *x, int64_t n) {
  float m = x[0];
  for (int64_t i = 0; i < n; i++) m = m < x[i] ? x[i] : m;
  *out = m;
}
