/* The middle of attention's backward: lanes are keys. Scores are made as in
 * softmax_tile.h; what the row has passed through then is known to be final, so
 * a pair needs one exponential and no maximum. */

/* |position - key| of 16 columns. */
V_INLINE vf body_distance(const att_softmax_tile *t, int64_t r, int64_t c) {
  int64_t relative = t->position[r] - (t->first_key + c);
  return v_abs(v_from_int(vi_sub(vi_set1((int32_t)relative), vi_iota())));
}

/* A pair's numbers before and after: q . k and dout . v, then the weight and the
 * gradient of q . k. */
V_INLINE void body_backward_lanes(const att_backward_tile *b, int64_t r, int64_t c,
                                  const bool extras, const bool masked) {
  const att_softmax_tile *t = &b->scores;
  int n = t->cols - c < VN ? (int)(t->cols - c) : VN;
  vf hidden = v_set1(-INFINITY), zero = v_set1(0.0f), scale = v_set1(t->scale), slope = zero;
  float *s = t->s + r * t->s_row + c, *d = b->d + r * b->d_row + c;
  vf x = v_mul(scale, v_load(s)), keep = v_set1(1.0f);
  if (extras) {
    if (t->softcap < INFINITY) {
      slope = v_tanh(v_div(x, v_set1(t->softcap)));
      x = v_mul(v_set1(t->softcap), slope);
      slope = v_fma(v_neg(slope), slope, v_set1(1.0f));
    }
    if (t->bias) x = body_bias(x, t, r, c, n);
    if (t->slope && t->slope[r] != 0.0f) x = v_fma(v_set1(-t->slope[r]), body_distance(t, r, c), x);
  }
  if (masked) x = v_select(body_visible(t, r, c, n), x, hidden);
  vm live = v_ne(x, hidden);
  vf weight = v_select(live, v_exp(v_sub(x, v_set1(b->lse[r]))), zero), dweight = v_load(d);
  if (extras && t->keep) {
    keep = v_load_n(t->keep + r * t->keep_row + c, n);
    dweight = v_select(v_eq(keep, zero), zero, v_mul(keep, dweight));
  }
  v_store(s, extras ? v_mul(weight, keep) : weight);
  vf dscore = v_select(live, v_mul(weight, v_sub(dweight, v_set1(b->delta[r]))), zero);
  vf dproduct = extras && t->softcap < INFINITY ? v_mul(dscore, slope) : dscore;
  v_store(d, v_select(live, v_mul(dproduct, scale), zero));
  if (!extras) return;
  if (b->dscore) v_store(b->dscore + r * b->dscore_row + c, dscore);
  if (b->score_sums) {
    float *sum = b->score_sums + r * VN;
    v_store(sum, v_add(v_load(sum), dscore));
  }
  if (b->distance_sums) {
    float *sum = b->distance_sums + r * VN;
    v_store(sum, v_fma(body_distance(t, r, c), dscore, v_load(sum)));
  }
}

static void body_backward_tile(const att_backward_tile *b) {
  const att_softmax_tile *t = &b->scores;
  bool extras = t->softcap < INFINITY || t->bias || t->slope || t->keep || b->dscore ||
                b->score_sums || b->distance_sums;
  bool masked = t->low || t->visible || t->cols % VN;
  for (int64_t r = 0; r < t->rows; r++) {
    if (extras)
      for (int64_t c = 0; c < t->cols; c += VN) body_backward_lanes(b, r, c, true, masked);
    else if (masked)
      for (int64_t c = 0; c < t->cols; c += VN) body_backward_lanes(b, r, c, false, true);
    else
      for (int64_t c = 0; c < t->cols; c += VN) body_backward_lanes(b, r, c, false, false);
  }
}

static void body_dot(float *out, const float *a, const float *b, int64_t n) {
  vf sum = v_set1(0.0f);
  int64_t i = 0;
  for (; i + VN <= n; i += VN) sum = v_fma(v_load(a + i), v_load(b + i), sum);
  if (i < n) sum = v_fma(v_load_n(a + i, (int)(n - i)), v_load_n(b + i, (int)(n - i)), sum);
  *out = v_tree16(sum);
}

/* x - x is 0, or NaN where x is none or infinite. */
static void body_is_finite(bool *finite, const float *x, int64_t n) {
  vm odd = v_ne(v_set1(0.0f), v_set1(0.0f));
  for (int64_t i = 0; i < n; i += VN) {
    vf a = n - i < VN ? v_load_n(x + i, (int)(n - i)) : v_load(x + i);
    odd = vm_or(odd, v_ne(v_sub(a, a), v_set1(0.0f)));
  }
  *finite = !vm_any(odd);
}

#define V_WIDEN(suffix)                                                                            \
  static void body_widen_##suffix(float *y, const uint16_t *x, int64_t n) {                        \
    int64_t i = 0;                                                                                 \
    for (; i + VN <= n; i += VN) v_store(y + i, v_load_##suffix(x + i));                           \
    for (; i < n; i++) y[i] = att_##suffix##_to_f32(x[i]);                                         \
  }
V_WIDEN(f16)
V_WIDEN(bf16)
#undef V_WIDEN
