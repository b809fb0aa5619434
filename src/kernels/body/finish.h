/* The ends of attention: spans merged into totals, totals into outputs. Per
 * row a few scalars and one pass over the value width. */

V_INLINE float body_exp1(float x) { return v_first(v_exp(v_set1(x))); }

/* o = o * a + so * b as one multiply and one multiply-add; so NULL: zero. */
V_INLINE void body_mix(float *o, const float *so, float a, float b, int64_t n) {
  vf va = v_set1(a), vb = v_set1(b);
  for (int64_t c = 0; c < n; c += VN) {
    int lanes = n - c < VN ? (int)(n - c) : VN;
    vf other = so ? v_load_n(so + c, lanes) : v_set1(0.0f);
    v_store_n(o + c, v_fma(v_load_n(o + c, lanes), va, v_mul(other, vb)), lanes);
  }
}

V_INLINE void body_merge(float *m, float *l, float *o, float sm, float sl, const float *so,
                         int64_t n) {
  if (sm == -INFINITY && sl == 0.0f) return;
  if (*m == -INFINITY && *l == 0.0f) {
    *m = sm;
    *l = sl;
    for (int64_t c = 0; c < n; c++) o[c] = so ? so[c] : 0.0f;
    return;
  }
  float new_max = *m < sm ? sm : *m;
  float a = body_exp1(*m - new_max), b = body_exp1(sm - new_max);
  *l = v_first(v_fma(v_set1(*l), v_set1(a), v_set1(sl * b)));
  body_mix(o, so, a, b, n);
  *m = new_max;
}

static void body_merge_rows(const att_merge_rows *g) {
  for (int64_t r = 0; r < g->rows; r++)
    body_merge(g->m + r, g->l + r, g->o + r * g->o_row, g->sm[r], g->sl[r], g->so + r * g->so_row,
               g->n);
}

static void body_finish_rows(const att_finish_rows *f) {
  for (int64_t r = 0; r < f->rows; r++) {
    const float *o = f->o + r * f->o_row;
    float *out = f->out + r * f->out_row;
    if (f->sink && f->sink[r] != -INFINITY) {
      for (int64_t c = 0; c < f->n; c++) out[c] = o[c];
      body_merge(f->m + r, f->l + r, out, f->sink[r], 1.0f, NULL, f->n);
      o = out;
    }
    bool empty = f->m[r] == -INFINITY && f->l[r] == 0.0f;
    vf scale = v_set1(1.0f / f->l[r]), zero = v_set1(0.0f);
    for (int64_t c = 0; c < f->n; c += VN) {
      int lanes = f->n - c < VN ? (int)(f->n - c) : VN;
      vf x = v_add(v_mul(v_load_n(o + c, lanes), scale), zero);
      v_store_n(out + c, empty ? zero : x, lanes);
    }
    if (f->lse) f->lse[r] = empty ? -INFINITY : f->m[r] + v_first(v_log(v_set1(f->l[r])));
  }
}
