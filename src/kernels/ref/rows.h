/* Row operations around attention: norms, activations, rotation, softmax. */

static void ref_softmax(float *y, const float *x, int64_t n) {
  float m = ref_max(x, n);
  for (int64_t i = 0; i < n; i++) y[i] = v_exp(x[i] - m);
  float scale = 1.0f / ref_sum(y, n);
  for (int64_t i = 0; i < n; i++) y[i] = y[i] * scale;
}

static void ref_rms_norm(float *y, const float *x, const float *w, int64_t n, float eps) {
  float scale = 1.0f / v_sqrt(ref_sum_of_squares(x, n) / (float)n + eps);
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] * scale) * w[i];
}

static void ref_layer_norm(float *y, const float *x, const float *w, const float *b, int64_t n,
                           float eps) {
  float mean = ref_sum(x, n) / (float)n;
  for (int64_t i = 0; i < n; i++) y[i] = x[i] - mean;
  float scale = 1.0f / v_sqrt(ref_sum_of_squares(y, n) / (float)n + eps);
  for (int64_t i = 0; i < n; i++) {
    y[i] = y[i] * scale;
    if (w) y[i] = y[i] * w[i];
    if (b) y[i] = y[i] + b[i];
  }
}

static void ref_add(float *y, const float *a, const float *b, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void ref_silu_mul(float *y, const float *gate, const float *up, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = v_silu(gate[i]) * up[i];
}

static void ref_gelu_erf(float *y, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = v_gelu_erf(x[i]);
}

static void ref_gelu_tanh(float *y, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = v_gelu_tanh(x[i]);
}

static void ref_rope_half(float *y, const float *x, const float *cosine, const float *sine,
                          int64_t pairs) {
  for (int64_t i = 0; i < pairs; i++) {
    float a = x[i], b = x[i + pairs];
    y[i] = v_fma(a, cosine[i], -(b * sine[i]));
    y[i + pairs] = v_fma(a, sine[i], b * cosine[i]);
  }
}

#define ATT_REF_MAP(function)                                                                      \
  static void ref_map_##function(float *y, const float *x, int64_t n) {                            \
    for (int64_t i = 0; i < n; i++) y[i] = v_##function(x[i]);                                     \
  }
ATT_REF_MAP(exp)
ATT_REF_MAP(log)
ATT_REF_MAP(tanh)
ATT_REF_MAP(erf)
#undef ATT_REF_MAP
