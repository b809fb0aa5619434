/* The table, and the exact values: the C library's float64 functions, which are
 * independent of ours and 2^29 times finer than what they judge. */
#include <float.h>
#include <math.h>

#include "functions/functions.h"

static double exp_normal(double x) {
  double y = exp(x);
  return y < FLT_MIN ? 0 : y;
}

static double silu(double x) { return x / (1 + exp(-x)); }

static double gelu_erf(double x) { return 0.5 * x * erfc(-x * sqrt(0.5)); }

static double gelu_tanh(double x) {
  const double two_over_pi = 0.63661977236758134308;
  return x / (1 + exp(-2 * sqrt(two_over_pi) * (x + 0.044715 * x * x * x)));
}

#define FUNCTION(name, exact, highest, fma, muladd, of, rises)                                     \
  {#name, {fma_##name, muladd_##name}, exact, highest, {fma, muladd}, of, rises},
const float_function float_functions[] = {
#include "functions/functions.inc"
};

const int n_float_functions = sizeof float_functions / sizeof float_functions[0];
