/* Where each sequence of a call lies: packed or batched, in a cache or in the
 * caller's tensors, with its own first key and the position of its first row. */
#include "attention/problem.h"
#include "kv/foreign.h"

/* Rules "keys" together: the latest start and the earliest end of [0, s). */
static void key_range(const att_mask *mask, int64_t b, int64_t s, int64_t *start, int64_t *end) {
  *start = 0;
  *end = s;
  for (int n = 0; n < mask->n_rules; n++) {
    const att_mask_rule *rule = &mask->rules[n];
    if (rule->kind != ATT_MASK_KEYS) continue;
    int64_t first = rule->starts ? rule->starts[b] : 0;
    int64_t last = rule->lengths ? first + rule->lengths[b] : s;
    if (*start < first) *start = first;
    if (*end > last) *end = last;
  }
  if (*end < *start) *end = *start;
}

static int64_t cache_sequence(const att_sdpa_args *a, int64_t b) {
  return a->cache_sequences ? a->cache_sequences[b] : b;
}

/* Keys that sequence b has in its buffer. */
static int64_t keys_of(const att_problem *p, int64_t b, int64_t t) {
  const att_sdpa_args *a = p->args;
  if (a->cu_k) return a->cu_k[b + 1] - a->cu_k[b];
  if (a->pages) return a->pages->lengths[b];
  if (!a->cache) return p->s;
  if (a->cache_lengths) return a->cache_lengths[b];
  return att_cache_length(a->cache, cache_sequence(a, b)) + t;
}

/* A ring's keys are counted from a span's first that lies before what is left:
 * spans that are gone would have left no trace. */
static int64_t ring_start(const att_problem *p, int64_t b) {
  const att_sdpa_args *a = p->args;
  if (!a->cache || !att_cache_describe(a->cache)->ring) return 0;
  return att_cache_first(a->cache, cache_sequence(a, b)) / p->span * p->span;
}

att_sequence att_problem_sequence(const att_problem *p, int64_t b) {
  const att_sdpa_args *a = p->args;
  att_sequence s = {.batch = a->cu_q ? 0 : b, .key_batch = a->cu_k ? 0 : b, .t = p->t, .cached = b};
  int64_t gone = ring_start(p, b);
  if (a->cache) s.cached = cache_sequence(a, b);
  if (a->cu_q) {
    s.q_first = a->cu_q[b];
    s.t = a->cu_q[b + 1] - a->cu_q[b];
  }
  int64_t end;
  key_range(&a->mask, b, keys_of(p, b, s.t) - gone, &s.start, &end);
  s.n = end - s.start;
  s.k_first = (a->cu_k ? a->cu_k[b] : gone) + s.start;
  if (a->mask.align == ATT_ALIGN_BOTTOM_RIGHT) s.offset = s.n - s.t;
  if (a->mask.align == ATT_ALIGN_OFFSETS) s.offset = a->mask.offsets[b] - gone;
  if (a->mask.align == ATT_ALIGN_TOP_LEFT) s.offset = -gone;
  return s;
}

static att_status check_packed(const att_problem *p, const int32_t *cu, int64_t total,
                               const char *name) {
  if (cu[0] != 0) return att_fail(ATT_BAD_ARGUMENT, "%s[0] is %d, not 0", name, cu[0]);
  for (int64_t n = 0; n < p->b; n++)
    if (cu[n + 1] < cu[n])
      return att_fail(ATT_BAD_ARGUMENT, "%s[%lld] is %d after %d", name, (long long)n + 1,
                      cu[n + 1], cu[n]);
  if (cu[p->b] > total)
    return att_fail(ATT_BAD_ARGUMENT, "%s ends at %d of %lld", name, cu[p->b], (long long)total);
  return ATT_OK;
}

/* What a row may look at must still be there. */
static att_status check_ring(const att_problem *p, int64_t b) {
  const att_sdpa_args *a = p->args;
  if (!a->cache || !att_cache_describe(a->cache)->ring) return ATT_OK;
  att_sequence s = att_problem_sequence(p, b);
  int64_t held = att_cache_first(a->cache, cache_sequence(a, b)) - s.k_first;
  for (int64_t i = 0; i < s.t; i++) {
    att_mask_query query = att_problem_query(p, &s, b, 0, i);
    int64_t low, high;
    att_mask_interval(&a->mask, &query, &low, &high);
    if (low < high && low < held)
      return att_fail(
          ATT_CONTEXT_FULL, "row %lld of sequence %lld sees position %lld; the ring begins at %lld",
          (long long)i, (long long)b, (long long)(s.k_first + low), (long long)(s.k_first + held));
  }
  return ATT_OK;
}

att_status att_problem_check_sequences(const att_problem *p) {
  const att_sdpa_args *a = p->args;
  if (a->cu_q) ATT_TRY(check_packed(p, a->cu_q, a->q.shape[2], "cu_q"));
  if (a->cu_k) ATT_TRY(check_packed(p, a->cu_k, a->k.shape[2], "cu_k"));
  for (int64_t b = 0; b < p->b; b++) {
    int64_t t = a->cu_q ? a->cu_q[b + 1] - a->cu_q[b] : p->t;
    if (a->cache) {
      int64_t sequence = cache_sequence(a, b);
      if (sequence < 0 || sequence >= att_cache_describe(a->cache)->sequences)
        return att_fail(ATT_BAD_ARGUMENT, "cache sequence %lld of %lld", (long long)sequence,
                        (long long)att_cache_describe(a->cache)->sequences);
    }
    if (a->pages) ATT_TRY(att_pages_check_sequence(a->pages, b));
    int64_t keys = keys_of(p, b, t);
    keys -= ring_start(p, b);
    if (keys < 0 || keys > p->s)
      return att_fail(ATT_BAD_ARGUMENT, "sequence %lld has %lld keys of %lld", (long long)b,
                      (long long)keys, (long long)p->s);
    if (a->mask.align == ATT_ALIGN_OFFSETS &&
        (a->mask.offsets[b] > ATT_MAX_SIZE || a->mask.offsets[b] < -ATT_MAX_SIZE))
      return att_fail(ATT_BAD_ARGUMENT, "offsets[%lld] is %lld, beyond ±2^30", (long long)b,
                      (long long)a->mask.offsets[b]);
    ATT_TRY(att_mask_check_contents(&a->mask, b, t, keys));
    ATT_TRY(check_ring(p, b));
  }
  return ATT_OK;
}

att_mask_query att_problem_query(const att_problem *p, const att_sequence *s, int64_t b, int64_t h,
                                 int64_t i) {
  (void)p;
  return (att_mask_query){
      .b = b,
      .h = h,
      .i = i,
      .position = i + s->offset,
      .t = s->t,
      .n = s->n,
      .start = s->start,
  };
}
