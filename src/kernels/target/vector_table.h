/* Emits att_target_<symbol>: the rows that exist as bodies, over a table that
 * holds the plain definition. the attention rows stay plain: they are the
 * definitions that the tiled paths are checked against. */
#include "kernels/target/targets.h"

void ATT_TARGET_FUNCTION(ATT_TARGET_SYMBOL)(att_kernels *table) {
  att_kernels plain = *table;
  *table = (att_kernels){
      .numerics = ATT_FUSED ? "fma" : "muladd",
      .tile_rows = V_TILE_ROWS,
      .tiled = true,
#define body_attention_row plain.attention_row
#define body_attention_backward_row plain.attention_backward_row
#define ATT_KERNEL(name, parameters, contract) .name = body_##name,
#include "kernels/kernels.inc"
#undef ATT_KERNEL
#undef body_attention_row
#undef body_attention_backward_row
  };
}
