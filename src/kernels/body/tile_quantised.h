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

V_INLINE void body_fetch_group(const unsigned char *b, int64_t ahead, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) body_product_fetch(b, ahead + at);
}

/* Features 16 * half … of a group of 32: R rows with P panels. `half` is a
 * constant, so that shifts are. */
V_INLINE void body_keys_half(vf acc[V_TILE_ROWS][V_MOST_PANELS], const att_tile *t, const float *a,
                             const unsigned char *b, const vf *scale, const int half, const int R,
                             const int P, const bool four) {
  const vf numbers = body_half_table(v_set1(1.0f));
  b += (2 + (four ? 0 : 16 * half)) * VN;
  for (int j = 0; j < 16; j++, b += VN) {
    vf column[V_MOST_PANELS];
    for (int p = 0; p < P; p++) {
      const unsigned char *q = b + p * t->b_panel;
      column[p] = four ? body_halves(numbers, vi_load_u8(q), 4 * half)
                       : v_from_int(vi_load_i8((const int8_t *)q));
      column[p] = v_mul(scale[p], column[p]);
    }
    for (int r = 0; r < R; r++) {
      vf x = v_set1(a[r * t->a_row + 16 * half + j]);
      for (int p = 0; p < P; p++) acc[r][p] = v_fma(x, column[p], acc[r][p]);
    }
  }
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
    vf scale[V_MOST_PANELS];
    for (int p = 0; p < P; p++) {
      scale[p] = body_key_scales(b + p * t->b_panel);
      body_fetch_group(b + p * t->b_panel, t->ahead, group);
    }
    body_keys_half(acc, t, a + k, b, scale, 0, R, P, four);
    body_keys_half(acc, t, a + k, b, scale, 1, R, P, four);
  }
  body_product_end(acc, t, c, row, panel, R, P, cols);
}

/* Scales of 16 keys, block after block of 32 columns; keys past `n` give 0. Several
 * panels at once are so little work a key that widening them one by one would show. */
V_INLINE void body_value_scales(float scales[][VN], const att_tile *t, const unsigned char *b,
                                int64_t n, const int blocks, int64_t bytes) {
  for (int p = 0; p < blocks; p++) {
    uint16_t halves[VN] = {0};
    for (int64_t k = 0; k < n; k++) memcpy(&halves[k], b + k * t->b_k + p * bytes, 2);
    v_store(scales[p], v_load_f16(halves));
  }
}

/* A block's values from number 16 * half on: 16, or with `high` all 32. */
V_INLINE void body_value_columns(vf *low, vf *high, const unsigned char *block, vf scale, int half,
                                 const bool four) {
  if (four) {
    vf table = body_half_table(scale);
    vi bytes = vi_load_u8(block + 2);
    *low = body_halves(table, bytes, 4 * half);
    if (high) *high = body_halves(table, bytes, 4);
  } else {
    const int8_t *q = (const int8_t *)block + 2 + half * VN;
    *low = v_mul(scale, v_from_int(vi_load_i8(q)));
    if (high) *high = v_mul(scale, v_from_int(vi_load_i8(q + VN)));
  }
}

/* R rows of weights with P panels of values, key after key; P is even or 1. */
V_INLINE void body_values_block(const att_tile *t, int64_t row, int64_t panel, const int R,
                                const int P, const bool four) {
  vf acc[V_TILE_ROWS][V_MOST_PANELS];
  float scales[(V_MOST_PANELS + 1) / 2][VN];
  const int64_t bytes = four ? 18 : 34, cols = t->cols - panel * VN;
  const unsigned char *b = (const unsigned char *)t->b + panel / 2 * bytes;
  const float *a = t->a + row * t->a_row;
  float *c = t->c + row * t->c_row + panel * VN;
  body_product_begin(acc, t, c, row, R, P, cols);
  for (int64_t k = 0; k < t->k; k++, b += t->b_k) {
    vf column[V_MOST_PANELS];
    if (P > 1 && k % VN == 0)
      body_value_scales(scales, t, b, t->k - k < VN ? t->k - k : VN, (P + 1) / 2, bytes);
    body_fetch_group(b, t->ahead, (P + 1) / 2 * bytes);
    if (P == 1)
      body_value_columns(&column[0], NULL, b, body_block_scale(b), (int)(panel % 2), four);
    for (int p = 0; p + 1 < P; p += 2)
      body_value_columns(&column[p], &column[p + 1], b + p / 2 * bytes,
                         v_set1(scales[p / 2][k % VN]), 0, four);
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
