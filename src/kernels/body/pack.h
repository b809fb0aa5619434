/* Rows to k-major panels of 16: a transpose of 16x16 blocks where rows are
 * adjacent in k, a copy where they are adjacent in n, element by element else.
 * f32 to 16 bits: by vectors where the target has them (V_NARROWS). */

#define V_PACK(suffix, type, load, widen)                                                          \
  static void body_pack_element_##suffix(float *to, const type *from, const att_pack *p,           \
                                         int64_t n, int64_t j) {                                   \
    for (int64_t lane = 0; lane < VN; lane++)                                                      \
      to[j * VN + lane] =                                                                          \
          n + lane < p->n ? widen(from[lane * p->row_stride + j * p->k_stride]) : 0.0f;            \
  }                                                                                                \
  /* Up to eight panels of adjacent columns side by side, as memory has them. */                   \
  static void body_pack_columns_##suffix(float *panels, const type *rows, const att_pack *p) {     \
    int64_t whole = p->n / VN;                                                                     \
    for (int64_t first = 0; first < whole; first += 8)                                             \
      for (int64_t j = 0; j < p->k; j++)                                                           \
        for (int64_t n = first; n < whole && n < first + 8; n++)                                   \
          v_store(panels + n * p->panel_stride + j * VN, load(rows + j * p->k_stride + n * VN));   \
  }                                                                                                \
  static void body_pack_##suffix(float *panels, const type *rows, const att_pack *p) {             \
    bool columns = p->row_stride == 1 && p->k_stride != 1;                                         \
    if (columns) body_pack_columns_##suffix(panels, rows, p);                                      \
    for (int64_t n = columns ? p->n / VN * VN : 0; n < p->n; n += VN) {                            \
      float *to = panels + n / VN * p->panel_stride;                                               \
      const type *from = rows + n * p->row_stride;                                                 \
      int64_t j = 0;                                                                               \
      if (n + VN <= p->n && p->k_stride == 1) {                                                    \
        for (; j + VN <= p->k; j += VN) {                                                          \
          vf block[VN];                                                                            \
          for (int r = 0; r < VN; r++) block[r] = load(from + r * p->row_stride + j);              \
          v_transpose16(block);                                                                    \
          for (int r = 0; r < VN; r++) v_store(to + (j + r) * VN, block[r]);                       \
        }                                                                                          \
      }                                                                                            \
      for (; j < p->k; j++) body_pack_element_##suffix(to, from, p, n, j);                         \
    }                                                                                              \
  }

static inline float body_same(float x) { return x; }

V_PACK(f32, float, v_load, body_same)
V_PACK(f16, uint16_t, v_load_f16, att_f16_to_f32)
V_PACK(bf16, uint16_t, v_load_bf16, att_bf16_to_f32)
#undef V_PACK

static void body_narrow_f16(uint16_t *y, const float *x, int64_t n) {
  int64_t i = 0;
#ifdef V_NARROWS
  for (; i + VN <= n; i += VN) v_store_f16(y + i, v_load(x + i));
#endif
  for (; i < n; i++) y[i] = att_f32_to_f16(x[i]);
}

static void body_narrow_bf16(uint16_t *y, const float *x, int64_t n) {
  int64_t i = 0;
#ifdef V_NARROWS
  for (; i + VN <= n; i += VN) v_store_bf16(y + i, v_load(x + i));
#endif
  for (; i < n; i++) y[i] = att_f32_to_bf16(x[i]);
}
