/* Kernels for WebAssembly with SIMD128, class muladd. */
#define ATT_FUSED 0
#include "kernels/vec/wasm128.h"

#include "kernels/body/bodies.h"
#define ATT_TARGET_SYMBOL wasm128
#include "kernels/target/vector_table.h"
