/* One lane, fused multiply-add. */
#include "functions/functions.h"

#define ATT_FUSED 1
#include "kernels/vec/scalar.h"

#include "kernels/body/vmath.h"

#define FUNCTION(name, exact, highest, fma, muladd, of, rises)                                     \
  float fma_##name(float x) { return v_##name(x); }
#include "functions/functions.inc"
