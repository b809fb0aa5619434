/* The floating-point mode in which all numbers of attend are made: rounding to
 * nearest, denormals neither flushed nor read as zero. Reading the register
 * costs a nanosecond; it is written only where the mode differs. */
#ifndef ATT_BASE_FLOAT_MODE_H
#define ATT_BASE_FLOAT_MODE_H

#include <stdint.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#define ATT_FLOAT_MODE_BITS 0xe040u /* MXCSR: flush to zero, rounding, denormals are zero */
static inline uint64_t att_float_control(void) { return _mm_getcsr(); }
static inline void att_float_set_control(uint64_t control) { _mm_setcsr((unsigned)control); }
#elif defined(__aarch64__)
#define ATT_FLOAT_MODE_BITS 0x1c80000u /* FPCR: FZ, FZ16, RMode */
static inline uint64_t att_float_control(void) {
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
static inline void att_float_set_control(uint64_t control) {
  __asm__ volatile("msr fpcr, %0" : : "r"(control));
}
#else
#define ATT_FLOAT_MODE_BITS 0u /* a target with one mode */
static inline uint64_t att_float_control(void) { return 0; }
static inline void att_float_set_control(uint64_t control) { (void)control; }
#endif

/* Turns attend's mode on; gives back the bits to leave with. */
static inline uint64_t att_float_mode_enter(void) {
  uint64_t control = att_float_control(), mode = control & ATT_FLOAT_MODE_BITS;
  if (mode) att_float_set_control(control & ~(uint64_t)ATT_FLOAT_MODE_BITS);
  return mode;
}

/* Turns the thread's own mode on again; exception flags raised since stay. */
static inline void att_float_mode_leave(uint64_t mode) {
  if (mode) att_float_set_control(att_float_control() | mode);
}

#endif
