/* explain_choose.c — which head is worth a page, where the user asked for none.
 *
 * What a head of a decoder's last layer adds to the stream reaches the logits, beside what
 * the feed-forward network makes of it: there it is the head that speaks most for the
 * likeliest next token. In layers before, whose heads write for those that follow, and where
 * no head has a share of its own (attention that is normed before it is added, encoders), it
 * is the head that looks hardest at another key.
 */
#include <stdlib.h>

#include "attend/lens.h"
#include "explain.h"
#include "memory.h"

/* Of all heads the one with the largest weight on a key that is neither the
 * first token nor the query itself: those two take much attention everywhere
 * and explain little. Across, every key counts. */
static int64_t looks_hardest(const explained *e) {
  int64_t best = 0;
  float best_weight = -1;
  for (int64_t h = 0; h < e->heads; h++) {
    const att_view row = explain_row(e, "hook_pattern", h);
    for (int64_t j = !e->read.across; j < e->n; j++) {
      if (j == e->query && !e->read.across) continue;
      float weight = ((const float *)row.data)[j * row.stride[0]];
      if (weight > best_weight) {
        best_weight = weight;
        best = h;
      }
    }
  }
  return best;
}

static bool heads_have_shares(const explained *e) {
  return att_model_describe(e->what->model)->kind == ATT_MODEL_DECODER && e->n_next > 0 &&
         e->layer == e->layers - 1 && !explain_site(e, "ln1_post.hook_normalized").data;
}

/* Of all heads the one that adds most to the logit of the likeliest token. */
static att_status speaks_most(int64_t *out, const explained *e) {
  const att_view stream = att_view_select(explain_site(e, "hook_resid_post"), 0, e->query);
  const att_view parts = att_view_select(explain_attention(e, "hook_result"), 0, e->query);
  const int64_t vocab = att_model_describe(e->what->model)->vocab;
  float *logits = memory_get((size_t)(e->heads * vocab), sizeof *logits);
  const att_view shares = att_view_of(logits, ATT_F32, 2, (int64_t[]){e->heads, vocab});
  const att_status status = att_part_logits(shares, e->what->model, parts, stream);
  const float *share = logits + e->next[0].id;
  int64_t best = 0;
  for (int64_t h = 1; h < e->heads && status == ATT_OK; h++)
    if (share[h * vocab] > share[best * vocab]) best = h;
  free(logits);
  if (status == ATT_OK) *out = best;
  return status;
}

att_status explain_choose_head(explained *e) {
  const bool speaks = heads_have_shares(e);
  e->chosen = speaks ? HEAD_SPEAKS : HEAD_LOOKS;
  if (speaks) return speaks_most(&e->head, e);
  e->head = looks_hardest(e);
  return ATT_OK;
}
