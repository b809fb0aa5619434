/* Slopes of the activations of body/vmath.h and the other formulas that a
 * training step applies element by element, once for all lanes and targets.
 * Each quotes the forward line it belongs to. */
#ifndef ATT_KERNELS_BODY_VGRAD_H
#define ATT_KERNELS_BODY_VGRAD_H

/* forward: y = x s, s = 1 / (1 + e^-x)
 * y' = s + x s (1 - s) */
static inline vf v_silu_slope(vf x) {
  vf s = v_div(v_set1(1), v_add(v_set1(1), v_exp(v_neg(x))));
  return v_fma(v_mul(x, s), v_sub(v_set1(1), s), s);
}

/* forward: y = x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2
 * y' = Phi(x) + x e^(-x^2/2) / sqrt(2 pi) */
static inline vf v_gelu_erf_slope(vf x) {
  vf below = v_mul(v_set1(0.5f), v_add(v_set1(1), v_erf(v_mul(x, v_set1(0x1.6a09e6p-1f)))));
  vf bell = v_mul(v_exp(v_mul(v_mul(x, x), v_set1(-0.5f))), v_set1(0x1.988454p-2f));
  return v_fma(x, bell, below);
}

/* forward: y = x s, s = 1 / (1 + e^-2u), 2u = x (a + b x^2)
 * y' = s + x s (1 - s) (a + 3 b x^2); far out, where the square overflows, 0 or 1 */
static inline vf v_gelu_tanh_slope(vf x) {
  vf square = v_mul(x, x);
  vf minus = v_fma(square, v_set1(-0x1.2444f2p-4f), v_set1(-0x1.988454p+0f));
  vf s = v_div(v_set1(1), v_add(v_set1(1), v_exp(v_mul(x, minus))));
  vf inner = v_fma(square, v_set1(0x1.b6676cp-3f), v_set1(0x1.988454p+0f));
  inner = v_min(inner, v_set1(0x1p127f));
  return v_fma(v_mul(v_mul(x, s), v_sub(v_set1(1), s)), inner, s);
}

/* Adam with decoupled decay: g is clipped, then
 *   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *   w = w (1 - rate decay) - rate (m c1) / (sqrt(v c2) + eps) */
static inline vf v_adamw(vf *m, vf *v, vf w, vf g, const att_adamw *step) {
  g = v_mul(g, v_set1(step->clip));
  *m = v_fma(v_set1(step->beta1), *m, v_mul(v_set1(step->rest1), g));
  *v = v_fma(v_set1(step->beta2), *v, v_mul(v_set1(step->rest2), v_mul(g, g)));
  vf below = v_add(v_sqrt(v_mul(*v, v_set1(step->correction2))), v_set1(step->eps));
  vf direction = v_div(v_mul(*m, v_set1(step->correction1)), below);
  return v_fma(v_set1(-step->rate), direction, v_mul(w, v_set1(step->keep)));
}

#endif
