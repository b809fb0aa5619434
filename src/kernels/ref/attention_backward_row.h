/* The definition of attention's backward, one query row; see the formulas in
 * attend/backward.h. The forward line is quoted above what differentiates it. */

static float ref_backward_dot(const float *a, const float *b, int64_t b_col, int64_t n) {
  float sum = 0.0f;
  for (int64_t i = 0; i < n; i++) sum = v_fma(a[i], b[i * b_col], sum);
  return sum;
}

/* One pair of query and key. */
typedef struct ref_pair {
  float score, product, dweight; /* final score, q . k, dout . v */
  float weight, dscore, dproduct;
} ref_pair;

static void ref_backward_pair(ref_pair *pair, float scale, float softcap, float lse, float delta,
                              float keep) {
  pair->weight = pair->dscore = pair->dproduct = 0.0f;
  if (pair->score == -INFINITY) return;
  /* out = sum over j of weight(j) * keep(j) * v_j,  weight(j) = exp(score(j) - lse) */
  float weight = v_exp(pair->score - lse);
  float dweight = keep == 0.0f ? 0.0f : keep * pair->dweight;
  pair->weight = weight * keep;
  /* weight = softmax(score): delta = dout . out carries the sum's part */
  float d = pair->dscore = weight * (dweight - delta);
  /* score = cap * tanh(scale * product / cap) + bias … */
  if (softcap < INFINITY) {
    float t = v_tanh(scale * pair->product / softcap);
    d = d * v_fma(-t, t, 1.0f);
  }
  pair->dproduct = d * scale;
}

static void ref_backward_key(const att_attention_backward_row *b, int64_t j) {
  const att_attention_row *a = b->row;
  ref_pair pair = {.score = ref_score(a, j)};
  if (pair.score != -INFINITY) {
    pair.product = ref_backward_dot(a->q, a->k + j * a->k_row, a->k_col, a->d);
    pair.dweight = ref_backward_dot(b->dout, a->v + j * a->v_row, a->v_col, a->dv);
  }
  ref_backward_pair(&pair, a->scale, a->softcap, b->lse, b->delta, a->keep ? a->keep[j] : 1.0f);
  b->weight[j] = pair.weight;
  b->dscore[j] = pair.dscore;
  b->dproduct[j] = pair.dproduct;
}

static void ref_backward_sums(att_attention_backward_row *b) {
  float scores[ATT_LANES] = {0}, distances[ATT_LANES] = {0};
  for (int64_t j = 0; j < b->row->keys; j++) {
    int64_t p = b->row->position, distance = p < j ? j - p : p - j;
    float *score = &scores[j % ATT_LANES], *far = &distances[j % ATT_LANES];
    *score = *score + b->dscore[j];
    *far = v_fma((float)distance, b->dscore[j], *far);
  }
  b->score_sum = ref_tree16(scores);
  b->distance_sum = ref_tree16(distances);
}

/* Terms whose factor is 0 are left out of every chain: a hidden key's, with
 * whatever stands in its place. */
static void ref_attention_backward_row(att_attention_backward_row *b) {
  const att_attention_row *a = b->row;
  for (int64_t j = 0; j < a->keys; j++) ref_backward_key(b, j);
  ref_backward_sums(b);
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
