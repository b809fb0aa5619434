/* What training computes along rows: the way back through norms and
 * activations, cross-entropy, sums over rows, the optimiser's step. */

/* forward: y = (x r) w, r = 1 / sqrt(mean(x^2) + eps), hat = x r
 * g = dy w;  dx = r (g - hat mean(g hat));  dw = dy hat */
static void ref_rms_norm_backward(float *dx, float *dw, const float *dy, const float *x,
                                  const float *w, int64_t n, float eps) {
  float scale = 1.0f / v_sqrt(ref_sum_of_squares(x, n) / (float)n + eps);
  float partial[ATT_LANES] = {0}, *hat = dw;
  for (int64_t i = 0; i < n; i++) {
    hat[i] = x[i] * scale;
    dx[i] = dy[i] * w[i];
    partial[i % ATT_LANES] = v_fma(dx[i], hat[i], partial[i % ATT_LANES]);
  }
  float mean = ref_tree16(partial) / (float)n;
  for (int64_t i = 0; i < n; i++) {
    dx[i] = scale * v_fma(-hat[i], mean, dx[i]);
    dw[i] = dy[i] * hat[i];
  }
}

/* forward: y = hat w + b, hat = (x - mean(x)) r, r = 1 / sqrt(var + eps)
 * g = dy w;  dx = r (g - mean(g) - hat mean(g hat));  dw = dy hat */
static void ref_layer_norm_backward(float *dx, float *dw, const float *dy, const float *x,
                                    const float *w, int64_t n, float eps) {
  float center = ref_sum(x, n) / (float)n, *hat = dw;
  for (int64_t i = 0; i < n; i++) hat[i] = x[i] - center;
  float scale = 1.0f / v_sqrt(ref_sum_of_squares(hat, n) / (float)n + eps);
  float partial[ATT_LANES] = {0};
  for (int64_t i = 0; i < n; i++) {
    hat[i] = hat[i] * scale;
    dx[i] = w ? dy[i] * w[i] : dy[i];
    partial[i % ATT_LANES] = v_fma(dx[i], hat[i], partial[i % ATT_LANES]);
  }
  float mean = ref_sum(dx, n) / (float)n, mean_hat = ref_tree16(partial) / (float)n;
  for (int64_t i = 0; i < n; i++) {
    dx[i] = scale * v_fma(-hat[i], mean_hat, dx[i] - mean);
    dw[i] = dy[i] * hat[i];
  }
}

static void ref_gelu_erf_backward(float *dx, const float *dy, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) dx[i] = dy[i] * v_gelu_erf_slope(x[i]);
}

static void ref_gelu_tanh_backward(float *dx, const float *dy, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) dx[i] = dy[i] * v_gelu_tanh_slope(x[i]);
}

/* forward: y = silu(gate) up */
static void ref_silu_mul_backward(float *dgate, float *dup, const float *dy, const float *gate,
                                  const float *up, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    float g = gate[i], u = up[i], d = dy[i];
    dgate[i] = (d * u) * v_silu_slope(g);
    dup[i] = d * v_silu(g);
  }
}

/* loss = (m + log l) - x_target, l = sum exp(x - m);  d = (exp(x - m) / l - [target]) scale */
static void ref_cross_entropy(float *loss, float *d, const float *x, int64_t n, int64_t target,
                              float scale) {
  float m = ref_max(x, n), x_target = x[target];
  float partial[ATT_LANES] = {0};
  for (int64_t i = 0; i < n; i++) {
    float e = v_exp(x[i] - m);
    partial[i % ATT_LANES] = partial[i % ATT_LANES] + e;
    if (d) d[i] = e;
  }
  float l = ref_tree16(partial), inverse = 1.0f / l;
  *loss = (m + v_log(l)) - x_target;
  for (int64_t i = 0; d && i < n; i++)
    d[i] = (i == target ? d[i] * inverse - 1.0f : d[i] * inverse) * scale;
}

static void ref_adamw(const att_adamw *step) {
  for (int64_t i = 0; i < step->n; i++)
    step->w[i] = v_adamw(&step->m[i], &step->v[i], step->w[i], step->g[i], step);
}
