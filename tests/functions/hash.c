/* Prints a hash of the results of every elementary function, by which
 * tools/check_function_bits compares compilers, options and processors. All NaN
 * count as one: their sign and payload are not promised. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "functions/functions.h"
#include "kernels/function32.h"
#include "kernels/function64.h"
#include "ulp.h"

static uint64_t mix(uint64_t hash, double result) {
  uint64_t bits = 1;
  if (!isnan(result)) memcpy(&bits, &result, sizeof bits);
  hash ^= bits;
  return next_bits(&hash);
}

static void hash32(const char *class, const char *name, float (*f)(float)) {
  uint64_t hash = 0;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4003)
    hash = mix(hash, f(float_of_bits((uint32_t)bits)));
  printf("%s %s %016" PRIx64 "\n", class, name, hash);
}

static void hash64(const char *name, double (*f)(double)) {
  uint64_t hash = 0, state = 1;
  for (int i = 0; i < 200000; i++) {
    hash = mix(hash, f(between(&state, -30, 30)));
    hash = mix(hash, f(any_finite(&state)));
  }
  printf("f64 %s %016" PRIx64 "\n", name, hash);
}

static void hash_pow(void) {
  uint64_t hash = 0, state = 1;
  for (int i = 0; i < 200000; i++) {
    double x = fabs(any_finite(&state)), y = between(&state, -745, 710) / att_log64(x);
    hash = mix(hash, att_pow64(x, y));
    float base = (float)between(&state, 0, 10);
    hash = mix(hash, att_pow32(base, (float)between(&state, -90, 90)));
  }
  printf("f64 pow %016" PRIx64 "\n", hash);
}

int main(void) {
  for (int i = 0; i < n_float_functions; i++)
    for (int class = 0; class < CLASSES; class ++)
      hash32(class_names[class], float_functions[i].name, float_functions[i].of[class]);
  hash32("f32", "sin", att_sin32);
  hash32("f32", "cos", att_cos32);
  hash64("exp", att_exp64);
  hash64("log", att_log64);
  hash64("tanh", att_tanh64);
  hash64("erf", att_erf64);
  hash64("sin", att_sin64);
  hash64("cos", att_cos64);
  hash_pow();
  return 0;
}
