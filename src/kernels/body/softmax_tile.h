/* One block of online softmax for several rows: lanes are keys.
 *
 * Sixteen rows go through three passes: scores and their largest, then maxima
 * and rescaling factors of all sixteen rows in one vector, then exponentials and
 * their sums. What is left to add or compare inside a row is turned so that rows
 * become lanes. The order of every sum is that of ref/softmax_tile.h. */

/* Lane i: the largest lane of rows[i], or with `add` their tree16. */
#ifdef V_SPLITS
V_INLINE vf body_fold(vf a, vf b, const int lanes, const bool add) {
  vf low, high;
  v_split(&low, &high, a, b, lanes);
  return add ? v_add(low, high) : v_max(low, high);
}

/* Two rows share a vector after the first step, then four, eight, all: half the
 * shuffles of a transpose. */
V_INLINE vf body_fold_rows(vf rows[VN], const bool add) {
  vf x[VN / 2];
  for (int i = 0; i < 4; i++) {
    x[2 * i] = body_fold(rows[i], rows[i + 4], 8, add);
    x[2 * i + 1] = body_fold(rows[i + 8], rows[i + 12], 8, add);
  }
  for (int i = 0; i < 4; i++) x[i] = body_fold(x[2 * i], x[2 * i + 1], 4, add);
  for (int i = 0; i < 2; i++) x[i] = body_fold(x[2 * i], x[2 * i + 1], 2, add);
  return body_fold(x[0], x[1], 1, add);
}
#else
V_INLINE vf body_fold_rows(vf rows[VN], const bool add) {
  v_transpose16(rows);
  for (int half = VN / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++)
      rows[i] = add ? v_add(rows[i], rows[i + half]) : v_max(rows[i], rows[i + half]);
  return rows[0];
}
#endif

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

/* Lanes low <= i < high. */
V_INLINE vm body_between(int64_t low, int64_t high) {
  return vm_and(vm_not(vi_lt(vi_iota(), vi_set1((int32_t)low))),
                vi_lt(vi_iota(), vi_set1((int32_t)high)));
}

/* Which of the 16 columns from c on row r sees. */
V_INLINE vm body_visible(const att_softmax_tile *t, int64_t r, int64_t c, int n) {
  int64_t low = t->low ? t->low[r] - c : 0, high = t->low ? t->high[r] - c : n;
  if (high > n) high = n;
  vm inside = body_between(low, high);
  if (t->visible) inside = vm_and(inside, vm_load_bytes(t->visible + r * t->visible_row + c, n));
  return inside;
}

/* Final scores of row r in place; gives back their largest, lane by lane.
 * `extras` is a constant at each call. */
V_INLINE vf body_scores(const att_softmax_tile *t, int64_t r, const bool extras) {
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
    if (t->low || t->visible || n < VN) x = v_select(body_visible(t, r, c, n), x, hidden);
    top = v_max(top, x);
    v_store(s + c, x);
  }
  return top;
}

/* Columns first … end-1 that row r sees, if only an interval hides any. */
V_INLINE int64_t body_interval(const att_softmax_tile *t, int64_t r, int64_t *first) {
  *first = t->low ? t->low[r] : 0;
  return t->low && t->high[r] < t->cols ? t->high[r] : t->cols;
}

/* The vector at column c, across an end of the interval: hidden lanes -inf. */
V_INLINE vf body_edge(float *s, int64_t c, int64_t first, int64_t end) {
  vf x = v_select(body_between(first - c, end - c), v_load(s + c), v_set1(-INFINITY));
  v_store(s + c, x);
  return x;
}

/* The largest products of row r, where an interval alone hides keys and scale >
 * 0: multiplying and rounding keep the order, so the scale can wait until the
 * exponentials. */
V_INLINE vf body_products(const att_softmax_tile *t, int64_t r) {
  float *s = t->s + r * t->s_row;
  vf top = v_set1(-INFINITY);
  int64_t first, end = body_interval(t, r, &first), c = first & -VN;
  if (first >= end) return top;
  if (c < first) top = v_max(top, body_edge(s, c, first, end)), c += VN;
  vf second = top; /* two chains: one would wait for itself */
  for (; c + 2 * VN <= end; c += 2 * VN) {
    top = v_max(top, v_load(s + c));
    second = v_max(second, v_load(s + c + VN));
  }
  top = v_max(top, second);
  if (c + VN <= end) top = v_max(top, v_load(s + c)), c += VN;
  if (c < end) top = v_max(top, body_edge(s, c, first, end));
  return top;
}

/* n vectors of scores become exponentials, which are added to the sum in order. */
V_INLINE vf body_exponential_group(float *s, vf sum, vf scale, vf m, const int n, const bool scaled,
                                   const bool mark) {
  vf x[V_CHAINS], e[V_CHAINS], hidden = v_set1(-INFINITY), zero = v_set1(-0.0f);
  for (int i = 0; i < n; i++) {
    x[i] = v_load(s + i * VN);
    if (!scaled) x[i] = v_mul(scale, x[i]);
    e[i] = v_sub(x[i], m);
  }
  v_exp_le88_each(e, n);
  for (int i = 0; i < n; i++) {
    if (mark) e[i] = v_select(v_eq(x[i], hidden), zero, e[i]);
    sum = v_add(sum, e[i]);
    v_store(s + i * VN, e[i]);
  }
  return sum;
}

/* Exponentials of columns first … end-1 of row r in place; their sums, lane by
 * lane. */
V_INLINE vf body_exponentials(const att_softmax_tile *t, int64_t r, float max, int64_t first,
                              int64_t end, const bool scaled, const bool mark) {
  float *s = t->s + r * t->s_row;
  vf m = v_set1(max), sum = v_set1(0.0f), scale = v_set1(t->scale);
  int64_t c = first;
  for (; c + V_CHAINS * VN <= end; c += V_CHAINS * VN)
    sum = body_exponential_group(s + c, sum, scale, m, V_CHAINS, scaled, mark);
  for (; c < end; c += VN) sum = body_exponential_group(s + c, sum, scale, m, 1, scaled, mark);
  return sum;
}

V_INLINE void body_fill(float *s, int64_t first, int64_t end, float x) {
  for (int64_t c = first; c < end; c += VN) v_store(s + c, v_set1(x));
}

/* One row's exponentials by the way its scores were made. Columns that it does
 * not see, and those past `cols`, become zeros. */
V_INLINE vf body_row_sums(const att_softmax_tile *t, int64_t r, float max, bool scaled) {
  float *s = t->s + r * t->s_row;
  if (t->mark_hidden) return body_exponentials(t, r, max, 0, t->cols, true, true);
  if (scaled) return body_exponentials(t, r, max, 0, t->cols, true, false);
  int64_t first, end = body_interval(t, r, &first);
  first &= -VN;
  body_fill(s, 0, first, 0.0f);
  body_fill(s, (end + VN - 1) & -VN, t->cols, 0.0f);
  return body_exponentials(t, r, max, first, end, false, false);
}

/* Does row r have a score that is not -inf? A NaN is one, but no maximum. */
static bool body_is_live(const att_softmax_tile *t, int64_t r, bool scaled) {
  const float *s = t->s + r * t->s_row;
  int64_t first = 0, end = scaled ? t->cols : body_interval(t, r, &first);
  for (int64_t c = first; c < end; c++)
    if (s[c] != -INFINITY) return true;
  return false;
}

/* Up to 16 rows. Lane i of a vector without index belongs to row first + i. */
static void body_softmax_rows(const att_softmax_tile *t, int64_t first, int rows) {
  vf lanes[VN];
  float maxima[VN];
  bool extras = t->softcap < INFINITY || t->bias || t->slope;
  bool scaled = extras || t->visible || t->mark_hidden || !(t->scale > 0.0f);
  for (int i = 0; i < rows; i++)
    lanes[i] = extras   ? body_scores(t, first + i, true)
               : scaled ? body_scores(t, first + i, false)
                        : body_products(t, first + i);
  for (int i = rows; i < VN; i++) lanes[i] = v_set1(0.0f);
  vf largest = body_fold_rows(lanes, false), none = v_set1(-INFINITY);
  if (!scaled) largest = v_mul(v_set1(t->scale), largest);
  vf old = v_load_n(t->m + first, rows), max = v_max(old, largest);
  vf factor = v_select(v_eq(old, none), v_set1(1.0f), v_exp(v_sub(old, max)));
  bool doubtful = vm_any(v_eq(largest, none));
  v_store(maxima, max);
  for (int i = 0; i < rows; i++) {
    int64_t r = first + i;
    if (doubtful && !body_is_live(t, r, scaled)) {
      body_fill(t->s + r * t->s_row, 0, t->cols, t->mark_hidden ? -0.0f : 0.0f);
      lanes[i] = v_set1(0.0f);
      continue;
    }
    lanes[i] = body_row_sums(t, r, maxima[i], scaled);
    if (t->keep)
      for (int64_t c = 0; c < t->cols; c++) t->s[r * t->s_row + c] *= t->keep[r * t->keep_row + c];
  }
  vf l = v_fma(v_load_n(t->l + first, rows), factor, body_fold_rows(lanes, true));
  v_store_n(t->l + first, l, rows);
  v_store_n(t->m + first, max, rows);
  v_store_n(t->factor + first, factor, rows);
}

static void body_softmax_tile(const att_softmax_tile *t) {
  for (int64_t r = 0; r < t->rows; r += VN)
    body_softmax_rows(t, r, t->rows - r < VN ? (int)(t->rows - r) : VN);
}

/* What a row's weights are made with. */
typedef struct body_totals {
  vf scale, max, share, log_sum, entropy;
} body_totals;

/* n vectors of a row's weights from column c on; without `scaled` from products that
 * are all visible. Whole vectors where there are: a masked store would keep the
 * next row's load of the columns waiting. */
V_INLINE void body_weights_group(const att_weights_tile *t, int64_t r, int64_t c, body_totals *row,
                                 const int n, const bool scaled, const bool entropy) {
  const att_softmax_tile *scores = &t->scores;
  float *s = scores->s + r * scores->s_row + c;
  vf x[V_CHAINS], d[V_CHAINS], e[V_CHAINS], hidden = v_set1(-INFINITY), zero = v_set1(0.0f);
  for (int i = 0; i < n; i++) {
    x[i] = v_load(s + i * VN);
    if (!scaled) v_store(s + i * VN, x[i] = v_mul(row->scale, x[i]));
    e[i] = d[i] = v_sub(x[i], row->max);
  }
  v_exp_le88_each(e, n);
  for (int i = 0; i < n; i++) {
    int64_t at = c + i * VN, left = scores->cols - at;
    vf w = v_select(v_eq(x[i], hidden), zero, v_mul(e[i], row->share));
    vm some = v_ne(w, zero);
    if (entropy) {
      vf next = v_sub(row->entropy, v_mul(w, v_sub(d[i], row->log_sum)));
      row->entropy = v_select(some, next, row->entropy);
    }
    if (scores->keep)
      w = v_select(some, v_mul(w, v_load(scores->keep + r * scores->keep_row + at)), w);
    v_store(t->w + r * t->w_row + at, w);
    if (!t->columns) continue;
    if (left >= VN)
      v_store(t->columns + at, v_add(v_load(t->columns + at), w));
    else
      v_store_n(t->columns + at, v_add(v_load_n(t->columns + at, (int)left), w), (int)left);
  }
}

/* One row of weights; a row that has seen nothing has none. */
V_INLINE void body_row_weights(const att_weights_tile *t, int64_t r, float log_sum,
                               const bool scaled, const bool entropy) {
  const float m = t->scores.m[r], l = t->scores.l[r];
  const int64_t cols = t->scores.cols;
  if (m == -INFINITY && l == 0.0f) {
    body_fill(t->w + r * t->w_row, 0, cols, 0.0f);
    if (!scaled) body_scores(&t->scores, r, false);
    return;
  }
  body_totals row = {v_set1(t->scores.scale), v_set1(m), v_set1(1.0f / l), v_set1(log_sum),
                     entropy ? v_load(t->entropy + r * VN) : v_set1(0.0f)};
  int64_t c = 0;
  for (; c + V_CHAINS * VN <= cols; c += V_CHAINS * VN)
    body_weights_group(t, r, c, &row, V_CHAINS, scaled, entropy);
  for (; c < cols; c += VN) body_weights_group(t, r, c, &row, 1, scaled, entropy);
  if (entropy) v_store(t->entropy + r * VN, row.entropy);
}

static void body_weights_tile(const att_weights_tile *t) {
  const att_softmax_tile *scores = &t->scores;
  bool extras = scores->softcap < INFINITY || scores->bias || scores->slope;
  bool scaled = extras || scores->low || scores->visible || scores->cols % VN;
  float logs[VN];
  for (int64_t r = 0; r < scores->rows; r++) {
    int64_t left = scores->rows - r;
    if (r % VN == 0) v_store(logs, v_log(v_load_n(scores->l + r, left < VN ? (int)left : VN)));
    if (scaled) extras ? body_scores(scores, r, true) : body_scores(scores, r, false);
    if (scaled)
      t->entropy ? body_row_weights(t, r, logs[r % VN], true, true)
                 : body_row_weights(t, r, logs[r % VN], true, false);
    else
      t->entropy ? body_row_weights(t, r, logs[r % VN], false, true)
                 : body_row_weights(t, r, logs[r % VN], false, false);
  }
}

static void body_find_nan(bool *found, const float *x, int64_t n) {
  vm odd = v_ne(v_set1(0.0f), v_set1(0.0f));
  for (int64_t c = 0; c < n; c += VN) {
    vf a = n - c < VN ? v_load_n(x + c, (int)(n - c)) : v_load(x + c);
    odd = vm_or(odd, v_ne(a, a));
  }
  *found = vm_any(odd);
}
