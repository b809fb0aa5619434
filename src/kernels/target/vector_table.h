/* Emits att_target_<symbol>: the rows that exist as bodies, over a table that
 * holds the plain definition. attention_row stays plain: it is the definition
 * that the tiled path is checked against. */
#include "kernels/target/targets.h"

void ATT_TARGET_FUNCTION(ATT_TARGET_SYMBOL)(att_kernels *table) {
  att_kernels plain = *table;
  *table = (att_kernels){
      .numerics = ATT_FUSED ? "fma" : "muladd",
      .tile_rows = V_TILE_ROWS,
      .tiled = true,
#define body_attention_row plain.attention_row
#define ATT_KERNEL(name, parameters, contract) .name = body_##name,
#include "kernels/kernels.inc"
#undef ATT_KERNEL
#undef body_attention_row
  };
}
