/* Kernels for x86-64 with AVX-512 (F, BW, DQ, VL), class fma. */
#define ATT_FUSED 1
#include "kernels/vec/avx512.h"

#include "kernels/body/bodies.h"
#define ATT_TARGET_SYMBOL avx512
#include "kernels/target/vector_table.h"
