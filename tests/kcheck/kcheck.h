/* Kernel checks: each kernel of each target against the plain definition of
 * its class, bit for bit.
 *
 * Buffers end at a page that may not be touched, begin after a canary, and are
 * shifted so that pointers are not aligned. A check runs a kernel once with the
 * plain table and once with the candidate on equal buffers and compares all of
 * both buffers, canaries included. Any NaN equals any other: their sign and
 * payload are not promised. */
#ifndef ATT_TESTS_KCHECK_H
#define ATT_TESTS_KCHECK_H

#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */

#include "support.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rng.h"
#include "kernels/kernels.h"

enum { canary_floats = 40 };

/* `count` floats that end exactly where a forbidden page begins. */
typedef struct guarded {
  unsigned char *map;
  size_t bytes;
  float *data;
  int64_t count, room; /* floats; room is what lies between the last and the page */
} guarded;

/* qemu 7.2 reads every lane of vmaskmovps, also those that the mask leaves out
 * and the processor may not touch: under it a vector of canaries lies between
 * the data and the forbidden page. */
static inline int64_t guarded_room(void) { return getenv("ATT_TEST_EMULATED") ? ATT_LANES : 0; }

static inline guarded guarded_floats(int64_t count) {
  int64_t room = guarded_room();
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t need = (size_t)(count + room + canary_floats) * sizeof(float);
  size_t bytes = (need + page - 1) / page * page;
  unsigned char *map =
      mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED || mprotect(map + bytes, page, PROT_NONE) != 0) fail_msg("no guard page");
  float *data = (float *)(map + bytes) - room - count;
  for (int i = 0; i < canary_floats; i++) data[i - canary_floats] = 1234.5f + (float)i;
  for (int i = 0; i < room; i++) data[count + i] = 4321.5f + (float)i;
  return (guarded){map, bytes + page, data, count, room};
}

static inline void guarded_free(guarded *g) { munmap(g->map, g->bytes); }

static inline guarded guarded_copy(const guarded *g) {
  guarded copy = guarded_floats(g->count);
  memcpy(copy.data, g->data, (size_t)g->count * sizeof(float));
  return copy;
}

/* Where two buffers or their canaries differ first; INT64_MIN: nowhere. */
static inline int64_t guarded_difference(const guarded *a, const guarded *b) {
  for (int64_t i = -canary_floats; i < a->count + a->room; i++) {
    float x = a->data[i], y = b->data[i];
    if (memcmp(&x, &y, sizeof x) != 0 && !(x != x && y != y)) return i;
  }
  return INT64_MIN;
}

/* Numbers that find mistakes: mostly ordinary, some at the edges of the type. */
static inline float kcheck_value(att_rng *rng, bool special) {
  static const float edges[] = {0.0f,      -0.0f,    1.0f,      -1.0f, 1e-40f,  -1e-40f,
                                0x1p-126f, INFINITY, -INFINITY, NAN,   3.4e38f, -3.4e38f,
                                88.7f,     -87.4f,   -104.0f,   0.5f};
  if (special && att_rng_below(rng, 8) == 0)
    return edges[att_rng_below(rng, sizeof edges / sizeof edges[0])];
  return (att_rng_uniform(rng) - 0.5f) * 8.0f;
}

static inline void kcheck_fill(guarded *g, att_rng *rng, bool special) {
  for (int64_t i = 0; i < g->count; i++) g->data[i] = kcheck_value(rng, special);
}

/* The candidates: every usable table that is not itself a plain one, with the
 * plain table of its class. */
typedef struct candidate {
  att_kernels table, plain;
} candidate;

static inline int kcheck_candidates(candidate *out, int most) {
  int n = 0, usable;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  for (int i = 0; att_target_name(i, &usable) && n < most; i++) {
    att_kernels table;
    if (!usable) continue;
    assert_ok(att_kernels_select(&table, &runtime, att_target_name(i, NULL)));
    if (!table.tiled) continue;
    out[n].table = table;
    const char *plain = strcmp(table.numerics, "fma") == 0 ? "plain" : "portable";
    assert_ok(att_kernels_select(&out[n].plain, &runtime, plain));
    n++;
  }
  assert_true(n > 0); /* generic runs everywhere */
  return n;
}

#define kcheck_same(candidate, kernel, a, b, ...)                                                  \
  do {                                                                                             \
    int64_t kcheck_at = guarded_difference(&(a), &(b));                                            \
    if (kcheck_at != INT64_MIN) {                                                                  \
      print_error(__VA_ARGS__);                                                                    \
      fail_msg("%s on %s: element %lld is %a, by definition %a", kernel,                           \
               (candidate)->table.target, (long long)kcheck_at, (double)(a).data[kcheck_at],       \
               (double)(b).data[kcheck_at]);                                                       \
    }                                                                                              \
  } while (0)

#endif
