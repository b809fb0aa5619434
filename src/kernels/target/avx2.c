/* Kernels for x86-64 with AVX2, FMA and F16C, class fma. */
#define ATT_FUSED 1
#include "kernels/vec/avx2.h"

#include "kernels/body/bodies.h"
#define ATT_TARGET_SYMBOL avx2
#include "kernels/target/vector_table.h"
