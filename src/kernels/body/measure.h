/* Loops that measure the machine: as many independent chains of multiply-adds
 * as the product kernel keeps in registers, and reads four vectors wide. */

static void body_fma_loop(double *flops, float *state, int64_t rounds) {
  enum { chains = V_TILE_ROWS * V_TILE_PANELS };
  vf x[chains], a = v_set1(0.999f), b = v_set1(1e-3f);
  for (int i = 0; i < chains; i++) x[i] = v_load(state + i * VN);
  for (int64_t n = 0; n < rounds; n++)
    for (int i = 0; i < chains; i++) x[i] = v_fma(x[i], a, b);
  for (int i = 0; i < chains; i++) v_store(state + i * VN, x[i]);
  *flops = 2.0 * VN * chains * (double)rounds;
}

static void body_read_loop(float *out, const float *x, int64_t n) {
  vf m[4] = {v_set1(0), v_set1(0), v_set1(0), v_set1(0)};
  for (int64_t i = 0; i + 4 * VN <= n; i += 4 * VN)
    for (int j = 0; j < 4; j++) m[j] = v_max(m[j], v_load(x + i + j * VN));
  *out = v_max16(v_max(v_max(m[0], m[1]), v_max(m[2], m[3])));
}
