/* Random calls of attention for tests. case_make() draws sizes where edges lie
 * (or case_sizes, then other sizes, then case_build), tensors in any layout (dimensions in any
 * order, gaps, reversed, repeated) and the features it is asked for. Every tensor has memory of
 * exactly its extent; gaps of inputs hold NaN, those of outputs a pattern that must survive. */
#ifndef ATT_TESTS_ATTENTION_CASE_H
#define ATT_TESTS_ATTENTION_CASE_H

#include "support.h"

#include <math.h>

#include "attend/sdpa.h"
#include "base/dtype.h"

enum {
  CASE_CAUSAL = 1 << 0,
  CASE_WINDOW = 1 << 1,
  CASE_KEYS = 1 << 2,
  CASE_PREFIX = 1 << 3,
  CASE_DOCUMENTS = 1 << 4,
  CASE_BLOCKS = 1 << 5,
  CASE_TREE = 1 << 6,
  CASE_DENSE = 1 << 7,
  CASE_MASKS = (1 << 8) - 1,
  CASE_BIAS = 1 << 8,
  CASE_SOFTCAP = 1 << 9,
  CASE_ALIBI = 1 << 10,
  CASE_SINKS = 1 << 11,
  CASE_DROPOUT = 1 << 12,
  CASE_SCALE = 1 << 13, /* negative, zero, large */
  CASE_PACKED = 1 << 14,
  CASE_LAYOUT = 1 << 15, /* else row-major */
  CASE_ROWS = 1 << 16,   /* chosen rows */
  CASE_BLOCK_SIZES = 1 << 17,
  CASE_RESULTS = 1 << 18, /* weights, scores, column sums, entropy */
  CASE_REPEATS = 1 << 19, /* with a layout: strides of 0 in inputs */
  CASE_ALL = (1 << 20) - 1
};

typedef struct att_case {
  uint64_t random;
  unsigned features;
  int64_t b, h, g, t, s, d, dv, n_sequences;
  att_dtype dtype;
  att_sdpa_args args;
  void **memory; /* everything allocated for this call */
  int n_memory, room;
  struct {
    att_view view;
    unsigned char *base;
    size_t bytes;
  } outputs[8];
  int n_outputs;
} att_case;

static inline int64_t case_below(att_case *c, int64_t n) {
  return n > 0 ? (int64_t)(test_random(&c->random) >> 11) % n : 0;
}

static inline bool case_chance(att_case *c, int percent) { return case_below(c, 100) < percent; }

static inline double case_uniform(att_case *c) {
  return (double)(test_random(&c->random) >> 11) * 0x1p-53;
}

/* Most numbers are small; one in a hundred makes a peaked row. */
static inline double case_value(att_case *c) {
  double x = 4 * case_uniform(c) - 2;
  return case_chance(c, 1) ? 16 * x : x;
}

static inline void *case_alloc(att_case *c, size_t bytes) {
  if (c->n_memory == c->room)
    c->memory = realloc(c->memory, (size_t)(c->room += 64) * sizeof *c->memory);
  void *memory = malloc(bytes ? bytes : 1);
  assert_true(c->memory && memory);
  return c->memory[c->n_memory++] = memory;
}

static inline void case_free(att_case *c) {
  for (int n = 0; n < c->n_memory; n++) free(c->memory[n]);
  free(c->memory);
  c->memory = NULL;
  c->n_memory = c->room = c->n_outputs = 0;
}

/* ---- views ---------------------------------------------------------------- */

/* The address of element number `n`, counted row-major. */
static inline unsigned char *case_element(const att_view *view, int64_t n) {
  int64_t at = 0;
  for (int d = view->ndim - 1; d >= 0; d--) {
    at += n % view->shape[d] * view->stride[d];
    n /= view->shape[d];
  }
  return (unsigned char *)view->data + at * att_dtype_bytes(view->dtype);
}

static inline void case_store(void *to, att_dtype dtype, double x) {
  uint16_t half;
  float single = (float)x;
  switch (dtype) {
  case ATT_F64: memcpy(to, &x, sizeof x); break;
  case ATT_F32: memcpy(to, &single, sizeof single); break;
  case ATT_F16: half = att_f32_to_f16(single), memcpy(to, &half, sizeof half); break;
  case ATT_BF16: half = att_f32_to_bf16(single), memcpy(to, &half, sizeof half); break;
  case ATT_I32: *(int32_t *)to = (int32_t)x; break;
  default: *(uint8_t *)to = x != 0; break;
  }
}

/* Strides of a random layout: dimensions from the innermost outwards in any
 * order, at times with gaps, backwards or, where that is allowed, repeated. */
static inline void case_strides(att_case *c, att_view *view, bool repeats) {
  int order[ATT_MAX_NDIM];
  for (int d = 0; d < view->ndim; d++) order[d] = d;
  for (int d = view->ndim - 1; d > 0; d--) {
    int other = (int)case_below(c, d + 1), swap = order[d];
    order[d] = order[other], order[other] = swap;
  }
  int64_t step = 1 + (case_chance(c, 30) ? case_below(c, 3) : 0);
  for (int n = 0; n < view->ndim; n++) {
    int d = order[n];
    if (repeats && c->features & CASE_REPEATS && case_chance(c, 12)) {
      view->stride[d] = 0;
      continue;
    }
    view->stride[d] = case_chance(c, 20) ? -step : step;
    step *= view->shape[d] ? view->shape[d] : 1;
    if (case_chance(c, 30)) step += case_below(c, 5);
  }
}

/* A view on memory of exactly its extent, all bytes `filler`. */
static inline att_view case_view(att_case *c, att_dtype dtype, int ndim, const int64_t *shape,
                                 bool repeats, int filler) {
  unsigned char none;
  att_view view = att_view_of(&none, dtype, ndim, shape);
  if (c->features & CASE_LAYOUT) case_strides(c, &view, repeats);
  int64_t low = 0, high = 0, bytes = att_dtype_bytes(dtype), count = att_view_count(&view);
  for (int d = 0; d < ndim && count > 0; d++) {
    int64_t reach = (shape[d] - 1) * view.stride[d];
    low += reach < 0 ? reach : 0;
    high += reach > 0 ? reach : 0;
  }
  size_t total = count > 0 ? (size_t)((high - low + 1) * bytes) : 0;
  unsigned char *base = case_alloc(c, total);
  memset(base, filler, total);
  view.data = base - low * bytes;
  return view;
}

static inline att_view case_input(att_case *c, att_dtype dtype, int ndim, const int64_t *shape) {
  att_view view = case_view(c, dtype, ndim, shape, true, 0xff);
  for (int64_t n = 0, count = att_view_count(&view); n < count; n++)
    case_store(case_element(&view, n), dtype, case_value(c));
  return view;
}

/* Integers below `n`, or, for n <= 1, truth values of which `percent` are true. */
static inline att_view case_numbers(att_case *c, att_dtype dtype, int ndim, const int64_t *shape,
                                    int n, int percent) {
  att_view view = case_view(c, dtype, ndim, shape, true, 0xff);
  for (int64_t at = 0, count = att_view_count(&view); at < count; at++)
    case_store(case_element(&view, at), dtype,
               n > 1 ? (double)case_below(c, n) : (double)case_chance(c, percent));
  return view;
}

static inline att_view case_output(att_case *c, att_dtype dtype, int ndim, const int64_t *shape) {
  int before = c->n_memory;
  att_view view = case_view(c, dtype, ndim, shape, false, 0xa5);
  int64_t low = 0, high = 0;
  for (int d = 0; d < ndim; d++) {
    int64_t reach = (shape[d] - 1) * view.stride[d];
    low += reach < 0 ? reach : 0;
    high += reach > 0 ? reach : 0;
  }
  c->outputs[c->n_outputs].view = view;
  c->outputs[c->n_outputs].base = c->memory[before];
  c->outputs[c->n_outputs++].bytes =
      att_view_count(&view) > 0 ? (size_t)((high - low + 1) * att_dtype_bytes(dtype)) : 0;
  return view;
}

/* Nothing was written between the elements of the outputs. */
static inline void case_check_gaps(const att_case *c) {
  for (int o = 0; o < c->n_outputs; o++) {
    const att_view *view = &c->outputs[o].view;
    size_t bytes = (size_t)att_dtype_bytes(view->dtype), touched = 0;
    unsigned char *seen = calloc(c->outputs[o].bytes + 1, 1);
    for (int64_t n = 0, count = att_view_count(view); n < count; n++)
      memset(seen + (case_element(view, n) - c->outputs[o].base), 1, bytes);
    for (size_t n = 0; n < c->outputs[o].bytes; n++)
      touched += !seen[n] && c->outputs[o].base[n] != 0xa5;
    free(seen);
    assert_int_equal(touched, 0);
  }
}

/* ---- the call ------------------------------------------------------------- */

static inline int64_t case_size(att_case *c, int64_t most) {
  static const int64_t edges[] = {0, 1, 2, 3, 15, 16, 17, 31, 33, 47, 48, 49, 127, 128, 129, 257};
  int64_t n =
      case_chance(c, 40) ? edges[case_below(c, sizeof edges / sizeof edges[0])] : case_below(c, 60);
  return n < most ? n : most;
}

static inline int64_t *case_integers(att_case *c, int64_t low, int64_t below) {
  int64_t *numbers = case_alloc(c, (size_t)c->n_sequences * sizeof *numbers);
  for (int64_t n = 0; n < c->n_sequences; n++) numbers[n] = low + case_below(c, below - low);
  return numbers;
}

static inline void case_rule(att_case *c, att_mask_rule rule) {
  assert_ok(att_mask_add(&c->args.mask, rule));
}

/* Ends of sequences inside `total`, ascending from 0; the last may leave a rest. */
static inline int32_t *case_packed(att_case *c, int64_t total) {
  int32_t *cu = case_alloc(c, (size_t)(c->n_sequences + 1) * sizeof *cu);
  cu[0] = 0;
  for (int64_t n = 1; n <= c->n_sequences; n++)
    cu[n] = cu[n - 1] +
            (case_chance(c, 20) ? 0 : (int32_t)case_below(c, (total - cu[n - 1]) * 2 / 3 + 2));
  for (int64_t n = 1; n <= c->n_sequences; n++) cu[n] = cu[n] < total ? cu[n] : (int32_t)total;
  return cu;
}

/* Keys of sequence n in its buffer. */
static inline int64_t case_keys(const att_case *c, int64_t n) {
  return c->args.cu_k ? c->args.cu_k[n + 1] - c->args.cu_k[n] : c->s;
}

static inline void case_keys_rule(att_case *c) {
  int64_t *starts = case_alloc(c, (size_t)c->n_sequences * sizeof *starts);
  int64_t *lengths = case_alloc(c, (size_t)c->n_sequences * sizeof *lengths);
  bool no_starts = case_chance(c, 30), no_lengths = !no_starts && case_chance(c, 30);
  for (int64_t n = 0; n < c->n_sequences; n++) {
    starts[n] = no_starts ? 0 : case_below(c, case_keys(c, n) + 1);
    lengths[n] = case_below(c, case_keys(c, n) - starts[n] + 1);
  }
  case_rule(c, (att_mask_rule){.kind = ATT_MASK_KEYS,
                               .starts = no_starts ? NULL : starts,
                               .lengths = no_lengths ? NULL : lengths});
}

static inline att_view case_parents(att_case *c) {
  const int64_t shape[2] = {c->n_sequences, c->t};
  unsigned keep = c->features;
  c->features &= ~(unsigned)CASE_LAYOUT; /* repeated parents would not be a tree */
  att_view view = case_view(c, ATT_I32, 2, shape, false, 0);
  c->features = keep;
  for (int64_t n = 0; n < c->n_sequences * c->t; n++)
    ((int32_t *)view.data)[n] = (int32_t)case_below(c, n % c->t + 1) - 1;
  return view;
}

/* Broadcast sizes: each of the leading ones may be 1 or missing. */
static inline int case_broadcast(att_case *c, int64_t shape[4], const int64_t full[4]) {
  int ndim = case_chance(c, 70) ? 4 : (int)case_below(c, 5);
  for (int d = 0; d < ndim; d++) shape[d] = case_chance(c, 25) ? 1 : full[4 - ndim + d];
  return ndim;
}

static inline void case_mask(att_case *c) {
  int64_t n = c->n_sequences, t = c->t, s = c->s, shape[4];
  c->args.mask.align = (att_align)case_below(c, 3);
  c->args.mask.offsets = case_integers(c, -t, s + 2);
  if (c->features & CASE_CAUSAL) case_rule(c, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  if (c->features & CASE_WINDOW)
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_WINDOW,
                                 .left = case_below(c, s + 2) - 1,
                                 .right = case_below(c, 40) - 1});
  if (c->features & CASE_KEYS) case_keys_rule(c);
  if (c->features & CASE_PREFIX)
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_PREFIX, .lengths = case_integers(c, 0, s + 2)});
  if (c->features & CASE_DOCUMENTS) {
    const int64_t queries[2] = {n, t}, keys[2] = {n, s};
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_DOCUMENTS,
                                 .query_side = case_numbers(c, ATT_I32, 2, queries, 3, 0),
                                 .key_side = case_numbers(c, ATT_I32, 2, keys, 3, 0)});
  }
  if (c->features & CASE_BLOCKS) {
    int64_t left = 1 + case_below(c, 40), right = 1 + case_below(c, 40);
    const int64_t full[4] = {n, c->h, (t + left - 1) / left, (s + right - 1) / right};
    int ndim = case_broadcast(c, shape, full);
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_BLOCKS,
                                 .left = left,
                                 .right = right,
                                 .query_side = case_numbers(c, ATT_U8, ndim, shape, 0, 60)});
  }
  if (c->features & CASE_TREE && s >= t)
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_TREE, .query_side = case_parents(c)});
  if (c->features & CASE_DENSE) {
    const int64_t full[4] = {n, c->h, t, s};
    int ndim = case_broadcast(c, shape, full);
    case_rule(c, (att_mask_rule){.kind = ATT_MASK_DENSE,
                                 .query_side = case_numbers(c, ATT_BOOL, ndim, shape, 0, 70)});
  }
}

static inline void case_numbers_of_scores(att_case *c) {
  static const double scales[] = {-0.5, 0.0, 0.25, 1.0, 2.0};
  int64_t shape[4];
  att_dtype wide = c->dtype == ATT_F64 ? ATT_F64 : ATT_F32;
  if (c->features & CASE_SCALE) c->args.scale = scales[case_below(c, 5)];
  if (c->features & CASE_SOFTCAP) c->args.softcap = 0.5 + (double)case_below(c, 30);
  if (c->features & CASE_DROPOUT) c->args.dropout = case_chance(c, 50) ? 0.25 : 0.9;
  c->args.dropout_seed = test_random(&c->random);
  if (c->features & CASE_ALIBI) {
    c->args.alibi_slopes = case_input(c, ATT_F32, 1, &c->h);
    if (c->h > 1) case_store(case_element(&c->args.alibi_slopes, 1), ATT_F32, 0);
  }
  if (c->features & CASE_SINKS) {
    c->args.sinks = case_input(c, ATT_F32, 1, &c->h);
    if (c->h > 2) case_store(case_element(&c->args.sinks, 2), ATT_F32, -INFINITY);
  }
  if (c->features & CASE_BIAS) {
    const int64_t full[4] = {c->n_sequences, c->h, c->t, c->s};
    int ndim = case_broadcast(c, shape, full);
    c->args.bias = case_input(c, case_chance(c, 70) ? wide : c->dtype, ndim, shape);
    for (int64_t n = 0, count = att_view_count(&c->args.bias); n < count; n++)
      if (case_chance(c, 10))
        case_store(case_element(&c->args.bias, n), c->args.bias.dtype, -INFINITY);
  }
}

/* Fresh memory for all results that the call asks for. */
static inline void case_results(att_case *c, bool all) {
  att_dtype wide = c->dtype == ATT_F64 ? ATT_F64 : ATT_F32;
  int64_t batch = c->args.q.shape[0], rows = c->args.rows ? c->args.n_rows : c->t;
  const int64_t out[4] = {batch, c->h, c->t, c->dv}, pairs[4] = {batch, c->h, rows, c->s};
  const int64_t columns[3] = {batch, c->h, c->s};
  c->n_outputs = 0;
  c->args.out = case_output(c, case_chance(c, 60) ? wide : c->dtype, 4, out);
  c->args.lse = case_output(c, wide, 3, out);
  if (!all) return;
  c->args.weights = case_output(c, wide, 4, pairs);
  c->args.scores = case_output(c, wide, 4, pairs);
  c->args.score_stage = (att_score_stage)case_below(c, 4);
  if (c->args.rows && case_chance(c, 50)) return; /* nothing that needs the other rows */
  c->args.column_sums = case_output(c, wide, 3, columns);
  c->args.entropy = case_output(c, wide, 3, out);
}

static inline void case_choose_rows(att_case *c) {
  int64_t *rows = case_alloc(c, (size_t)c->t * sizeof *rows);
  for (int64_t i = 0; i < c->t; i++)
    if (case_chance(c, 30)) rows[c->args.n_rows++] = i;
  c->args.rows = rows;
}

static inline void case_sizes(att_case *c, uint64_t seed, unsigned features, att_dtype dtype) {
  *c = (att_case){.random = seed * 0x9e3779b97f4a7c15 + 1, .features = features, .dtype = dtype};
  for (int n = 0; n < 8; n++) test_random(&c->random);
  bool packed = features & CASE_PACKED;
  c->b = packed ? 1 : 1 + case_below(c, 2);
  c->n_sequences = packed ? case_below(c, 4) : c->b;
  c->g = 1 + case_below(c, 2), c->h = c->g * (1 + case_below(c, 3));
  c->t = case_size(c, 70), c->s = case_size(c, 300);
  c->d = 1 + case_below(c, 20), c->dv = case_chance(c, 40) ? c->d : 1 + case_below(c, 36);
  if (case_chance(c, 30)) c->dv = 16 << case_below(c, 2); /* whole panels are read in place */
  if (features & CASE_TREE && c->s < c->t) c->s = c->t + case_below(c, 20);
}

static inline void case_build(att_case *c) {
  const int64_t q[4] = {c->b, c->h, c->t, c->d}, k[4] = {c->b, c->g, c->s, c->d};
  const int64_t v[4] = {c->b, c->g, c->s, c->dv};
  att_sdpa_args_init(&c->args);
  c->args.q = case_input(c, c->dtype, 4, q);
  c->args.k = case_input(c, c->dtype, 4, k);
  c->args.v = case_input(c, c->dtype, 4, v);
  if (c->features & CASE_PACKED) {
    c->args.n_sequences = c->n_sequences;
    c->args.cu_q = case_packed(c, c->t);
    c->args.cu_k = case_packed(c, c->s);
  }
  case_mask(c);
  case_numbers_of_scores(c);
  if (c->features & CASE_BLOCK_SIZES) {
    c->args.block = 16 << case_below(c, 3);
    c->args.span = c->args.block * (1 + case_below(c, 4));
  }
  if (c->features & CASE_ROWS) case_choose_rows(c);
  case_results(c, c->features & CASE_RESULTS);
}

static inline void case_make(att_case *c, uint64_t seed, unsigned features, att_dtype dtype) {
  case_sizes(c, seed, features, dtype);
  case_build(c);
}

static inline att_runtime *case_runtime(const char *target, int threads) {
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.target = target;
  options.threads = threads;
  att_runtime *runtime;
  assert_ok(att_runtime_create(&runtime, &options));
  return runtime;
}

#endif
