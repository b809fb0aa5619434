/* The definition of attention: one query row, key by key.
 *
 *   score(j) = softcap(scale * chain over d of q_d k_jd) + bias_j - slope |p - j|
 *
 * Keys are taken in spans, spans in blocks. Inside a span the softmax is
 * online, block by block; the spans' results are merged in ascending order.
 * Blocks and spans without a live key leave no trace. Everything faster in
 * this library has to give exactly these bits. */

/* The final score of key j; hidden keys are -inf and are never read. */
static float ref_score(const att_attention_row *a, int64_t j) {
  if (j < a->low || j >= a->high || (a->visible && !a->visible[j])) return -INFINITY;
  float s = 0.0f;
  for (int64_t d = 0; d < a->d; d++) s = v_fma(a->q[d], a->k[j * a->k_row + d * a->k_col], s);
  s = a->scale * s;
  if (a->softcap < INFINITY) s = a->softcap * v_tanh(s / a->softcap);
  if (a->bias) {
    float bias = a->bias[j * a->bias_col];
    if (bias == -INFINITY) return bias; /* hides the key, whatever its score */
    s = s + bias;
  }
  if (a->slope != 0.0f) {
    int64_t distance = a->position < j ? j - a->position : a->position - j;
    s = v_fma(-a->slope, (float)distance, s);
  }
  return s;
}

/* One block of keys first … end-1 into the span's (m, l, o). */
static void ref_attention_block(const att_attention_row *a, int64_t first, int64_t end, float *m,
                                float *l, float *o) {
  float *s = a->scores;
  bool live = false;
  for (int64_t j = first; j < end; j++) live |= (s[j] = ref_score(a, j)) != -INFINITY;
  if (!live) return;

  float block_max = ref_max(s + first, end - first);
  float new_max = *m < block_max ? block_max : *m;
  float factor = *m == -INFINITY ? 1.0f : v_exp(*m - new_max);

  float partial[ATT_LANES] = {0};
  for (int64_t j = first; j < end; j++) {
    float e = s[j] == -INFINITY ? 0.0f : v_exp(s[j] - new_max);
    int64_t p = (j - first) % ATT_LANES;
    partial[p] = partial[p] + e;
  }
  *l = v_fma(*l, factor, ref_tree16(partial));
  *m = new_max;

  for (int64_t c = 0; c < a->dv; c++) {
    float sum = o[c] * factor;
    for (int64_t j = first; j < end; j++) {
      if (s[j] == -INFINITY || (a->keep && a->keep[j] == 0.0f)) continue;
      float e = v_exp(s[j] - new_max);
      if (a->keep) e = e * a->keep[j];
      sum = v_fma(e, a->v[j * a->v_row + c * a->v_col], sum);
    }
    o[c] = sum;
  }
}

/* (m, l, o) <- merged with (sm, sl, so); an empty side is a copy. */
static void ref_merge(float *m, float *l, float *o, float sm, float sl, const float *so,
                      int64_t n) {
  if (sm == -INFINITY && sl == 0.0f) return;
  if (*m == -INFINITY && *l == 0.0f) {
    *m = sm;
    *l = sl;
    for (int64_t c = 0; c < n; c++) o[c] = so ? so[c] : 0.0f;
    return;
  }
  float new_max = *m < sm ? sm : *m;
  float a = v_exp(*m - new_max), b = v_exp(sm - new_max);
  *l = v_fma(*l, a, sl * b);
  for (int64_t c = 0; c < n; c++) o[c] = v_fma(o[c], a, (so ? so[c] : 0.0f) * b);
  *m = new_max;
}

static void ref_attention_row(const att_attention_row *a) {
  *a->m = -INFINITY;
  *a->l = 0.0f;
  for (int64_t c = 0; c < a->dv; c++) a->o[c] = 0.0f;
  for (int64_t span = 0; span < a->keys; span += a->span) {
    int64_t span_end = span + a->span < a->keys ? span + a->span : a->keys;
    float m = -INFINITY, l = 0.0f;
    for (int64_t c = 0; c < a->dv; c++) a->so[c] = 0.0f;
    for (int64_t block = span; block < span_end; block += a->block) {
      int64_t end = block + a->block < span_end ? block + a->block : span_end;
      ref_attention_block(a, block, end, &m, &l, a->so);
    }
    ref_merge(a->m, a->l, a->o, m, l, a->so, a->dv);
  }
}
