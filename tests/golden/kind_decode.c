/* decode: a sequence fed through a KV cache in several ways gives one result.
 *
 * Each plan says how many positions are written and asked for at a time. Items
 * of a batch may end early (seq_lens) or start with prompts of their own length
 * (prompt_lens) and go on token by token; a step therefore has its own first
 * position and count for every item. All plans must agree bit for bit. */
#include <string.h>

#include "attention.h"
#include "nn/rope.h"
#include "rotation.h"

#define ROTATION_ERROR 1e-6 /* relative: a cosine, a sine and two roundings */

typedef struct decode_job {
  golden_case *c;
  att_cache *cache;
  att_view q, k, v, out, lse; /* whole sequences */
  const int64_t *lengths, *prompts;
  att_sdpa_args args;
} decode_job;

/* One step: item b takes counts[b] positions from starts[b]. */
typedef struct decode_step {
  int64_t *starts, *counts, *keys, rows; /* keys: those written by then */
} decode_step;

static bool next_step(const decode_job *job, decode_step *step, const char *plan, int64_t index) {
  int64_t batch = job->q.shape[0], total = job->q.shape[2];
  step->rows = 0;
  for (int64_t b = 0; b < batch; b++) {
    int64_t start = step->starts[b] + step->counts[b];
    int64_t piece = golden_piece(plan, index, start, total);
    if (job->prompts) piece = index == 0 ? job->prompts[b] : 1;
    int64_t rest = job->lengths[b] - start;
    step->starts[b] = start;
    step->counts[b] = piece < rest ? piece : rest;
    if (step->counts[b] > step->rows) step->rows = step->counts[b];
  }
  return step->rows > 0;
}

static att_view positions(att_view view, int64_t b, int64_t start, int64_t count) {
  return att_view_slice(att_view_select(view, 0, b), 1, start, count);
}

static bool write_step(const decode_job *job, const decode_step *step) {
  golden *g = job->c->g;
  for (int64_t b = 0; b < job->q.shape[0]; b++) {
    int64_t start = step->starts[b], count = step->counts[b];
    if (count == 0) continue;
    att_view k = positions(job->k, b, start, count), v = positions(job->v, b, start, count);
    if (!golden_ok(g, att_cache_write(job->cache, 0, b, k, v), "att_cache_write")) return false;
    step->keys[b] = start + count;
  }
  return true;
}

static bool advance(const decode_job *job, const decode_step *step) {
  for (int64_t b = 0; b < job->q.shape[0]; b++)
    if (!golden_ok(job->c->g, att_cache_advance(job->cache, b, step->counts[b]),
                   "att_cache_advance"))
      return false;
  return true;
}

/* Copies each item's rows between the whole sequence and the step's tensors. */
static void move_rows(const decode_step *step, att_view whole, att_view part, bool gather) {
  for (int64_t b = 0; b < whole.shape[0]; b++) {
    int64_t count = step->counts[b];
    if (count == 0) continue;
    att_view a = positions(whole, b, step->starts[b], count), p = positions(part, b, 0, count);
    att_view_copy(gather ? &p : &a, gather ? &a : &p);
  }
}

/* Rows of items that have ended stay NaN and must not disturb the others. */
static att_view step_rows(golden_case *c, att_view whole, int64_t rows) {
  int64_t shape[ATT_MAX_NDIM];
  memcpy(shape, whole.shape, sizeof shape);
  shape[2] = rows;
  return golden_new(c, ATT_F32, whole.ndim, shape);
}

static bool run_step(decode_job *job, const decode_step *step) {
  if (!write_step(job, step)) return false;
  att_sdpa_args args = job->args;
  args.q = step_rows(job->c, job->q, step->rows);
  args.out = step_rows(job->c, job->out, step->rows);
  args.lse = step_rows(job->c, job->lse, step->rows);
  args.mask.offsets = step->starts;
  args.cache_lengths = step->keys;
  move_rows(step, job->q, args.q, true);
  if (!golden_ok(job->c->g, att_sdpa_once(job->c->g->runtime, &args), "attention over a cache"))
    return false;
  move_rows(step, job->out, args.out, false);
  move_rows(step, job->lse, args.lse, false);
  return advance(job, step);
}

static void set_args(decode_job *job) {
  golden_case *c = job->c;
  golden_attention_args(c, &job->args);
  job->args.cache = job->cache;
  job->args.mask.align = ATT_ALIGN_OFFSETS;
  golden_rule(c, &job->args, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  int64_t left = (int64_t)golden_number(c, "window_left", -1);
  if (left >= 0)
    golden_rule(c, &job->args,
                (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = left, .right = ATT_UNBOUNDED});
}

/* Positions at or beyond an item's length do not exist. */
static void compare(const decode_job *job, const char *name, att_view got, double tolerance) {
  att_view want = golden_view(job->c, name);
  for (int64_t b = 0; want.data && b < want.shape[0]; b++) {
    char what[64];
    strcat(strcpy(what, name), " of one batch item");
    golden_expect(job->c, want.shape[0] > 1 ? what : name, positions(got, b, 0, job->lengths[b]),
                  positions(want, b, 0, job->lengths[b]), tolerance);
  }
}

/* Feeds everything by one plan; false if that was not possible. */
static bool feed(decode_job *job, const char *plan, att_dtype dtype) {
  int64_t batch = job->q.shape[0];
  att_cache_shape shape = {.layers = 1,
                           .sequences = batch,
                           .kv_heads = job->k.shape[1],
                           .head_dim = job->k.shape[3],
                           .value_dim = job->v.shape[3],
                           .capacity = job->k.shape[2],
                           .dtype = dtype};
  if (!golden_ok(job->c->g, att_cache_create(&job->cache, job->c->g->runtime, &shape), "cache"))
    return false;
  set_args(job);
  decode_step step = {golden_alloc(job->c, batch, sizeof(int64_t)),
                      golden_alloc(job->c, batch, sizeof(int64_t)),
                      golden_alloc(job->c, batch, sizeof(int64_t)), 0};
  bool fine = true;
  for (int64_t i = 0; fine && next_step(job, &step, plan, i); i++) fine = run_step(job, &step);
  att_cache_free(job->cache);
  return fine;
}

static bool same_bits(const decode_job *job, att_view a, att_view b) {
  for (int64_t i = 0; i < a.shape[0]; i++) {
    att_view x = positions(a, i, 0, job->lengths[i]), y = positions(b, i, 0, job->lengths[i]);
    double *p = golden_doubles(job->c, &x), *q = golden_doubles(job->c, &y);
    if (memcmp(p, q, (size_t)att_view_count(&x) * sizeof *p) != 0) return false;
  }
  return true;
}

static const char *next_plan(char *out, size_t size, const char *plans) {
  const char *end = strchr(plans, ';');
  size_t n = end ? (size_t)(end - plans) : strlen(plans);
  if (n >= size) n = size - 1;
  memcpy(out, plans, n);
  out[n] = 0;
  return end ? end + 1 : NULL;
}

/* One plan, compared with the golden and, bit for bit, with the plan before it. */
static bool try_plan(decode_job *job, const char *plan, att_dtype dtype) {
  golden_case *c = job->c;
  att_view last_out = job->out, last_lse = job->lse;
  job->out =
      golden_new(c, ATT_F32, 4,
                 (int64_t[]){job->q.shape[0], job->q.shape[1], job->q.shape[2], job->v.shape[3]});
  job->lse = golden_new(c, ATT_F32, 3, job->q.shape);
  if (!feed(job, plan, dtype)) return false;
  compare(job, "out", job->out, golden_number(c, "tol_f32_out", 5e-6));
  compare(job, "lse", job->lse, golden_number(c, "tol_f32_lse", 1e-5));
  if (last_out.data && (!same_bits(job, job->out, last_out) || !same_bits(job, job->lse, last_lse)))
    golden_fail(c->g, "plan %s gives other bits than the plan before it", plan);
  return true;
}

/* Rotates [B,H,T,D] at positions 0 … T-1 as the case says; compares with `want`. */
static att_view rotated(golden_case *c, const char *name, const char *want_name) {
  att_view x = golden_as(c, golden_view(c, name), ATT_F32), want = golden_view(c, want_name);
  const char *kind = golden_text(c, "rope", NULL);
  if (!kind || !x.data) return x;
  att_rope rope = {.pairs = (int64_t)golden_number(c, "rope_dim", (double)x.shape[3]) / 2,
                   .theta = golden_number(c, "rope_theta", 10000),
                   .magnitude = 1};
  float *divisors = golden_alloc(c, rope.pairs, sizeof *divisors);
  att_rope_table table;
  att_rope_divisors(divisors, &rope);
  if (!golden_ok(c->g, att_rope_table_create(&table, c->g->runtime, &rope, divisors, x.shape[2]),
                 "rotation"))
    return x;
  for (int64_t row = 0; row < x.shape[0] * x.shape[1] * x.shape[2]; row++) {
    int64_t at = row % x.shape[2] * rope.pairs;
    golden_rotate(c->g, (float *)x.data + row * x.shape[3], table.cosine + at, table.sine + at,
                  rope.pairs, strcmp(kind, "interleaved") == 0);
  }
  att_rope_table_release(&table, c->g->runtime);
  if (want.data) golden_expect(c, want_name, x, want, ROTATION_ERROR * golden_largest(c, want));
  return x;
}

/* Keys and values are exact in the cache's dtype, so the stored ones are the
 * golden's own and float32 queries and results are held to float32 tolerances. */
static void run(golden_case *c, const char *variant, att_dtype dtype) {
  if (!golden_begin(c->g, c->path, variant)) return;
  decode_job job = {.c = c,
                    .q = rotated(c, "q", "q_rotated"),
                    .k = rotated(c, "k", "k_rotated"),
                    .v = golden_view(c, "v"),
                    .out = att_view_none(),
                    .lse = att_view_none(),
                    .lengths = golden_integers(c, "seq_lens")};
  const char *plans = golden_text(c, "chunk_plans", "");
  if (c->g->options.chunk) plans = c->g->options.chunk;
  char plan[256];
  bool fine = true;
  while (fine && plans) {
    plans = next_plan(plan, sizeof plan, plans);
    fine = try_plan(&job, plan, dtype);
  }
  job.prompts = golden_integers(c, "prompt_lens");
  if (fine && job.prompts) try_plan(&job, "of prompt_lens", dtype);
  golden_end(c->g);
}

void golden_decode(golden_case *c) {
  run(c, "", ATT_F32);
  if (golden_text(c, "rope", NULL)) return; /* what is rotated is exact in no shorter type */
  const char *exact = golden_text(c, "inputs_exact_in", "");
  if (strstr(exact, ",F16")) run(c, "f16 cache", ATT_F16);
  if (strstr(exact, ",BF16")) run(c, "bf16 cache", ATT_BF16);
}
