/* The definition of a product: one element, one chain, in index order. */

static void ref_tile_product(const att_tile *t) {
  for (int64_t r = 0; r < t->rows; r++) {
    for (int64_t n = 0; n < t->cols; n++) {
      const float *a = t->a + r * t->a_row;
      const float *b = t->b + n / ATT_LANES * t->b_panel + n % ATT_LANES;
      float *c = t->c + r * t->c_row + n;
      float sum = t->accumulate ? *c : 0.0f;
      if (t->accumulate && t->scale) sum = sum * t->scale[r];
      for (int64_t j = 0; j < t->k; j++) sum = v_fma(a[j * t->a_k], b[j * t->b_k], sum);
      if (t->bias) sum = sum + t->bias[n];
      if (t->residual) sum = sum + t->residual[r * t->residual_row + n];
      *c = sum;
    }
  }
}
