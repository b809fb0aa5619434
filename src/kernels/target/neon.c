/* Kernels for aarch64 with NEON, which all have, class fma. */
#define ATT_FUSED 1
#include "kernels/vec/neon.h"

#include "kernels/body/bodies.h"
#define ATT_TARGET_SYMBOL neon
#include "kernels/target/vector_table.h"
