/* All bodies over plain 16-lane arrays, class fma, on any processor. */
#define ATT_FUSED 1
#include "kernels/vec/generic.h"

#include "kernels/body/bodies.h"
#define ATT_TARGET_SYMBOL generic
#include "kernels/target/vector_table.h"
