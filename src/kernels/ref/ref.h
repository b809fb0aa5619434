/* All plain definitions, for a target file that has chosen a class with
 * ATT_FUSED. Every function is static: each table has its own copy, compiled
 * with that file's flags. */
#ifndef ATT_KERNELS_REF_REF_H
#define ATT_KERNELS_REF_REF_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/dtype.h"
#include "base/rng.h"
#include "kernels/kernels.h"
#include "kernels/vec/scalar.h"

#include "kernels/body/vmath.h"

#include "kernels/body/vgrad.h"

#include "kernels/ref/reduce.h"

#include "kernels/ref/attention_row.h"

#include "kernels/ref/attention_backward_row.h"
#include "kernels/ref/backward_rows.h"
#include "kernels/ref/backward_tile.h"
#include "kernels/ref/measure.h"
#include "kernels/ref/pack.h"
#include "kernels/ref/rows.h"
#include "kernels/ref/softmax_tile.h"
#include "kernels/ref/tile_product.h"
#include "kernels/ref/unpack.h"

#include "kernels/ref/tile_blocks.h"
#include "kernels/ref/tile_quantised.h"

#endif
