/* Multi-head self-attention with a cache.
 *
 *   q = x Wq + bq, k = x Wk + bk, v = x Wv + bv      a head is D numbers of a row
 *   q, k turned by position where the model has rotary positions
 *   k, v appended to the cache; z_h = softmax(scale q_h K^T) V, causal
 *   y = z Wo + bo
 *
 * One code for a whole prompt, a chunk of one and a single step: the pass says
 * how many rows there are and at which position the first one stands. */
#ifndef ATT_NN_SELF_ATTENTION_H
#define ATT_NN_SELF_ATTENTION_H

#include "attend/sdpa.h"
#include "nn/linear.h"
#include "nn/rope.h"
#include "nn/tap.h"

typedef struct att_self_attention {
  att_linear q, k, v, o; /* [H D, C], [G D, C], [G D, C], [C, H D] */
  int64_t heads, kv_heads, head_dim;
  double scale;
} att_self_attention;

/* What a pass of `rows` tokens lends to a layer. */
typedef struct att_attention_pass {
  const att_runtime *runtime;
  const att_rope_table *rope; /* NULL: positions come from elsewhere */
  att_cache *cache;
  att_sdpa_plan *plan;
  int64_t block, span;
  int64_t layer, position, rows;
  float *q, *k, *v, *z; /* scratch: [rows, H D] and [rows, G D] */
  const att_tap *tap;   /* or NULL */
} att_attention_pass;

/* The attention call of such a pass; the plan is made for its longest one. */
void att_self_attention_args(att_sdpa_args *out, const att_self_attention *layer,
                             const att_attention_pass *pass);

/* y [rows,C] from x [rows,C]. Forwards failures of cache and attention. */
att_status att_self_attention_forward(const att_self_attention *layer,
                                      const att_attention_pass *pass, const float *x, float *y);

#endif
