/* The plain definition, class fma, compiled for processors with FMA
 * instructions: the same code and bits as plain.c, but fmaf is one instruction. */
#define ATT_FUSED 1
#include "kernels/ref/ref.h"
#define ATT_TARGET_SYMBOL plain_fma
#include "kernels/target/plain_table.h"
