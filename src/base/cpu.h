/* What this processor can do, as bits that kernel targets require. */
#ifndef ATT_BASE_CPU_H
#define ATT_BASE_CPU_H

#include <stdint.h>

enum {
  ATT_CPU_FMA = 1 << 0,    /* fused multiply-add instructions (x86 FMA3, any aarch64) */
  ATT_CPU_AVX2 = 1 << 1,   /* AVX2 and F16C, enabled by the system */
  ATT_CPU_AVX512 = 1 << 2, /* AVX-512 F, BW, DQ and VL, enabled by the system */
  ATT_CPU_NEON = 1 << 3
};

/* The bits of this processor, found once. */
uint32_t att_cpu_bits(void);

#endif
