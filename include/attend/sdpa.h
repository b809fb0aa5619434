/* attend/sdpa.h — scaled dot-product attention on the caller's tensors.
 *
 *     s(i,j)  = scale * (q_i . k_j)
 *     s(i,j)  = softcap * tanh(s / softcap)          if a cap is set
 *     s(i,j) += bias(i,j) - slope_h * |p_i - j|      if given
 *     s(i,j)  = -inf                                 where the mask hides j
 *     out_i   = sum_j exp(s(i,j) - lse_i) * v_j
 *     lse_i   = log(sum_j exp(s(i,j)) [+ exp(sink_h)])     natural logarithm
 *
 * Shapes: q [B,H,T,D], k [B,G,S,D], v [B,G,S,Dv], out [B,H,T,Dv]; query head h
 * reads key/value head h / (H/G). Any strides. Inputs f32, f16, bf16 (sums in
 * f32) or f64 (sums in f64, plain code); q, k, v share one dtype, out has it
 * or is f32.
 *
 * A row that sees no key gives exactly 0 and lse = -inf (with a sink: 0 and
 * lse = sink). A NaN in a live q, k or v reaches the output; whatever lies in
 * a masked-out key or value never does. A rule masks, and so does a bias of
 * exactly -inf; a row of finite minima is an ordinary average.
 * The bits of the result are defined by docs/math/canonical_order.md and do
 * not depend on threads, batch, layout or target within a class.
 *
 *     att_sdpa_args args;
 *     att_sdpa_args_init(&args);
 *     args.q = …; args.k = …; args.v = …; args.out = …;
 *     att_mask_add(&args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
 *     att_sdpa_plan *plan;
 *     att_sdpa_plan_create(&plan, runtime, &args);
 *     att_sdpa(plan, &args);                       // as often as wanted
 *     att_sdpa_plan_free(plan);
 */
#ifndef ATTEND_SDPA_H
#define ATTEND_SDPA_H

#include <math.h>

#include "attend/cache.h"
#include "attend/mask.h"
#include "attend/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which numbers `scores` receives. */
typedef enum att_score_stage {
  ATT_SCORES_RAW = 0,    /* q . k, before the scale */
  ATT_SCORES_SCALED = 1, /* times scale */
  ATT_SCORES_CAPPED = 2, /* after the soft cap */
  ATT_SCORES_MASKED = 3  /* after bias, ALiBi and mask; hidden keys -inf */
} att_score_stage;

#define ATT_SCALE_DEFAULT ((double)INFINITY) /* 1/sqrt(D) */
#define ATT_SOFTCAP_NONE ((double)INFINITY)  /* a cap of infinity is no cap */

typedef struct att_sdpa_args {
  size_t struct_size;             /* set by att_sdpa_args_init */
  att_view q;                     /* [B,H,T,D] */
  att_view k, v;                  /* [B,G,S,D], [B,G,S,Dv]; absent with cache or pages */
  const att_cache *cache;         /* instead of k and v: its stored keys and values. Over
                                     a ring: causal and window rules, ALiBi, sinks, lse
                                     and entropy only, else UNSUPPORTED; CONTEXT_FULL if
                                     a row could see a position that is gone */
  int64_t cache_layer;            /* which layer of the cache */
  const int64_t *cache_sequences; /* [B] which of its sequences; NULL: 0 … B-1 */
  const int64_t *cache_lengths;   /* [B] keys to attend to; NULL: the sequence's
                                     length + T, the T being written but not advanced */
  const att_pages *pages;         /* instead of k, v and cache: the caller's own pages. S is
                                     table_pages * slots */
  att_view out;                   /* [B,H,T,Dv] */

  double scale;   /* ATT_SCALE_DEFAULT, or any finite number */
  double softcap; /* ATT_SOFTCAP_NONE, or > 0 */
  att_mask mask;
  att_view bias;         /* additive mask, float, broadcast to [B,H,T,S] */
  att_view alibi_slopes; /* f32 [H] */
  att_view sinks;        /* f32 [H]: one more logit in the denominator */
  /* 0 … <1: weights are dropped, the kept ones scaled by 1/(1-dropout). Dropped
   * is where the first word of Philox4x32-10 with key dropout_seed and counter
   * (sequence, head, row, the key's position) is below dropout * 2^32. */
  double dropout;
  uint64_t dropout_seed;

  /* Packed sequences: q [1,H,total,D], k and v [1,G,total,·]; sequence n owns
   * rows cu_q[n] … cu_q[n+1]-1 and keys cu_k[n] … cu_k[n+1]-1. B above then
   * means the number of sequences, as in offsets[], starts[], lengths[]. Over a
   * cache or pages cu_q alone: each sequence has its own keys there, as many as
   * cache_lengths or pages->lengths say, by default its length and its own rows. */
  const int32_t *cu_q, *cu_k; /* [n_sequences+1] or NULL */
  int64_t n_sequences;

  /* Optional results; absent views cost nothing. With `rows`, weights and
   * scores have n_rows instead of T query rows, those listed. Over a cache or pages
   * S is what a sequence may hold, or less where the caller wants fewer columns. Keys that a rule
   * "keys" leaves out (padding) or that belong to another packed sequence have weight +0
   * and a score of -inf in every stage. Rows of padding are rows like any other: they see
   * the sequence's keys, or nothing (all weights 0) where they stand before all of them, as
   * left padding does in a causal mask; out, column_sums and the rest have them too. */
  att_view lse;     /* f32 (f64 for f64 inputs) [B,H,T] */
  att_view weights; /* f32 (f64) [B,H,T or n_rows,S] */
  att_view scores;  /* f32 (f64) [B,H,T or n_rows,S] */
  att_score_stage score_stage;
  const int64_t *rows; /* ascending rows of q's T dimension, packed ones too; NULL for all */
  int64_t n_rows;
  att_view column_sums; /* f32 (f64) [B,H,S]: weights summed over queries; packed: [1,H,S],
                           over a cache or pages [n_sequences,H,S] */
  att_view entropy;     /* f32 (f64) [B,H,T]: nats, -sum w log w */

  int64_t block, span; /* default 128 and 512; others only for tests */
  bool strict;         /* plan creation fails instead of taking a slow path */
} att_sdpa_args;

typedef struct att_sdpa_plan att_sdpa_plan;

/* Fills every field with its default: absent views, default scale, no mask. */
ATT_API void att_sdpa_args_init(att_sdpa_args *args);

/* Checks everything about `args` but the contents of tensors and of arrays, and
 * decides how to run: path, tiles, threads, workspace. A view without a data
 * pointer is absent here too; nothing is read through the others yet. Sizes are
 * at most 2^30 each. The plan owns its workspace; it may be used by one thread
 * at a time.
 * BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, TOO_LARGE, OUT_OF_MEMORY, UNSUPPORTED. */
ATT_API att_status att_sdpa_plan_create(att_sdpa_plan **out, att_runtime *runtime,
                                        const att_sdpa_args *args);
ATT_API void att_sdpa_plan_free(att_sdpa_plan *plan);

/* One line: path, tile, threads, workspace. Valid while the plan lives. */
ATT_API const char *att_sdpa_plan_describe(const att_sdpa_plan *plan);

/* Bytes of the plan's workspace. */
ATT_API int64_t att_sdpa_plan_workspace(const att_sdpa_plan *plan);

/* Runs attention. `args` must have the dtypes, heads, head dims and features
 * that the plan was made for; pointers, strides, offsets, lengths and mask
 * contents may differ, and B, T and S may be smaller. No output may overlap an
 * input or another output, nor name an element twice (a stride of 0).
 * Allocates nothing. BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, TOO_LARGE before any
 * read of a tensor.
 * Cost: 2·pairs·(D+Dv) flops a head, pairs being the visible ones. Threads share
 * key heads and chunks of rows. Up to 48 rows of one key head (a token has as many as
 * query heads read it) may be shared by spans of keys too, with the same bits; a token
 * with more over a single key head runs on one thread. */
ATT_API att_status att_sdpa(att_sdpa_plan *plan, const att_sdpa_args *args);

/* Creates a plan, runs it once and frees it. */
ATT_API att_status att_sdpa_once(att_runtime *runtime, const att_sdpa_args *args);

/* Combines attention over two disjoint sets of keys:
 *   m = max(lse_a, lse_b), w_x = exp(lse_x - m),
 *   out = (w_a out_a + w_b out_b) / (w_a + w_b), lse = m + log(w_a + w_b).
 * An empty side (lse = -inf) leaves the other unchanged; two empty ones give
 * an empty one (out = 0). out [..,Dv] f32, lse [..] f32, all of equal shape;
 * `out` and `lse` may be one of the inputs, with the same strides, and overlap
 * nothing else. BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT, TOO_LARGE. */
ATT_API att_status att_merge(att_runtime *runtime, att_view out, att_view lse, att_view out_a,
                             att_view lse_a, att_view out_b, att_view lse_b);

#ifdef __cplusplus
}
#endif
#endif
