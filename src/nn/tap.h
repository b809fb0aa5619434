/* A tap sees what flows through the layers, at the sites of attend/sites.inc.
 *
 * Layers call it with values they have computed anyway; a tap only looks, so
 * the results are the same bits with and without one. Attention weights, scores
 * and sums, which a plain run never makes, a tap asks of the very call that the
 * layer makes; what else there is none of (logits of earlier rows, other stages
 * of the scores) it computes by itself, with the functions the layers use. */
#ifndef ATT_NN_TAP_H
#define ATT_NN_TAP_H

#include "attend/sdpa.h"
#include "attend/sites.h"
#include "base/status.h"

/* Bits of a site, and of all. */
#define ATT_TAP_SITE(site) (UINT64_C(1) << (site))
#define ATT_TAP_ALL UINT64_MAX
_Static_assert(ATT_SITE_COUNT <= 64, "each site has a bit");

typedef struct att_tap {
  uint64_t sites; /* the bits of those whose values it is shown */
  /* `value` f32: rows of the current pass first, e.g. [T,C] or [T,H,D]. */
  void (*value)(void *payload, att_site site, int64_t layer, const att_view *value);
  /* Attention is about to run with these arguments; `pattern` is the site of its
   * weights, which tells self-attention from cross attention. This and the next two
   * may be NULL. */
  att_status (*attention)(void *payload, att_site pattern, int64_t layer,
                          const att_sdpa_args *args);
  /* Then each may add results that nobody has asked for yet, and a plan with room for
   * them in place of the layer's. */
  att_status (*ask)(void *payload, att_site pattern, int64_t layer, att_sdpa_args *args,
                    att_sdpa_plan **plan);
  /* It has run, with the results that were asked for. */
  att_status (*attended)(void *payload, att_site pattern, int64_t layer, const att_sdpa_args *args);
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

/* Attention itself: shown, asked, run, shown again. */
att_status att_tap_attend(const att_tap *tap, att_site pattern, int64_t layer, att_sdpa_args *args,
                          att_sdpa_plan *plan);

#endif
