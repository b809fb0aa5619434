/* Emits att_target_<symbol>: a table whose every row is the plain definition. */
#include "kernels/target/targets.h"

void ATT_TARGET_FUNCTION(ATT_TARGET_SYMBOL)(att_kernels *table) {
  *table = (att_kernels){
      .numerics = ATT_FUSED ? "fma" : "muladd",
      .tile_rows = 1,
      .tiled = false,
#define ATT_KERNEL(name, parameters, contract) .name = ref_##name,
#include "kernels/kernels.inc"
#undef ATT_KERNEL
  };
}
