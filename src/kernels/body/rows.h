/* Row operations around attention; lanes are neighbouring elements, tails are
 * the same instructions on fewer lanes. Sums use 16 partial sums: tree16. */

#define V_ROW(c, n, lanes)                                                                         \
  for (int64_t c = 0, lanes = (n) < VN ? (n) : VN; c < (n);                                        \
       c += VN, lanes = (n)-c < VN ? (n)-c : VN)

/* The first n lanes. */
V_INLINE vm body_lanes(int64_t n) { return vi_lt(vi_iota(), vi_set1((int32_t)n)); }

static void body_softmax(float *y, const float *x, int64_t n) {
  vf top = v_set1(-INFINITY);
  V_ROW(c, n, lanes) {
    vf a = v_load_n(x + c, (int)lanes);
    top = v_max(top, lanes == VN ? a : v_select(body_lanes(lanes), a, top));
  }
  vf m = v_set1(v_max16(top)), sum = v_set1(0.0f);
  V_ROW(c, n, lanes) {
    vf e = v_exp(v_sub(v_load_n(x + c, (int)lanes), m));
    v_store_n(y + c, e, (int)lanes);
    sum = v_add(sum, v_load_n(y + c, (int)lanes));
  }
  vf scale = v_set1(1.0f / v_tree16(sum));
  V_ROW(c, n, lanes) v_store_n(y + c, v_mul(v_load_n(y + c, (int)lanes), scale), (int)lanes);
}

V_INLINE float body_scale_of_squares(const float *x, int64_t n, float eps) {
  vf sum = v_set1(0.0f);
  V_ROW(c, n, lanes) {
    vf a = v_load_n(x + c, (int)lanes);
    sum = v_fma(a, a, sum);
  }
  return 1.0f / v_first(v_sqrt(v_set1(v_tree16(sum) / (float)n + eps)));
}

static void body_rms_norm(float *y, const float *x, const float *w, int64_t n, float eps) {
  vf scale = v_set1(body_scale_of_squares(x, n, eps));
  V_ROW(c, n, lanes)
  v_store_n(y + c, v_mul(v_mul(v_load_n(x + c, (int)lanes), scale), v_load_n(w + c, (int)lanes)),
            (int)lanes);
}

static void body_layer_norm(float *y, const float *x, const float *w, const float *b, int64_t n,
                            float eps) {
  vf sum = v_set1(0.0f);
  V_ROW(c, n, lanes) sum = v_add(sum, v_load_n(x + c, (int)lanes));
  vf mean = v_set1(v_tree16(sum) / (float)n);
  V_ROW(c, n, lanes) v_store_n(y + c, v_sub(v_load_n(x + c, (int)lanes), mean), (int)lanes);
  vf scale = v_set1(body_scale_of_squares(y, n, eps));
  V_ROW(c, n, lanes) {
    vf a = v_mul(v_load_n(y + c, (int)lanes), scale);
    if (w) a = v_mul(a, v_load_n(w + c, (int)lanes));
    if (b) a = v_add(a, v_load_n(b + c, (int)lanes));
    v_store_n(y + c, a, (int)lanes);
  }
}

static void body_add(float *y, const float *a, const float *b, int64_t n) {
  V_ROW(c, n, lanes)
  v_store_n(y + c, v_add(v_load_n(a + c, (int)lanes), v_load_n(b + c, (int)lanes)), (int)lanes);
}

static void body_silu_mul(float *y, const float *gate, const float *up, int64_t n) {
  V_ROW(c, n, lanes)
  v_store_n(y + c, v_mul(v_silu(v_load_n(gate + c, (int)lanes)), v_load_n(up + c, (int)lanes)),
            (int)lanes);
}

static void body_rope_half(float *y, const float *x, const float *cosine, const float *sine,
                           int64_t pairs) {
  V_ROW(c, pairs, lanes) {
    vf a = v_load_n(x + c, (int)lanes), b = v_load_n(x + pairs + c, (int)lanes);
    vf cs = v_load_n(cosine + c, (int)lanes), sn = v_load_n(sine + c, (int)lanes);
    v_store_n(y + c, v_fma(a, cs, v_neg(v_mul(b, sn))), (int)lanes);
    v_store_n(y + pairs + c, v_fma(a, sn, v_mul(b, cs)), (int)lanes);
  }
}

#define V_MAP(name, function)                                                                      \
  static void body_##name(float *y, const float *x, int64_t n) {                                   \
    V_ROW(c, n, lanes) v_store_n(y + c, function(v_load_n(x + c, (int)lanes)), (int)lanes);        \
  }
V_MAP(gelu_erf, v_gelu_erf)
V_MAP(gelu_tanh, v_gelu_tanh)
V_MAP(map_exp, v_exp)
V_MAP(map_log, v_log)
V_MAP(map_tanh, v_tanh)
V_MAP(map_erf, v_erf)
#undef V_MAP
