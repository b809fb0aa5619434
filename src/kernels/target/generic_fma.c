/* All bodies over plain 16-lane arrays, class fma, for processors with FMA
 * instructions: shows that a body is right without any one vector instruction. */
#define ATT_FUSED 1
#include "kernels/vec/generic.h"

#include "kernels/body/bodies.h"
#define ATT_TARGET_SYMBOL generic_fma
#include "kernels/target/vector_table.h"
