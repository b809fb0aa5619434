/* attend/measure.h — what this machine can do at most.
 *
 * Two loops that do nothing else: multiply-adds in registers, and reading
 * memory. Benchmarks state their results as a share of these.
 */
#ifndef ATTEND_MEASURE_H
#define ATTEND_MEASURE_H

#include "attend/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Multiply-adds of the runtime's target on all its threads at once, about
 * `seconds` long: *out in 10^9 flops a second (a multiply-add is two).
 * BAD_ARGUMENT. */
ATT_API att_status att_measure_fma(double *out, att_runtime *runtime, double seconds);

/* Reads `bytes` bytes of fresh memory with all threads, several times over, and
 * gives the median: *out in 10^9 bytes a second. Choose more than the caches
 * hold. BAD_ARGUMENT, OUT_OF_MEMORY. */
ATT_API att_status att_measure_read(double *out, att_runtime *runtime, int64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
