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

/* A step of R rows, a[0] that of the first, with P panels. */
V_INLINE void body_quant_add(vf acc[V_TILE_ROWS][V_MOST_PANELS], const att_tile *t, const float *a,
                             const vf *column, const int R, const int P) {
  for (int r = 0; r < R; r++) {
    vf x = v_set1(a[r * t->a_row]);
    for (int p = 0; p < P; p++) acc[r][p] = v_fma(x, column[p], acc[r][p]);
  }
}

/* A group of 32 features, each a byte. */
V_INLINE void body_keys_bytes(vf acc[V_TILE_ROWS][V_MOST_PANELS], const att_tile *t, const float *a,
                              const unsigned char *b, const body_scale *scale, const int R,
                              const int P, const bool plain) {
  const unsigned char *q = b + 2 * VN;
  for (int j = 0; j < 32; j++, q += VN) {
    vf column[V_MOST_PANELS];
    for (int p = 0; p < P; p++) column[p] = body_bytes(q + p * t->b_panel, scale[p], plain);
    body_quant_add(acc, t, a + j, column, R, P);
  }
}

V_INLINE void body_keys_group(vf acc[V_TILE_ROWS][V_MOST_PANELS], const att_tile *t, const float *a,
                              const unsigned char *b, const vf *scale, const int R, const int P) {
  body_scale scales[V_MOST_PANELS];
  bool plain = true;
  for (int p = 0; p < P; p++) {
    scales[p] = body_scale_of(scale[p]);
    plain &= body_is_plain(scale[p]);
  }
  if (plain)
    body_keys_bytes(acc, t, a, b, scales, R, P, true);
  else
    body_keys_bytes(acc, t, a, b, scales, R, P, false);
}

/* A group of 32 features, each half a byte: two for every byte of the words. Words read
 * so many bytes further on begin with that byte, which saves a shift. */
V_INLINE void body_keys_halves(vf acc[V_TILE_ROWS][V_MOST_PANELS], const att_tile *t,
                               const float *a, const unsigned char *b, const vf *scale, const int R,
                               const int P) {
  const vf numbers = body_half_table(v_set1(1.0f));
  for (int word = 0; word < 4; word++, b += 4 * VN)
    for (int byte = 0; byte < 4; byte++, a += 2) {
      vf low[V_MOST_PANELS], high[V_MOST_PANELS];
      for (int p = 0; p < P; p++) {
        vi words = vi_load_words(b + byte + p * t->b_panel);
        low[p] = v_mul(scale[p], body_halves(numbers, words, 0));
        high[p] = v_mul(scale[p], body_halves(numbers, words, 4));
      }
      body_quant_add(acc, t, a, low, R, P);
      body_quant_add(acc, t, a + 1, high, R, P);
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
      scale[p] = body_key_scales(b + p * t->b_panel + (four ? 16 * VN : 0));
      if (row == 0) body_fetch_group(b + p * t->b_panel, t->ahead, group);
    }
    if (four)
      body_keys_halves(acc, t, a + k, b, scale, R, P);
    else
      body_keys_group(acc, t, a + k, b, scale, R, P);
  }
  body_product_end(acc, t, c, row, panel, R, P, cols);
}

/* Scales of up to 16 keys as they are stored, block after block of 32 columns; behind them
 * zeros. Single halves that are read back as a vector make the processor wait until
 * they have left its store buffer, so they are gathered 16 keys before they are used. */
V_INLINE void body_value_halves(uint16_t halves[][VN], const att_tile *t, const unsigned char *b,
                                int64_t k, const int blocks, int64_t bytes) {
  int64_t n = t->k - k < VN ? t->k - k : VN;
  for (int p = 0; p < blocks; p++) {
    if (n < VN) memset(halves[p], 0, sizeof halves[p]);
    for (int64_t i = 0; i < n; i++) memcpy(&halves[p][i], b + i * t->b_k + p * bytes, 2);
  }
}

/* The same as floats, and what body_scale_of makes of them; a key's are broadcast from here. */
typedef struct body_value_scales {
  float scale[VN], base[VN];
} body_value_scales;

/* Are all of them plain? */
V_INLINE bool body_value_widen(body_value_scales *scales, uint16_t halves[][VN], const int blocks) {
  bool plain = true;
  for (int p = 0; p < blocks; p++) {
    body_scale s = body_scale_of(v_load_f16(halves[p]));
    v_store(scales[p].scale, s.scale);
    v_store(scales[p].base, s.base);
    plain &= body_is_plain(s.scale);
  }
  return plain;
}

/* A block's values of key k from number 16 * half on: 16, or with `high` all 32. */
V_INLINE void body_value_columns(vf *low, vf *high, const unsigned char *block,
                                 const body_value_scales *scales, int64_t k, int half,
                                 const bool four, const bool plain) {
  body_scale s = {v_set1(scales->scale[k]), v_set1(scales->base[k])};
  if (four) {
    vf table = body_half_table(s.scale);
    vi bytes = vi_load_u8(block + 2);
    *low = body_halves(table, bytes, 4 * half);
    if (high) *high = body_halves(table, bytes, 4);
  } else {
    *low = body_bytes(block + 2 + half * VN, s, plain);
    if (high) *high = body_bytes(block + 2 + VN, s, plain);
  }
}

/* n <= 16 keys; P is even or 1. */
V_INLINE void body_values_keys(vf acc[V_TILE_ROWS][V_MOST_PANELS], const att_tile *t,
                               const float *a, const unsigned char *b,
                               const body_value_scales *scales, int64_t n, int half, const int R,
                               const int P, const bool four, const bool plain) {
  const int64_t bytes = four ? 18 : 34;
  for (int64_t k = 0; k < n; k++, b += t->b_k) {
    vf column[V_MOST_PANELS + 1];
    body_fetch_group(b, t->ahead, (P + 1) / 2 * bytes);
    for (int p = 0; p < P; p += 2)
      body_value_columns(&column[p], P > 1 ? &column[p + 1] : NULL, b + p / 2 * bytes,
                         &scales[p / 2], k, half, four, plain);
    body_quant_add(acc, t, a + k, column, R, P);
  }
}

/* R rows of weights with P panels of values, key after key. */
V_INLINE void body_values_block(const att_tile *t, int64_t row, int64_t panel, const int R,
                                const int P, const bool four) {
  enum { blocks = (V_MOST_PANELS + 1) / 2 };
  vf acc[V_TILE_ROWS][V_MOST_PANELS];
  uint16_t halves[blocks][VN];
  body_value_scales scales[blocks];
  const int64_t bytes = four ? 18 : 34, cols = t->cols - panel * VN;
  const int half = P > 1 ? 0 : (int)(panel % 2);
  const unsigned char *b = (const unsigned char *)t->b + panel / 2 * bytes;
  const float *a = t->a + row * t->a_row;
  float *c = t->c + row * t->c_row + panel * VN;
  body_value_halves(halves, t, b, 0, (P + 1) / 2, bytes);
  body_product_begin(acc, t, c, row, R, P, cols);
  for (int64_t k = 0; k < t->k; k += VN, b += VN * t->b_k) {
    int64_t n = t->k - k < VN ? t->k - k : VN;
    bool plain = body_value_widen(scales, halves, (P + 1) / 2);
    if (k + VN < t->k) body_value_halves(halves, t, b + VN * t->b_k, k + VN, (P + 1) / 2, bytes);
    if (four || plain)
      body_values_keys(acc, t, a + k, b, scales, n, half, R, P, four, true);
    else
      body_values_keys(acc, t, a + k, b, scales, n, half, R, P, four, false);
  }
  body_product_end(acc, t, c, row, panel, R, P, cols);
}

/* All rows, up to four at a time, and never more than a tile has. */
#define V_QUANT_STEP (V_TILE_ROWS < 4 ? V_TILE_ROWS : 4)
#define V_QUANT_ROWS(which, P, four)                                                               \
  for (; row < t->rows; row += V_QUANT_STEP) {                                                     \
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
    V_QUANT_MANY(which, four)                                                                      \
    for (; panel + V_QUANT_PANELS <= panels; panel += V_QUANT_PANELS) {                            \
      int64_t row = 0;                                                                             \
      V_QUANT_ROWS(which, V_QUANT_PANELS, four)                                                    \
    }                                                                                              \
    for (; panel < panels; panel++) {                                                              \
      int64_t row = 0;                                                                             \
      V_QUANT_ROWS(which, 1, four)                                                                 \
    }                                                                                              \
  }
#if V_TILE_ROWS > 8 && V_TILE_PANELS > 1
/* A number unpacked serves eight rows. */
#define V_QUANT_MANY(which, four)                                                                  \
  for (; t->rows >= 8 && panel + V_TILE_PANELS <= panels; panel += V_TILE_PANELS) {                \
    int64_t row = 0;                                                                               \
    for (; row + 8 <= t->rows; row += 8)                                                           \
      body_##which##_block(t, row, panel, 8, V_TILE_PANELS, four);                                 \
    V_QUANT_ROWS(which, V_TILE_PANELS, four)                                                       \
  }
#else
#define V_QUANT_MANY(which, four)
#endif
V_QUANT(body_tile_keys_q8, keys, false)
V_QUANT(body_tile_keys_q4, keys, true)
V_QUANT(body_tile_values_q8, values, false)
V_QUANT(body_tile_values_q4, values, true)
#undef V_QUANT
#undef V_QUANT_ROWS
#undef V_QUANT_MANY
#undef V_QUANT_STEP
