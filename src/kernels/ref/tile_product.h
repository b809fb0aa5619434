/* The definition of a product: one element, one chain, in index order. */

static float ref_widen_f32(float x) { return x; }

#define ATT_REF_PRODUCT(name, type, widen)                                                         \
  static void name(const att_tile *t) {                                                            \
    for (int64_t r = 0; r < t->rows; r++) {                                                        \
      for (int64_t n = 0; n < t->cols; n++) {                                                      \
        const float *a = t->a + r * t->a_row;                                                      \
        const type *b = (const type *)t->b + n / ATT_LANES * t->b_panel + n % ATT_LANES;           \
        float *c = t->c + r * t->c_row + n;                                                        \
        float sum = t->accumulate ? *c : 0.0f;                                                     \
        if (t->accumulate && t->scale) sum = sum * t->scale[r];                                    \
        for (int64_t j = 0; j < t->k; j++) sum = v_fma(a[j * t->a_k], widen(b[j * t->b_k]), sum);  \
        if (t->bias) sum = sum + t->bias[n];                                                       \
        if (t->residual) sum = sum + t->residual[r * t->residual_row + n];                         \
        *c = sum;                                                                                  \
      }                                                                                            \
    }                                                                                              \
  }

ATT_REF_PRODUCT(ref_tile_product, float, ref_widen_f32)
ATT_REF_PRODUCT(ref_tile_product_f16, uint16_t, att_f16_to_f32)
ATT_REF_PRODUCT(ref_tile_product_bf16, uint16_t, att_bf16_to_f32)
#undef ATT_REF_PRODUCT
