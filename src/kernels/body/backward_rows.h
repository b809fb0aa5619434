/* What training computes along rows; lanes are neighbouring elements. The
 * formulas are those of ref/backward_rows.h. */

/* hat = x * scale, dx = dy * w; gives back tree16 of dx hat. */
V_INLINE float body_norm_products(float *dx, float *hat, const float *dy, const float *x,
                                  const float *w, int64_t n, vf scale) {
  vf sum = v_set1(0.0f);
  V_ROW(c, n, lanes) {
    vf g = v_load_n(dy + c, (int)lanes), h = v_mul(v_load_n(x + c, (int)lanes), scale);
    if (w) g = v_mul(g, v_load_n(w + c, (int)lanes));
    v_store_n(dx + c, g, (int)lanes);
    v_store_n(hat + c, h, (int)lanes);
    vf next = v_fma(g, h, sum);
    sum = lanes == VN ? next : v_select(body_lanes(lanes), next, sum);
  }
  return v_tree16(sum);
}

/* dx = scale (dx - mean - hat mean_hat), dw = dy hat; dw holds hat. */
V_INLINE void body_norm_finish(float *dx, float *dw, const float *dy, int64_t n, vf scale, vf mean,
                               vf mean_hat, const bool centered) {
  V_ROW(c, n, lanes) {
    vf h = v_load_n(dw + c, (int)lanes), g = v_load_n(dx + c, (int)lanes);
    if (centered) g = v_sub(g, mean);
    v_store_n(dx + c, v_mul(scale, v_fma(v_neg(h), mean_hat, g)), (int)lanes);
    v_store_n(dw + c, v_mul(v_load_n(dy + c, (int)lanes), h), (int)lanes);
  }
}

V_INLINE float body_row_mean(const float *x, int64_t n) {
  vf sum = v_set1(0.0f);
  V_ROW(c, n, lanes) sum = v_add(sum, v_load_n(x + c, (int)lanes));
  return v_tree16(sum) / (float)n;
}

static void body_rms_norm_backward(float *dx, float *dw, const float *dy, const float *x,
                                   const float *w, int64_t n, float eps) {
  vf scale = v_set1(body_scale_of_squares(x, n, eps));
  vf mean_hat = v_set1(body_norm_products(dx, dw, dy, x, w, n, scale) / (float)n);
  body_norm_finish(dx, dw, dy, n, scale, v_set1(0), mean_hat, false);
}

static void body_layer_norm_backward(float *dx, float *dw, const float *dy, const float *x,
                                     const float *w, int64_t n, float eps) {
  vf center = v_set1(body_row_mean(x, n));
  V_ROW(c, n, lanes) v_store_n(dw + c, v_sub(v_load_n(x + c, (int)lanes), center), (int)lanes);
  vf scale = v_set1(body_scale_of_squares(dw, n, eps));
  vf mean_hat = v_set1(body_norm_products(dx, dw, dy, dw, w, n, scale) / (float)n);
  body_norm_finish(dx, dw, dy, n, scale, v_set1(body_row_mean(dx, n)), mean_hat, true);
}

#define V_SLOPE(name, slope)                                                                       \
  static void body_##name(float *dx, const float *dy, const float *x, int64_t n) {                 \
    V_ROW(c, n, lanes)                                                                             \
    v_store_n(dx + c, v_mul(v_load_n(dy + c, (int)lanes), slope(v_load_n(x + c, (int)lanes))),     \
              (int)lanes);                                                                         \
  }
V_SLOPE(gelu_erf_backward, v_gelu_erf_slope)
V_SLOPE(gelu_tanh_backward, v_gelu_tanh_slope)
#undef V_SLOPE

static void body_silu_mul_backward(float *dgate, float *dup, const float *dy, const float *gate,
                                   const float *up, int64_t n) {
  V_ROW(c, n, lanes) {
    vf g = v_load_n(gate + c, (int)lanes), u = v_load_n(up + c, (int)lanes);
    vf d = v_load_n(dy + c, (int)lanes);
    v_store_n(dgate + c, v_mul(v_mul(d, u), v_silu_slope(g)), (int)lanes);
    v_store_n(dup + c, v_mul(d, v_silu(g)), (int)lanes);
  }
}

/* tree16 of exp(x - m), and the exponentials themselves into e unless NULL. */
V_INLINE float body_shifted_exponentials(float *e, const float *x, int64_t n, vf m) {
  vf sum = v_set1(0.0f);
  V_ROW(c, n, lanes) {
    vf y = v_exp(v_sub(v_load_n(x + c, (int)lanes), m));
    if (e) v_store_n(e + c, y, (int)lanes);
    vf next = v_add(sum, y);
    sum = lanes == VN ? next : v_select(body_lanes(lanes), next, sum);
  }
  return v_tree16(sum);
}

static void body_cross_entropy(float *loss, float *d, const float *x, int64_t n, int64_t target,
                               float scale) {
  vf top = v_set1(-INFINITY);
  V_ROW(c, n, lanes) {
    vf a = v_load_n(x + c, (int)lanes);
    top = v_max(top, lanes == VN ? a : v_select(body_lanes(lanes), a, top));
  }
  float m = v_max16(top), x_target = x[target];
  float l = body_shifted_exponentials(d, x, n, v_set1(m)), inverse = 1.0f / l;
  *loss = (m + v_first(v_log(v_set1(l)))) - x_target;
  if (!d) return;
  float at_target = (d[target] * inverse - 1.0f) * scale;
  V_ROW(c, n, lanes) {
    vf p = v_mul(v_load_n(d + c, (int)lanes), v_set1(inverse));
    v_store_n(d + c, v_mul(p, v_set1(scale)), (int)lanes);
  }
  d[target] = at_target;
}

static void body_adamw(const att_adamw *step) {
  V_ROW(c, step->n, lanes) {
    vf m = v_load_n(step->m + c, (int)lanes), v = v_load_n(step->v + c, (int)lanes);
    vf w = v_load_n(step->w + c, (int)lanes), g = v_load_n(step->g + c, (int)lanes);
    w = v_adamw(&m, &v, w, g, step);
    v_store_n(step->m + c, m, (int)lanes);
    v_store_n(step->v + c, v, (int)lanes);
    v_store_n(step->w + c, w, (int)lanes);
  }
}
