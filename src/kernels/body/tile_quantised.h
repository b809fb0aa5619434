/* Products of few rows with a quantised cache: numbers are unpacked in registers
 * and never touch memory as floats. Chains and results are those of
 * tile_product.h on the unpacked numbers (scale times integer is exact).
 *
 * `four` is a constant: 4-bit numbers instead of 8. b_panel and b_k of the tile
 * are in bytes here; a_k is 1. */
#ifdef V_FEW_ROWS_PANELS
#define V_QUANT_PANELS V_FEW_ROWS_PANELS
#else
#define V_QUANT_PANELS 1
#endif

V_INLINE vf body_quants(const unsigned char *q, int shift, const bool four) {
  return four ? body_halves(vi_load_u8(q), shift) : v_from_int(vi_load_i8((const int8_t *)q));
}

V_INLINE void body_fetch_group(const unsigned char *b, int64_t ahead, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) body_product_fetch(b, ahead + at);
}

/* R rows with P panels of keys, group of 32 features after group. */
V_INLINE void body_keys_block(const att_tile *t, int64_t row, int64_t panel, const int R,
                              const int P, const bool four) {
  vf acc[V_TILE_ROWS][V_MOST_PANELS];
  const int64_t group = (four ? 18 : 34) * VN, cols = t->cols - panel * VN;
  const unsigned char *b = (const unsigned char *)t->b + panel * t->b_panel;
  const float *a = t->a + row * t->a_row;
  float *c = t->c + row * t->c_row + panel * VN;
  body_product_begin(acc, t, c, row, R, P, cols);
  for (int64_t k = 0; k < t->k; k += 32, b += group) {
    vf scale[V_MOST_PANELS], column[V_MOST_PANELS];
    for (int p = 0; p < P; p++) {
      scale[p] = body_key_scales(b + p * t->b_panel);
      body_fetch_group(b + p * t->b_panel, t->ahead, group);
    }
    for (int j = 0; j < 32; j++) {
      const unsigned char *q = b + (2 + (four ? j % 16 : j)) * VN;
      for (int p = 0; p < P; p++)
        column[p] = v_mul(scale[p], body_quants(q + p * t->b_panel, j / 16 * 4, four));
      for (int r = 0; r < R; r++) {
        vf x = v_set1(a[r * t->a_row + k + j]);
        for (int p = 0; p < P; p++) acc[r][p] = v_fma(x, column[p], acc[r][p]);
      }
    }
  }
  body_product_end(acc, t, c, row, panel, R, P, cols);
}

/* R rows of weights with P panels of values, key after key; P is even or 1. */
V_INLINE void body_values_block(const att_tile *t, int64_t row, int64_t panel, const int R,
                                const int P, const bool four) {
  vf acc[V_TILE_ROWS][V_MOST_PANELS];
  const int64_t bytes = four ? 18 : 34, cols = t->cols - panel * VN;
  const unsigned char *b = (const unsigned char *)t->b + panel / 2 * bytes;
  const float *a = t->a + row * t->a_row;
  float *c = t->c + row * t->c_row + panel * VN;
  body_product_begin(acc, t, c, row, R, P, cols);
  for (int64_t k = 0; k < t->k; k++, b += t->b_k) {
    vf scale = v_set1(0.0f), column[V_MOST_PANELS];
    body_fetch_group(b, t->ahead, (P + 1) / 2 * bytes);
    for (int p = 0; p < P; p++) {
      const unsigned char *block = b + p / 2 * bytes;
      int half = P == 1 ? (int)(panel % 2) : p % 2;
      if (P == 1 || p % 2 == 0) scale = body_block_scale(block);
      column[p] = v_mul(scale, body_quants(block + 2 + (four ? 0 : half * VN), half * 4, four));
    }
    for (int r = 0; r < R; r++) {
      vf x = v_set1(a[r * t->a_row + k]);
      for (int p = 0; p < P; p++) acc[r][p] = v_fma(x, column[p], acc[r][p]);
    }
  }
  body_product_end(acc, t, c, row, panel, R, P, cols);
}

/* All rows, up to four at a time, and never more than a tile has. */
#define V_QUANT_STEP (V_TILE_ROWS < 4 ? V_TILE_ROWS : 4)
#define V_QUANT_ROWS(which, P, four)                                                               \
  for (int64_t row = 0; row < t->rows; row += V_QUANT_STEP) {                                      \
    int64_t left = t->rows - row;                                                                  \
    if (V_QUANT_STEP == 4 && left >= 4)                                                            \
      body_##which##_block(t, row, panel, V_QUANT_STEP, P, four);                                  \
    else if (V_QUANT_STEP >= 3 && left == 3)                                                       \
      body_##which##_block(t, row, panel, V_QUANT_STEP >= 3 ? 3 : 1, P, four);                     \
    else if (V_QUANT_STEP >= 2 && left >= 2)                                                       \
      body_##which##_block(t, row, panel, V_QUANT_STEP >= 2 ? 2 : 1, P, four);                     \
    else                                                                                           \
      body_##which##_block(t, row, panel, 1, P, four);                                             \
  }
#define V_QUANT(name, which, four)                                                                 \
  static void name(const att_tile *t) {                                                            \
    int64_t panels = (t->cols + VN - 1) / VN, panel = 0;                                           \
    for (; panel + V_QUANT_PANELS <= panels; panel += V_QUANT_PANELS)                              \
      V_QUANT_ROWS(which, V_QUANT_PANELS, four)                                                    \
    for (; panel < panels; panel++) V_QUANT_ROWS(which, 1, four)                                   \
  }
V_QUANT(body_tile_keys_q8, keys, false)
V_QUANT(body_tile_keys_q4, keys, true)
V_QUANT(body_tile_values_q8, values, false)
V_QUANT(body_tile_values_q4, values, true)
#undef V_QUANT
#undef V_QUANT_ROWS
#undef V_QUANT_STEP
