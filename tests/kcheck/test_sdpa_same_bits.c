/* Random calls of attention with all features mixed, each run by the
 * definition (row by row) and in tiles on every target of the class: the same
 * bits. The seeds are printed, and that of a call that fails; ATT_CALLS and
 * ATT_SEED in the environment make it longer (`make test-long` does 20,000, half
 * in each class) or start elsewhere. */
#include "support.h"

#include <math.h>

#include "attend/sdpa.h"
#include "base/rng.h"

enum { max_b = 3, max_floats = 1 << 19 };

/* The tensors of one call. Slack around each lets strides and offsets vary. */
typedef struct call {
  att_rng rng;
  att_sdpa_args args;
  float *q, *k, *v, *bias, *slopes, *sinks;
  uint8_t *dense;
  int32_t *documents, cu_q[max_b + 1], cu_k[max_b + 1];
  int64_t offsets[max_b], starts[max_b], lengths[max_b], prefix[max_b];
  int64_t out_count, lse_count, pair_count;
} call;

static int64_t below(call *c, int64_t n) { return att_rng_below(&c->rng, (uint32_t)n); }
static bool chance(call *c, int percent) { return below(c, 100) < percent; }

/* Sizes where edges lie: mostly small, at times around blocks and spans. */
static int64_t size(call *c, int64_t most) {
  static const int64_t edges[] = {0,  1,   2,   15,  16,  17,  31,  48,
                                  49, 127, 128, 129, 511, 512, 513, 700};
  int64_t n = chance(c, 40) ? edges[below(c, sizeof edges / sizeof edges[0])] : below(c, 90);
  return n < most ? n : most;
}

static float value(call *c) {
  float x = 4.0f * att_rng_uniform(&c->rng) - 2.0f;
  return chance(c, 1) ? x * 30.0f : x;
}

/* A [B,H,T,D] view of fresh numbers: usual, [B,T,H,D], reversed or spread. */
static att_view tensor(call *c, float *memory, int64_t b, int64_t h, int64_t t, int64_t d) {
  int64_t n = b * h * t * d * 2 + 64;
  assert_true(n < max_floats);
  for (int64_t i = 0; i < n; i++) memory[i] = value(c);
  int64_t shape[4] = {b, h, t, d};
  att_view view = att_view_of(memory, ATT_F32, 4, shape);
  switch (below(c, 4)) {
  case 0: /* [B,T,H,D] */
    view.stride[0] = t * h * d, view.stride[1] = d, view.stride[2] = h * d;
    break;
  case 1: /* every second element */
    for (int i = 0; i < 4; i++) view.stride[i] *= 2;
    break;
  case 2: /* time backwards */
    if (t > 0) view.data = memory + (t - 1) * d;
    view.stride[2] = -d;
    break;
  default: break;
  }
  return view;
}

static void add_rule(call *c, att_mask_rule rule) {
  assert_int_equal(att_mask_add(&c->args.mask, rule), ATT_OK);
}

static void choose_mask(call *c, int64_t b, int64_t h, int64_t t, int64_t s) {
  att_mask *mask = &c->args.mask;
  mask->align = (att_align)below(c, 3);
  for (int64_t n = 0; n < b; n++) c->offsets[n] = below(c, t + s + 2) - t;
  mask->offsets = c->offsets;
  if (chance(c, 50)) add_rule(c, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  if (chance(c, 30))
    add_rule(c, (att_mask_rule){.kind = ATT_MASK_WINDOW,
                                .left = below(c, s + 2) - 1,
                                .right = below(c, 40) - 1});
  if (chance(c, 25)) {
    for (int64_t n = 0; n < b; n++) {
      c->starts[n] = below(c, s + 1);
      c->lengths[n] = below(c, s - c->starts[n] + 1);
    }
    add_rule(c, (att_mask_rule){.kind = ATT_MASK_KEYS,
                                .starts = chance(c, 50) ? c->starts : NULL,
                                .lengths = c->lengths});
  }
  if (chance(c, 15)) {
    for (int64_t n = 0; n < b; n++) c->prefix[n] = below(c, s + 2);
    add_rule(c, (att_mask_rule){.kind = ATT_MASK_PREFIX, .lengths = c->prefix});
  }
  if (chance(c, 15)) {
    int64_t q_shape[2] = {b, t}, k_shape[2] = {b, s};
    for (int64_t n = 0; n < b * (t + s); n++) c->documents[n] = (int32_t)below(c, 3);
    add_rule(c,
             (att_mask_rule){.kind = ATT_MASK_DOCUMENTS,
                             .query_side = att_view_of(c->documents, ATT_I32, 2, q_shape),
                             .key_side = att_view_of(c->documents + b * t, ATT_I32, 2, k_shape)});
  }
  if (chance(c, 15)) {
    int64_t shape[4] = {chance(c, 50) ? b : 1, chance(c, 50) ? h : 1, t, chance(c, 80) ? s : 1};
    int64_t n = shape[0] * shape[1] * shape[2] * shape[3];
    if (n > max_floats) n = (shape[0] = shape[1] = 1) * t * shape[3];
    for (int64_t i = 0; i < n; i++) c->dense[i] = chance(c, 70);
    add_rule(c, (att_mask_rule){.kind = ATT_MASK_DENSE,
                                .query_side = att_view_of(c->dense, ATT_BOOL, 4, shape)});
  }
  if (s >= t && t > 0 && chance(c, 8)) {
    int64_t shape[2] = {b, t};
    for (int64_t n = 0; n < b; n++)
      for (int64_t i = 0; i < t; i++) c->documents[n * t + i] = (int32_t)below(c, i + 1) - 1;
    if (mask->n_rules == 0 || mask->rules[mask->n_rules - 1].kind != ATT_MASK_DOCUMENTS)
      add_rule(c, (att_mask_rule){.kind = ATT_MASK_TREE,
                                  .query_side = att_view_of(c->documents, ATT_I32, 2, shape)});
  }
}

static void choose(call *c, uint64_t seed) {
  att_rng_init(&c->rng, seed, 0);
  att_sdpa_args_init(&c->args);
  int64_t b = 1 + below(c, max_b), g = 1 + below(c, 2), h = g * (1 + below(c, 3));
  int64_t t = size(c, 200), s = size(c, 700);
  int64_t d = 1 + below(c, 40), dv = chance(c, 50) ? d : 1 + below(c, 40);
  if (b * h * s * (d + dv) > max_floats / 3) b = 1;
  c->args.q = tensor(c, c->q, b, h, t, d);
  c->args.k = tensor(c, c->k, b, g, s, d);
  c->args.v = tensor(c, c->v, b, g, s, dv);
  if (chance(c, 25)) c->args.softcap = 1.0 + (double)below(c, 30);
  if (chance(c, 20)) c->args.scale = (double)below(c, 5) / 4.0 - 0.5;
  if (chance(c, 20)) c->args.dropout = 0.25;
  c->args.dropout_seed = seed;
  if (chance(c, 30)) {
    c->args.block = 16 << below(c, 3);
    c->args.span = c->args.block * (1 + below(c, 4));
  }
  int64_t heads[1] = {h};
  for (int64_t n = 0; n < h; n++) {
    c->slopes[n] = chance(c, 80) ? att_rng_uniform(&c->rng) : 0.0f;
    c->sinks[n] = chance(c, 90) ? value(c) : -INFINITY;
  }
  if (chance(c, 20)) c->args.alibi_slopes = att_view_of(c->slopes, ATT_F32, 1, heads);
  if (chance(c, 20)) c->args.sinks = att_view_of(c->sinks, ATT_F32, 1, heads);
  if (chance(c, 20)) {
    int64_t shape[4] = {chance(c, 50) ? b : 1, chance(c, 50) ? h : 1, chance(c, 80) ? t : 1,
                        chance(c, 80) ? s : 1};
    int64_t n = shape[0] * shape[1] * shape[2] * shape[3];
    if (n < max_floats) {
      for (int64_t i = 0; i < n; i++) c->bias[i] = chance(c, 10) ? -INFINITY : value(c);
      c->args.bias = att_view_of(c->bias, ATT_F32, 4, shape);
    }
  }
  choose_mask(c, b, h, t, s);
  /* Values and keys that must reach a row only where they are seen. */
  if (chance(c, 15) && s > 0) {
    float odd[] = {NAN, INFINITY, -INFINITY};
    for (int n = 0; n < 3; n++) c->v[below(c, b * g * s * dv)] = odd[below(c, 3)];
    if (chance(c, 30)) c->k[below(c, b * g * s * d)] = odd[below(c, 3)];
  }
  c->out_count = b * h * t * dv;
  c->lse_count = b * h * t;
  /* Every second call keeps its weights: another way through the tiles. */
  c->pair_count = seed % 2 && b * h * t * s <= max_floats ? b * h * t * s : 0;
}

/* What a call gives. */
typedef struct results {
  float *out, *lse, *weights;
} results;

static void run(call *c, att_runtime *runtime, const results *to) {
  int64_t *q = c->args.q.shape, shape[4] = {q[0], q[1], q[2], c->args.v.shape[3]};
  int64_t pairs[4] = {q[0], q[1], q[2], c->args.k.shape[2]};
  c->args.out = att_view_of(to->out, ATT_F32, 4, shape);
  c->args.lse = att_view_of(to->lse, ATT_F32, 3, shape);
  c->args.weights = c->pair_count ? att_view_of(to->weights, ATT_F32, 4, pairs) : att_view_none();
  memset(to->out, 0x7b, sizeof(float) * (size_t)c->out_count);
  memset(to->weights, 0x7b, sizeof(float) * (size_t)c->pair_count);
  if (att_sdpa_once(runtime, &c->args) != ATT_OK) fail_msg("%s", att_message());
}

/* Same bits; any NaN equals any NaN. */
static int64_t first_difference(const float *a, const float *b, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (memcmp(a + i, b + i, sizeof(float)) != 0 && !(a[i] != a[i] && b[i] != b[i])) return i;
  return -1;
}

static att_runtime *open_target(const char *target, int threads) {
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.target = target;
  options.threads = threads;
  att_runtime *runtime;
  if (att_runtime_create(&runtime, &options) != ATT_OK) fail_msg("%s", att_message());
  return runtime;
}

static void expect_same(const char *what, const att_runtime *runtime, uint64_t seed,
                        const float *wanted, const float *got, int64_t n) {
  int64_t at = first_difference(wanted, got, n);
  if (at >= 0)
    fail_msg("seed %llu, %s: %s[%lld] is %a, by definition %a", (unsigned long long)seed,
             att_runtime_target(runtime), what, (long long)at, (double)got[at], (double)wanted[at]);
}

/* The call's results on `runtime` are those of the definition, the first. */
static void compare(call *c, att_runtime *runtime, uint64_t seed, const results two[2]) {
  run(c, runtime, &two[1]);
  expect_same("out", runtime, seed, two[0].out, two[1].out, c->out_count);
  expect_same("lse", runtime, seed, two[0].lse, two[1].lse, c->lse_count);
  expect_same("weights", runtime, seed, two[0].weights, two[1].weights, c->pair_count);
}

/* All usable targets of the definition's class but itself. */
static int open_class(att_runtime **runtimes, att_runtime *definition) {
  int n = 0;
  for (int i = 0, usable; att_target_name(i, &usable); i++) {
    const char *name = att_target_name(i, &usable);
    if (!usable || strcmp(name, att_runtime_target(definition)) == 0) continue;
    runtimes[n] = open_target(name, 1 + i % 3);
    bool same_class = strcmp(att_runtime_class(runtimes[n]), att_runtime_class(definition)) == 0;
    same_class ? (void)n++ : att_runtime_free(runtimes[n]);
  }
  return n;
}

static void check_class(const char *target) {
  uint64_t seed = getenv("ATT_SEED") ? strtoull(getenv("ATT_SEED"), NULL, 10) : 1;
  int most = getenv("ATT_TEST_EMULATED") ? 10 : 250;
  int calls = getenv("ATT_CALLS") ? atoi(getenv("ATT_CALLS")) : most;
  att_runtime *definition = open_target(target, 1), *runtimes[16];
  int n_runtimes = open_class(runtimes, definition);
  print_message("class %s, %d targets: seeds %llu … %llu\n", att_runtime_class(definition),
                n_runtimes, (unsigned long long)seed,
                (unsigned long long)seed + (unsigned)calls - 1);
  call c = {.q = malloc(max_floats * 4),
            .k = malloc(max_floats * 4),
            .v = malloc(max_floats * 4),
            .bias = malloc(max_floats * 4),
            .slopes = malloc(4096),
            .sinks = malloc(4096),
            .dense = malloc(max_floats),
            .documents = malloc(max_floats)};
  float *memory = malloc(sizeof(float) * 6 * max_floats);
  results two[2];
  for (int i = 0; i < 2; i++)
    two[i] = (results){memory + i * max_floats, memory + (2 + i) * max_floats,
                       memory + (4 + i) * max_floats};
  for (int n = 0; n < calls && n_runtimes > 0; n++, seed++) {
    choose(&c, seed);
    run(&c, definition, &two[0]);
    for (int r = 0; r < n_runtimes; r++) compare(&c, runtimes[r], seed, two);
  }
  for (int r = 0; r < n_runtimes; r++) att_runtime_free(runtimes[r]);
  att_runtime_free(definition);
  void *all[] = {c.q, c.k, c.v, c.bias, c.slopes, c.sinks, c.dense, c.documents, memory};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

static void tiles_have_other_bits_in_class_fma(void **state) {
  (void)state;
  check_class("plain");
}

static void tiles_have_other_bits_in_class_muladd(void **state) {
  (void)state;
  check_class("portable");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_have_other_bits_in_class_fma),
      cmocka_unit_test(tiles_have_other_bits_in_class_muladd),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
