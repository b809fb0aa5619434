/* Products with a quantised cache, number by number: the chains of
 * tile_product.h over what unpack.h defines. */

static float ref_key(const att_tile *t, int64_t key, int64_t d, bool four) {
  const unsigned char *group = (const unsigned char *)t->b + key / ATT_LANES * t->b_panel +
                               d / 32 * (four ? 18 : 34) * ATT_LANES;
  int64_t lane = key % ATT_LANES, j = d % 32;
  if (four) return ref_half_key(group, lane, j);
  return ref_scale(group, lane) * (float)(group[(2 + j) * ATT_LANES + lane] - 128);
}

static float ref_value(const att_tile *t, int64_t key, int64_t c, bool four) {
  const unsigned char *block =
      (const unsigned char *)t->b + key * t->b_k + c / 32 * (four ? 18 : 34);
  int64_t j = c % 32;
  unsigned char q = block[2 + (four ? j % 16 : j)];
  int number = four ? (j < 16 ? q & 15 : q >> 4) - 8 : q - 128;
  return ref_scale(block, 0) * (float)number;
}

#define ATT_REF_QUANT(name, number, four)                                                          \
  static void name(const att_tile *t) {                                                            \
    for (int64_t r = 0; r < t->rows; r++)                                                          \
      for (int64_t n = 0; n < t->cols; n++) {                                                      \
        float *c = t->c + r * t->c_row + n, sum = t->accumulate ? *c : 0.0f;                       \
        if (t->accumulate && t->scale) sum = sum * t->scale[r];                                    \
        for (int64_t k = 0; k < t->k; k++)                                                         \
          sum = v_fma(t->a[r * t->a_row + k],                                                      \
                      number(t, number##_KEY(k, n), number##_FEATURE(k, n), four), sum);           \
        if (t->bias) sum = sum + t->bias[n];                                                       \
        if (t->residual) sum = sum + t->residual[r * t->residual_row + n];                         \
        *c = sum;                                                                                  \
      }                                                                                            \
  }
#define ref_key_KEY(k, n) n
#define ref_key_FEATURE(k, n) k
#define ref_value_KEY(k, n) k
#define ref_value_FEATURE(k, n) n
ATT_REF_QUANT(ref_tile_keys_q8, ref_key, false)
ATT_REF_QUANT(ref_tile_keys_q4, ref_key, true)
ATT_REF_QUANT(ref_tile_values_q8, ref_value, false)
ATT_REF_QUANT(ref_tile_values_q4, ref_value, true)
#undef ATT_REF_QUANT
#undef ref_key_KEY
#undef ref_key_FEATURE
#undef ref_value_KEY
#undef ref_value_FEATURE
