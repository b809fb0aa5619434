/* Rows to k-major panels of 16, widened to f32 exactly; f32 to 16 bits. */

#define ATT_REF_PACK(suffix, type, widen)                                                          \
  static void ref_pack_##suffix(float *panels, const type *rows, const att_pack *p) {              \
    int64_t padded = (p->n + ATT_LANES - 1) / ATT_LANES * ATT_LANES;                               \
    for (int64_t n = 0; n < padded; n++)                                                           \
      for (int64_t j = 0; j < p->k; j++)                                                           \
        panels[n / ATT_LANES * p->panel_stride + j * ATT_LANES + n % ATT_LANES] =                  \
            n < p->n ? widen(rows[n * p->row_stride + j * p->k_stride]) : 0.0f;                    \
  }

static float ref_same(float x) { return x; }

ATT_REF_PACK(f32, float, ref_same)
ATT_REF_PACK(f16, uint16_t, att_f16_to_f32)
ATT_REF_PACK(bf16, uint16_t, att_bf16_to_f32)
#undef ATT_REF_PACK

static void ref_narrow_f16(uint16_t *y, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = att_f32_to_f16(x[i]);
}

static void ref_narrow_bf16(uint16_t *y, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = att_f32_to_bf16(x[i]);
}
