/* Finding out what the processor can do. An instruction set counts only if the
 * system also saves its registers (XCR0 on x86), else the first use would trap.
 * cpuid traps under many hypervisors and takes microseconds there, so the
 * answer is kept; it is the same from every thread, and a race only asks twice. */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "attend/runtime.h"

#define KNOWN (1u << 31)

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* The register classes that the system saves and restores. */
static uint32_t saved_state(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static uint32_t probe(void) {
  const unsigned fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
  const unsigned avx2 = 1u << 5, avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  const uint32_t ymm = 0x6, zmm = 0xe6;
  unsigned a, b, c, d, bits = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave) || !(c & avx)) return 0;
  uint32_t saved = saved_state();
  if ((saved & ymm) != ymm) return 0;
  if (c & fma) bits |= ATT_CPU_FMA;
  bool has_f16c = c & f16c;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return bits;
  if ((b & avx2) && has_f16c) bits |= ATT_CPU_AVX2;
  if ((b & avx512) == avx512 && (saved & zmm) == zmm) bits |= ATT_CPU_AVX512;
  return bits;
}

/* The brand string, 48 bytes in three leaves, may be empty. */
static void read_name(char out[64]) {
  unsigned words[12] = {0};
  for (unsigned i = 0; i < 3; i++) {
    unsigned *w = words + 4 * i;
    if (!__get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3])) return;
  }
  memcpy(out, words, sizeof words);
}

#else

static uint32_t probe(void) {
#if defined(__aarch64__)
  return ATT_CPU_NEON | ATT_CPU_FMA;
#else
  return 0;
#endif
}

static void read_name(char out[64]) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[256];
  while (file && fgets(line, sizeof line, file)) {
    const char *value = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 && strncmp(line, "Model", 5) != 0) continue;
    if (value) snprintf(out, 64, "%s", value + 1);
    if (value) break;
  }
  if (file) fclose(file);
}

#endif

uint32_t att_cpu_bits(void) {
  static atomic_uint cached;
  uint32_t bits = atomic_load_explicit(&cached, memory_order_relaxed);
  if (!bits) {
    bits = probe() | KNOWN;
    atomic_store_explicit(&cached, bits, memory_order_relaxed);
  }
  return bits & ~KNOWN;
}

#if defined(__x86_64__)
#define ARCHITECTURE "x86-64"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#elif defined(__wasm__)
#define ARCHITECTURE "wasm"
#else
#define ARCHITECTURE "unknown processor"
#endif

void att_cpu_name(char *out, size_t bytes) {
  if (!out || bytes == 0) return;
  char name[64] = {0};
  read_name(name);
  size_t length = 0;
  for (const char *c = name; *c && length + 1 < bytes; c++) { /* runs of blanks become one */
    bool blank = *c <= ' ';
    if (blank && (length == 0 || c[1] <= ' ')) continue;
    out[length++] = blank ? ' ' : *c;
  }
  out[length] = 0;
  if (length == 0) snprintf(out, bytes, "%s", ARCHITECTURE);
}
