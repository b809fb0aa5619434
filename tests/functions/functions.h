/* The functions of kernels/body/vmath.h on one lane, compiled once for each
 * numeric class, as a table for tests. */
#ifndef ATT_TESTS_FUNCTIONS_H
#define ATT_TESTS_FUNCTIONS_H

#include <stdbool.h>

#define FUNCTION(name, exact, highest, fma, muladd, of, rises)                                     \
  float fma_##name(float x);                                                                       \
  float muladd_##name(float x);
#include "functions/functions.inc"
#undef FUNCTION

enum { FMA, MULADD, CLASSES };
static const char *const class_names[CLASSES] = {"fma", "muladd"};

typedef struct float_function {
  const char *name;
  float (*of[CLASSES])(float);
  double (*exact)(double);
  float highest; /* largest argument */
  double bound[CLASSES];
  enum { VALUE, ARGUMENT } ulp_of;
  bool rises;
} float_function;

extern const float_function float_functions[];
extern const int n_float_functions;

#endif
