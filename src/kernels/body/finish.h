/* The ends of attention: spans merged into totals, totals into outputs. Per
 * row a few scalars and one pass over the value width. */

/* o = o * a + so * b as one multiply and one multiply-add; so NULL: zero. */
V_INLINE void body_mix(float *o, const float *so, float a, float b, int64_t n) {
  vf va = v_set1(a), vb = v_set1(b);
  for (int64_t c = 0; c < n; c += VN) {
    int lanes = n - c < VN ? (int)(n - c) : VN;
    vf other = so ? v_load_n(so + c, lanes) : v_set1(0.0f);
    v_store_n(o + c, v_fma(v_load_n(o + c, lanes), va, v_mul(other, vb)), lanes);
  }
}

/* (m, l, o) with (sm, sl, so); a and b are exp(m - m') and exp(sm - m'). */
V_INLINE void body_merge(float *m, float *l, float *o, float sm, float sl, const float *so, float a,
                         float b, int64_t n) {
  if (sm == -INFINITY && sl == 0.0f) return;
  if (*m == -INFINITY && *l == 0.0f) {
    *m = sm;
    *l = sl;
    for (int64_t c = 0; c < n; c++) o[c] = so ? so[c] : 0.0f;
    return;
  }
  *l = v_first(v_fma(v_set1(*l), v_set1(a), v_set1(sl * b)));
  body_mix(o, so, a, b, n);
  *m = *m < sm ? sm : *m;
}

/* The factors of up to 16 rows at once. */
V_INLINE void body_merge_factors(float a[VN], float b[VN], const float *m, const float *sm,
                                 int rows) {
  vf x = v_load_n(m, rows), y = v_load_n(sm, rows), top = v_max(x, y);
  v_store(a, v_exp(v_sub(x, top)));
  v_store(b, v_exp(v_sub(y, top)));
}

static void body_merge_rows(const att_merge_rows *g) {
  float a[VN], b[VN];
  for (int64_t r = 0; r < g->rows; r++) {
    int64_t left = g->rows - r, lane = r % VN;
    if (lane == 0) body_merge_factors(a, b, g->m + r, g->sm + r, left < VN ? (int)left : VN);
    body_merge(g->m + r, g->l + r, g->o + r * g->o_row, g->sm[r], g->sl[r], g->so + r * g->so_row,
               a[lane], b[lane], g->n);
  }
}

static void body_finish_sinks(const att_finish_rows *f) {
  for (int64_t r = 0; r < f->rows; r++) {
    const float *o = f->o + r * f->o_row;
    float *out = f->out + r * f->out_row, a[VN], b[VN];
    for (int64_t c = 0; c < f->n; c++) out[c] = o[c];
    if (f->sink[r] == -INFINITY) continue;
    body_merge_factors(a, b, f->m + r, f->sink + r, 1);
    body_merge(f->m + r, f->l + r, out, f->sink[r], 1.0f, NULL, a[0], b[0], f->n);
  }
}

static void body_finish_lse(const att_finish_rows *f) {
  for (int64_t r = 0; r < f->rows; r += VN) {
    int rows = f->rows - r < VN ? (int)(f->rows - r) : VN;
    vf none = v_set1(-INFINITY), m = v_load_n(f->m + r, rows), l = v_load_n(f->l + r, rows);
    vm empty = vm_and(v_eq(m, none), v_eq(l, v_set1(0.0f)));
    v_store_n(f->lse + r, v_select(empty, none, v_add(m, v_log(l))), rows);
  }
}

static void body_finish_rows(const att_finish_rows *f) {
  if (f->sink) body_finish_sinks(f);
  for (int64_t r = 0; r < f->rows; r++) {
    float *out = f->out + r * f->out_row;
    const float *o = f->sink ? out : f->o + r * f->o_row;
    bool empty = f->m[r] == -INFINITY && f->l[r] == 0.0f;
    vf scale = v_set1(1.0f / f->l[r]), zero = v_set1(0.0f);
    int64_t c = 0;
    for (; !empty && c + VN <= f->n; c += VN)
      v_store(out + c, v_add(v_mul(v_load(o + c), scale), zero));
    for (; c < f->n; c += VN) {
      int lanes = f->n - c < VN ? (int)(f->n - c) : VN;
      vf x = v_add(v_mul(v_load_n(o + c, lanes), scale), zero);
      v_store_n(out + c, empty ? zero : x, lanes);
    }
  }
  if (f->lse) body_finish_lse(f);
}
