/* The plain definition, class muladd: multiply, round, then add. Runs on
 * anything with IEEE floats at a usable speed. */
#define ATT_FUSED 0
#include "kernels/ref/ref.h"
#define ATT_TARGET_SYMBOL portable
#include "kernels/target/plain_table.h"
