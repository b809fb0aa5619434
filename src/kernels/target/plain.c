/* The plain definition, class fma, fmaf from the C library where the
 * processor has no instruction for it. */
#define ATT_FUSED 1
#include "kernels/ref/ref.h"
#define ATT_TARGET_SYMBOL plain
#include "kernels/target/plain_table.h"
