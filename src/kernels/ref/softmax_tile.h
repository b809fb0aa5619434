/* The same steps for several rows of one block at once, as the tiled path
 * calls them: scores are already products, values are multiplied elsewhere. */

/* Final scores of row r in place; is any of them live? */
static bool ref_scores(const att_softmax_tile *t, int64_t r) {
  float *s = t->s + r * t->s_row;
  bool live = false;
  for (int64_t c = 0; c < t->cols; c++) {
    bool visible = (!t->low || (c >= t->low[r] && c < t->high[r])) &&
                   (!t->visible || t->visible[r * t->visible_row + c]);
    float x = t->scale * s[c];
    if (t->softcap < INFINITY) x = t->softcap * v_tanh(x / t->softcap);
    if (t->bias) {
      float bias = t->bias[r][c * t->bias_col];
      visible &= bias != -INFINITY;
      x = x + bias;
    }
    if (t->slope && t->slope[r] != 0.0f) {
      int64_t distance = t->position[r] - (t->first_key + c);
      x = v_fma(-t->slope[r], (float)(distance < 0 ? -distance : distance), x);
    }
    s[c] = visible ? x : -INFINITY;
    live |= s[c] != -INFINITY;
  }
  return live;
}

static void ref_softmax_tile(const att_softmax_tile *t) {
  for (int64_t r = 0; r < t->rows; r++) {
    float *s = t->s + r * t->s_row, hidden = t->mark_hidden ? -0.0f : 0.0f;
    t->factor[r] = 1.0f;
    if (!ref_scores(t, r)) {
      for (int64_t c = 0; c < t->cols; c++) s[c] = hidden;
      continue;
    }
    float block_max = ref_max(s, t->cols);
    float new_max = t->m[r] < block_max ? block_max : t->m[r];
    if (t->m[r] != -INFINITY) t->factor[r] = v_exp(t->m[r] - new_max);
    for (int64_t c = 0; c < t->cols; c++) s[c] = s[c] == -INFINITY ? hidden : v_exp(s[c] - new_max);
    t->l[r] = v_fma(t->l[r], t->factor[r], ref_sum(s, t->cols));
    t->m[r] = new_max;
    if (t->keep)
      for (int64_t c = 0; c < t->cols; c++) s[c] = s[c] * t->keep[r * t->keep_row + c];
  }
}

static void ref_weights_tile(const att_weights_tile *t) {
  const att_softmax_tile *scores = &t->scores;
  for (int64_t r = 0; r < scores->rows; r++) {
    const float *s = scores->s + r * scores->s_row;
    float m = scores->m[r], l = scores->l[r], scale = 1.0f / l, log_sum = v_log(l);
    bool empty = m == -INFINITY && l == 0.0f;
    ref_scores(scores, r);
    for (int64_t c = 0; c < scores->cols; c++) {
      float w = empty || s[c] == -INFINITY ? 0.0f : v_exp(s[c] - m) * scale;
      if (t->entropy && w != 0.0f) {
        float *partial = t->entropy + r * ATT_LANES + c % ATT_LANES;
        *partial = *partial - w * (s[c] - m - log_sum);
      }
      if (scores->keep && w != 0.0f) w = w * scores->keep[r * scores->keep_row + c];
      if (t->columns) t->columns[c] = t->columns[c] + w;
      t->w[r * t->w_row + c] = w;
    }
  }
}

static void ref_find_nan(bool *found, const float *x, int64_t n) {
  *found = false;
  for (int64_t i = 0; i < n; i++) *found |= x[i] != x[i];
}

static void ref_merge_rows(const att_merge_rows *g) {
  for (int64_t r = 0; r < g->rows; r++)
    ref_merge(g->m + r, g->l + r, g->o + r * g->o_row, g->sm[r], g->sl[r], g->so + r * g->so_row,
              g->n);
}

static void ref_finish_rows(const att_finish_rows *f) {
  for (int64_t r = 0; r < f->rows; r++) {
    const float *o = f->o + r * f->o_row;
    float *out = f->out + r * f->out_row;
    for (int64_t c = 0; c < f->n; c++) out[c] = o[c];
    if (f->sink && f->sink[r] != -INFINITY)
      ref_merge(f->m + r, f->l + r, out, f->sink[r], 1.0f, NULL, f->n);
    bool empty = f->m[r] == -INFINITY && f->l[r] == 0.0f;
    float scale = 1.0f / f->l[r];
    for (int64_t c = 0; c < f->n; c++) out[c] = empty ? 0.0f : out[c] * scale + 0.0f;
    if (f->lse) f->lse[r] = empty ? -INFINITY : f->m[r] + v_log(f->l[r]);
  }
}
