/* One lane, multiply, then add. */
#include "functions/functions.h"

#define ATT_FUSED 0
#include "kernels/vec/scalar.h"

#include "kernels/body/vmath.h"

#define FUNCTION(name, exact, highest, fma, muladd, of, rises)                                     \
  float muladd_##name(float x) { return v_##name(x); }
#include "functions/functions.inc"
