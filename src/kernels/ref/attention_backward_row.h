/* The definition of attention's backward, one query row; see the formulas in
 * attend/backward.h. The forward line is quoted above what differentiates it. */

static float ref_backward_dot(const float *a, const float *b, int64_t b_col, int64_t n) {
  float sum = 0.0f;
  for (int64_t i = 0; i < n; i++) sum = v_fma(a[i], b[i * b_col], sum);
  return sum;
}

/* Key j: its weight, the gradient of its final score, and of its product. */
static void ref_backward_key(const att_attention_backward_row *b, int64_t j) {
  const att_attention_row *a = b->row;
  float score = ref_score(a, j);
  b->weight[j] = b->dscore[j] = b->dproduct[j] = 0.0f;
  if (score == -INFINITY) return;
  /* weight(j) = exp(score(j) - lse) */
  float weight = v_exp(score - b->lse), keep = a->keep ? a->keep[j] : 1.0f;
  /* out = sum over j of weight(j) * keep(j) * v_j */
  float dweight =
      keep == 0.0f ? 0.0f : keep * ref_backward_dot(b->dout, a->v + j * a->v_row, a->v_col, a->dv);
  b->weight[j] = weight * keep;
  /* weight = softmax(score): delta = dout . out carries the sum's part */
  float dscore = weight * (dweight - b->delta);
  b->dscore[j] = dscore;
  /* score = cap * tanh(scale * product / cap) + bias … */
  if (a->softcap < INFINITY) {
    float product = ref_backward_dot(a->q, a->k + j * a->k_row, a->k_col, a->d);
    float t = v_tanh(a->scale * product / a->softcap);
    dscore = dscore * v_fma(-t, t, 1.0f);
  }
  b->dproduct[j] = dscore * a->scale;
}

/* A hidden key is left out of every sum. */
static void ref_attention_backward_row(const att_attention_backward_row *b) {
  const att_attention_row *a = b->row;
  for (int64_t j = 0; j < a->keys; j++) ref_backward_key(b, j);
  /* product(j) = sum over d of q_d * k_jd */
  for (int64_t d = 0; b->dq && d < a->d; d++) {
    float sum = 0.0f;
    for (int64_t j = 0; j < a->keys; j++)
      if (b->dproduct[j] != 0.0f)
        sum = v_fma(b->dproduct[j], a->k[j * a->k_row + d * a->k_col], sum);
    b->dq[d] = sum;
  }
  for (int64_t j = 0; b->dk && j < a->keys; j++)
    for (int64_t d = 0; b->dproduct[j] != 0.0f && d < a->d; d++)
      b->dk[j * a->d + d] = v_fma(b->dproduct[j], a->q[d], b->dk[j * a->d + d]);
  /* out_c = sum over j of weight(j) * v_jc */
  for (int64_t j = 0; b->dv && j < a->keys; j++)
    for (int64_t c = 0; b->weight[j] != 0.0f && c < a->dv; c++)
      b->dv[j * a->dv + c] = v_fma(b->weight[j], b->dout[c], b->dv[j * a->dv + c]);
}
