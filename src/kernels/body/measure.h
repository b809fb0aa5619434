/* Loops that measure the machine: as many independent chains of multiply-adds
 * as the product kernel keeps in registers, and reads four vectors wide. */

static void body_fma_loop(double *flops, float *state, int64_t rounds) {
  vf x[V_TILE_ROWS][V_TILE_PANELS], a = v_set1(0.999f), b = v_set1(1e-3f);
  for (int r = 0; r < V_TILE_ROWS; r++)
    for (int p = 0; p < V_TILE_PANELS; p++) x[r][p] = v_load(state + (r * V_TILE_PANELS + p) * VN);
  for (int64_t n = 0; n < rounds; n++)
    for (int r = 0; r < V_TILE_ROWS; r++)
      for (int p = 0; p < V_TILE_PANELS; p++) x[r][p] = v_fma(x[r][p], a, b);
  for (int r = 0; r < V_TILE_ROWS; r++)
    for (int p = 0; p < V_TILE_PANELS; p++) v_store(state + (r * V_TILE_PANELS + p) * VN, x[r][p]);
  *flops = 2.0 * VN * V_TILE_ROWS * V_TILE_PANELS * (double)rounds;
}

static void body_read_loop(float *out, const float *x, int64_t n) {
  vf m[4] = {v_set1(0), v_set1(0), v_set1(0), v_set1(0)};
  for (int64_t i = 0; i + 4 * VN <= n; i += 4 * VN)
    for (int j = 0; j < 4; j++) m[j] = v_max(m[j], v_load(x + i + j * VN));
  *out = v_max16(v_max(v_max(m[0], m[1]), v_max(m[2], m[3])));
}
