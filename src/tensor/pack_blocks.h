/* Blocks of 4 and 6 bits in panels (kernels/ref/tile_blocks.h tells how they lie):
 * the numbers of a file's blocks in another order, none of them changed. */
#ifndef ATT_TENSOR_PACK_BLOCKS_H
#define ATT_TENSOR_PACK_BLOCKS_H

#include <stdint.h>

#include "attend/dtype.h"

/* Bytes that a panel takes for a block of a quantised type; 0: it is not packed so. */
int64_t att_panel_block_bytes(att_dtype dtype);

/* A row [k] of blocks into lane `lane` of a panel, and back, as f32. */
void att_panel_put_blocks(unsigned char *panel, int lane, att_dtype dtype, const unsigned char *row,
                          int64_t k);
void att_panel_row(float *y, const unsigned char *panel, int lane, att_dtype dtype, int64_t k);

#endif
