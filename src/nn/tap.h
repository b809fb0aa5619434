/* A tap sees what flows through the layers, at the sites of attend/sites.inc.
 *
 * Layers call it with values they have computed anyway; a tap only looks, so
 * the results are the same bits with and without one. What a plain run never
 * makes (attention weights, scores, logits of earlier rows) a tap computes by
 * itself, with the functions the layers use, from what it is handed here. */
#ifndef ATT_NN_TAP_H
#define ATT_NN_TAP_H

#include "attend/sdpa.h"
#include "attend/sites.h"
#include "base/status.h"

typedef struct att_tap {
  /* `value` f32: rows of the current pass first, e.g. [T,C] or [T,H,D]. */
  void (*value)(void *payload, att_site site, int64_t layer, const att_view *value);
  /* Attention is about to run with these arguments; `pattern` is the site of its
   * weights, which tells self-attention from cross attention. */
  att_status (*attention)(void *payload, att_site pattern, int64_t layer,
                          const att_sdpa_args *args);
  void *payload;
  struct att_tap *next; /* another one that looks too, or NULL */
} att_tap;

/* Shows rows [T,width] to `tap` and those after it; NULL is nobody. */
void att_tap_rows(const att_tap *tap, att_site site, int64_t layer, float *x, int64_t rows,
                  int64_t width);

/* Shows rows of heads [T,heads,dim]. */
void att_tap_heads(const att_tap *tap, att_site site, int64_t layer, float *x, int64_t rows,
                   int64_t heads, int64_t dim);

/* Shows the arguments of an attention call. */
att_status att_tap_attention(const att_tap *tap, att_site pattern, int64_t layer,
                             const att_sdpa_args *args);

#endif
