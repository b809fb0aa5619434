/* Where a forward stopped being finite. */
#include <math.h>
#include <stdio.h>

#include "train/pass.h"

static bool is_bad(const float *x, int64_t n) {
  for (int64_t i = 0; x && i < n; i++)
    if (!isfinite(x[i])) return true;
  return false;
}

static bool name(char out[ATT_PARAMETER_NAME], int64_t l, const char *what) {
  if (l < 0)
    snprintf(out, ATT_PARAMETER_NAME, "%s", what);
  else
    snprintf(out, ATT_PARAMETER_NAME, "blocks.%lld.%s", (long long)l, what);
  return true;
}

bool att_pass_find_bad(char out[ATT_PARAMETER_NAME], const att_pass_plan *p, const att_pass *pass) {
  const att_config *c = &p->parameters->config;
  int64_t rows = att_pass_rows(p, pass), d = c->head_dim;
  for (int64_t l = 0; l < c->layers; l++) {
    const att_kept *k = &p->kept[l];
    if (is_bad(k->x, rows * c->width)) return name(out, l, "hook_resid_pre");
    if (p->recompute && l + 1 < c->layers) continue; /* the others are gone */
    if (is_bad(k->q, rows * c->heads * d)) return name(out, l, "attn.hook_rot_q");
    if (is_bad(k->k, rows * c->kv_heads * d)) return name(out, l, "attn.hook_rot_k");
    if (is_bad(k->v, rows * c->kv_heads * d)) return name(out, l, "attn.hook_v");
    if (is_bad(k->z, rows * c->heads * d)) return name(out, l, "attn.hook_z");
    if (is_bad(k->middle, rows * c->width)) return name(out, l, "hook_resid_mid");
    if (is_bad(k->pre, rows * c->ffn_width)) return name(out, l, "mlp.hook_pre");
  }
  if (is_bad(p->last, rows * c->width)) return name(out, c->layers - 1, "hook_resid_post");
  return is_bad(p->loss, rows) && name(out, -1, "logits");
}
