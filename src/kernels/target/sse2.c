/* Kernels for any x86-64 (SSE2), class muladd. */
#define ATT_FUSED 0
#include "kernels/vec/sse2.h"

#include "kernels/body/bodies.h"
#define ATT_TARGET_SYMBOL sse2
#include "kernels/target/vector_table.h"
