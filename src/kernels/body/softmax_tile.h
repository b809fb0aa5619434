/* One block of online softmax for several rows: lanes are keys.
 *
 * Sixteen rows go through three passes: scores and their largest, then the
 * rescaling factors of all sixteen rows in one vector, then exponentials and
 * their sum. The order of every sum is that of ref/softmax_tile.h. */

V_INLINE vf body_alibi(vf x, const att_softmax_tile *t, int64_t r, int64_t c) {
  int64_t relative = t->position[r] - (t->first_key + c);
  vf distance = v_abs(v_from_int(vi_sub(vi_set1((int32_t)relative), vi_iota())));
  return v_fma(v_set1(-t->slope[r]), distance, x);
}

V_INLINE vf body_bias(vf x, const att_softmax_tile *t, int64_t r, int64_t c, int n) {
  const float *from = t->bias[r] + c * t->bias_col;
  float strided[VN] = {0};
  vf bias, hidden = v_set1(-INFINITY);
  if (t->bias_col == 1) {
    bias = v_load_n(from, n);
  } else {
    for (int i = 0; i < n; i++) strided[i] = from[i * t->bias_col];
    bias = v_load(strided);
  }
  return v_select(v_eq(bias, hidden), hidden, v_add(x, bias)); /* even if x is NaN */
}

/* Which of the 16 columns from c on row r sees. */
V_INLINE vm body_visible(const att_softmax_tile *t, int64_t r, int64_t c, int n) {
  int64_t low = t->low ? t->low[r] - c : 0, high = t->low ? t->high[r] - c : n;
  if (high > n) high = n;
  vm inside = vm_and(vm_not(vi_lt(vi_iota(), vi_set1((int32_t)low))),
                     vi_lt(vi_iota(), vi_set1((int32_t)high)));
  if (t->visible) inside = vm_and(inside, vm_load_bytes(t->visible + r * t->visible_row + c, n));
  return inside;
}

/* Final scores of row r in place; true if a key is live. `extras` is a constant
 * at each call. */
V_INLINE bool body_scores(const att_softmax_tile *t, int64_t r, float *largest, const bool extras) {
  float *s = t->s + r * t->s_row;
  vf hidden = v_set1(-INFINITY), scale = v_set1(t->scale), top = hidden;
  for (int64_t c = 0; c < t->cols; c += VN) {
    int n = t->cols - c < VN ? (int)(t->cols - c) : VN;
    vf x = v_mul(scale, v_load(s + c));
    if (extras) {
      if (t->softcap < INFINITY) {
        vf cap = v_set1(t->softcap);
        x = v_mul(cap, v_tanh(v_div(x, cap)));
      }
      if (t->bias) x = body_bias(x, t, r, c, n);
      if (t->slope && t->slope[r] != 0.0f) x = body_alibi(x, t, r, c);
    }
    x = v_select(body_visible(t, r, c, n), x, hidden);
    top = v_max(top, x);
    v_store(s + c, x);
  }
  *largest = v_max16(top);
  if (*largest != -INFINITY) return true;
  for (int64_t c = 0; c < t->cols; c++) /* all hidden, or NaN that a max never picks */
    if (s[c] != -INFINITY) return true;
  return false;
}

/* The same where nothing is hidden and scale > 0: multiplying and rounding keep
 * the order, so the largest product gives the largest score, and the scale can
 * wait until the exponentials. */
V_INLINE bool body_largest(const att_softmax_tile *t, int64_t r, float *largest) {
  const float *s = t->s + r * t->s_row;
  vf top = v_load(s);
  top = v_max(v_set1(-INFINITY), top);
  for (int64_t c = VN; c < t->cols; c += VN) top = v_max(top, v_load(s + c));
  *largest = t->scale * v_max16(top);
  if (*largest != -INFINITY) return true;
  for (int64_t c = 0; c < t->cols; c++) /* NaN, or products of -inf */
    if (s[c] != -INFINITY) return true;
  return false;
}

/* Exponentials of row r in place, their sum into l. Columns past `cols` become
 * zeros: they hold -inf after a masked pass. */
V_INLINE void body_exponentials(const att_softmax_tile *t, int64_t r, float new_max, float factor,
                                const bool scaled, const bool mark) {
  float *s = t->s + r * t->s_row;
  vf m = v_set1(new_max), sum = v_set1(0.0f), scale = v_set1(t->scale);
  vf hidden = v_set1(-INFINITY), zero = v_set1(-0.0f);
  for (int64_t c = 0; c < t->cols; c += VN) {
    vf x = v_load(s + c);
    if (!scaled) x = v_mul(scale, x);
    vf e = v_exp_le88(v_sub(x, m));
    if (mark) e = v_select(v_eq(x, hidden), zero, e);
    sum = v_add(sum, e);
    v_store(s + c, e);
  }
  vf l = v_fma(v_set1(t->l[r]), v_set1(factor), v_set1(v_tree16(sum)));
  t->l[r] = v_first(l);
  t->m[r] = new_max;
  if (t->keep)
    for (int64_t c = 0; c < t->cols; c++) s[c] = s[c] * t->keep[r * t->keep_row + c];
}

static void body_softmax_rows(const att_softmax_tile *t, int64_t first, int rows) {
  float old_max[VN] = {0}, new_max[VN] = {0};
  bool live[VN], extras = t->softcap < INFINITY || t->bias || t->slope;
  bool masked = t->low || t->visible || t->cols % VN;
  bool scaled = extras || masked || !(t->scale > 0.0f);
  for (int i = 0; i < rows; i++) {
    int64_t r = first + i;
    float largest;
    live[i] = extras   ? body_scores(t, r, &largest, true)
              : scaled ? body_scores(t, r, &largest, false)
                       : body_largest(t, r, &largest);
    old_max[i] = t->m[r];
    new_max[i] = old_max[i] < largest ? largest : old_max[i];
  }
  vf old = v_load(old_max);
  vf factor = v_exp(v_sub(old, v_load(new_max)));
  factor = v_select(v_eq(old, v_set1(-INFINITY)), v_set1(1.0f), factor);
  float factors[VN];
  v_store(factors, factor);
  for (int i = 0; i < rows; i++) {
    int64_t r = first + i;
    t->factor[r] = live[i] ? factors[i] : 1.0f;
    if (!live[i])
      for (int64_t c = 0; c < t->cols; c += VN)
        v_store(t->s + r * t->s_row + c, v_set1(t->mark_hidden ? -0.0f : 0.0f));
    else if (t->mark_hidden)
      body_exponentials(t, r, new_max[i], factors[i], scaled, true);
    else if (scaled)
      body_exponentials(t, r, new_max[i], factors[i], true, false);
    else
      body_exponentials(t, r, new_max[i], factors[i], false, false);
  }
}

static void body_softmax_tile(const att_softmax_tile *t) {
  for (int64_t r = 0; r < t->rows; r += VN)
    body_softmax_rows(t, r, t->rows - r < VN ? (int)(t->rows - r) : VN);
}

static void body_find_nan(bool *found, const float *x, int64_t n) {
  vm odd = v_ne(v_set1(0.0f), v_set1(0.0f));
  for (int64_t c = 0; c < n; c += VN) {
    vf a = n - c < VN ? v_load_n(x + c, (int)(n - c)) : v_load(x + c);
    odd = vm_or(odd, v_ne(a, a));
  }
  *found = vm_any(odd);
}
