/* What the tiled backward does besides its products, and small kernels that go
 * with it. A pair is that of ref/attention_backward_row.h. */

/* The final score of row r, column c, from its product. */
static float ref_tile_score(const att_softmax_tile *t, int64_t r, int64_t c) {
  if (t->low && (c < t->low[r] || c >= t->high[r])) return -INFINITY;
  if (t->visible && !t->visible[r * t->visible_row + c]) return -INFINITY;
  float x = t->scale * t->s[r * t->s_row + c];
  if (t->softcap < INFINITY) x = t->softcap * v_tanh(x / t->softcap);
  if (t->bias) {
    float bias = t->bias[r][c * t->bias_col];
    if (bias == -INFINITY) return bias;
    x = x + bias;
  }
  if (t->slope && t->slope[r] != 0.0f) {
    int64_t distance = t->position[r] - (t->first_key + c);
    x = v_fma(-t->slope[r], (float)(distance < 0 ? -distance : distance), x);
  }
  return x;
}

static void ref_backward_tile(const att_backward_tile *b) {
  const att_softmax_tile *t = &b->scores;
  int64_t padded = (t->cols + ATT_LANES - 1) / ATT_LANES * ATT_LANES;
  for (int64_t r = 0; r < t->rows; r++)
    for (int64_t c = 0; c < padded; c++) {
      float *s = t->s + r * t->s_row + c, *d = b->d + r * b->d_row + c;
      int64_t at = r * ATT_LANES + c % ATT_LANES;
      float keep = t->keep && c < t->cols ? t->keep[r * t->keep_row + c] : 1.0f;
      ref_pair pair = {.score = c < t->cols ? ref_tile_score(t, r, c) : -INFINITY};
      pair.product = *s, pair.dweight = *d;
      ref_backward_pair(&pair, t->scale, t->softcap, b->lse[r], b->delta[r], keep);
      *s = pair.weight;
      *d = pair.dproduct;
      if (b->dscore) b->dscore[r * b->dscore_row + c] = pair.dscore;
      if (b->score_sums) b->score_sums[at] = b->score_sums[at] + pair.dscore;
      if (!b->distance_sums) continue;
      int64_t far = t->position[r] - (t->first_key + c);
      b->distance_sums[at] =
          v_fma((float)(far < 0 ? -far : far), pair.dscore, b->distance_sums[at]);
    }
}

static void ref_dropout_row(const att_dropout_row *d) {
  for (int64_t c = 0; c < d->n; c++) {
    uint32_t counter[4] = {d->b, d->h, d->i, d->first_key + (uint32_t)c}, words[4];
    att_philox(words, counter, d->key);
    d->keep[c] = words[0] < d->limit ? 0.0f : d->factor;
  }
}

static void ref_dot(float *out, const float *a, const float *b, int64_t n) {
  float partial[ATT_LANES] = {0};
  for (int64_t i = 0; i < n; i++)
    partial[i % ATT_LANES] = v_fma(a[i], b[i], partial[i % ATT_LANES]);
  *out = ref_tree16(partial);
}

static void ref_is_finite(bool *finite, const float *x, int64_t n) {
  *finite = true;
  for (int64_t i = 0; i < n; i++) *finite &= x[i] - x[i] == 0.0f;
}

static void ref_widen_f16(float *y, const uint16_t *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = att_f16_to_f32(x[i]);
}

static void ref_widen_bf16(float *y, const uint16_t *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = att_bf16_to_f32(x[i]);
}
