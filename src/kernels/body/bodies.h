/* All bodies, for a target file that has chosen a class (ATT_FUSED) and a
 * vector vocabulary. Everything is static: each target has its own copy,
 * compiled with its own instruction-set flags. */
#ifndef ATT_KERNELS_BODY_BODIES_H
#define ATT_KERNELS_BODY_BODIES_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/dtype.h"
#include "base/rng.h"
#include "kernels/kernels.h"

#define V_INLINE static inline __attribute__((always_inline))

#include "kernels/body/vmath.h"

#include "kernels/body/vgrad.h"

#include "kernels/body/dropout.h"
#include "kernels/body/finish.h"
#include "kernels/body/measure.h"
#include "kernels/body/pack.h"
#include "kernels/body/rows.h"

#include "kernels/body/backward_rows.h"
#include "kernels/body/softmax_tile.h"
#include "kernels/body/tile_product.h"
#include "kernels/body/unpack.h"

#include "kernels/body/tile_quantised.h"

#include "kernels/body/tile_blocks.h"

#include "kernels/body/backward_tile.h"

#endif
