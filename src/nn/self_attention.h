/* Multi-head self-attention, with a cache or over the rows of the pass alone.
 *
 *   q = x Wq + bq, k = x Wk + bk, v = x Wv + bv      a head is D numbers of a row
 *   q, k normed, if they are; turned by position, if the layer turns
 *   k, v appended to the cache; z_h = softmax(cap(scale q_h K^T) + bias) V, causal,
 *   the last `window` keys at most, with a sink in the denominator if there is one
 *   y = z Wo + bo
 *
 * Without a cache every row sees every row of its text: an encoder. Texts of a
 * batch lie one after the other; there is no padding, so none can have an effect.
 *
 * One code for a whole prompt, a chunk of one and a single step: the pass says
 * how many rows there are and at which position the first one stands. */
#ifndef ATT_NN_SELF_ATTENTION_H
#define ATT_NN_SELF_ATTENTION_H

#include "attend/sdpa.h"
#include "nn/distance.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/rope.h"
#include "nn/tap.h"

typedef struct att_self_attention {
  att_linear q, k, v, o; /* [H D, C], [G D, C], [G D, C], [C, H D] */
  int64_t heads, kv_heads, head_dim;
  att_norm q_norm, k_norm; /* of width D (a head) or of all heads; kind NONE: not normed */
  int rope;                /* which of the pass's rotations; ATT_NO_ROPE */
  int64_t window;          /* keys a query sees, its own included; 0: all before it */
  double scale, softcap;
  float *sinks; /* [H] or NULL */
} att_self_attention;

#define ATT_NO_ROPE (-1)

/* What a decoder looks at across: keys and values of an encoder's rows. */
typedef struct att_memory {
  att_cache *cache;
  att_sdpa_plan *plan;
  int64_t length; /* rows */
} att_memory;

/* What a pass of `rows` tokens lends to a layer. */
typedef struct att_attention_pass {
  const att_runtime *runtime;
  const att_rope_table *ropes; /* the session's rotations */
  att_cache *cache;            /* NULL: an encoder, of these texts: */
  const int32_t *text_begin;   /* [n_texts+1] rows where they begin, and the end */
  int64_t n_texts;
  const att_distance_rows *distance; /* bias by distance, or NULL */
  const att_memory *memory;          /* for cross attention, or NULL */
  att_sdpa_plan *plan;
  int64_t block, span;
  int64_t layer, position, rows;
  float *q, *k, *v, *z; /* scratch: [rows, H D] and [rows, G D] */
  const att_tap *tap;   /* or NULL */
  /* Rows of several timelines, one after the other: each has a pass of its own, with
   * its cache, plan, position and place in the scratch. NULL: it is one timeline. */
  const struct att_attention_pass *parts;
  int64_t n_parts;
} att_attention_pass;

/* Rows [T, heads, dim] as attention sees them, [1, heads, T, dim]. */
att_view att_heads_view(float *x, int64_t rows, int64_t heads, int64_t dim);

/* The attention call of such a pass; the plan is made for its longest one. */
void att_self_attention_args(att_sdpa_args *out, const att_self_attention *layer,
                             const att_attention_pass *pass);

/* y [rows,C] from x [rows,C]. Forwards failures of cache and attention. */
att_status att_self_attention_forward(const att_self_attention *layer,
                                      const att_attention_pass *pass, const float *x, float *y);

#endif
