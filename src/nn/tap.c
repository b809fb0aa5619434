/* Wraps the layers' buffers in views for every tap of a chain. */
#include "nn/tap.h"

/* The first of a chain that wants a site. */
static const att_tap *wanting(const att_tap *tap, att_site site) {
  while (tap && !(tap->sites & ATT_TAP_SITE(site))) tap = tap->next;
  return tap;
}

static void show(const att_tap *tap, att_site site, int64_t layer, const att_view *value) {
  for (; tap; tap = wanting(tap->next, site)) tap->value(tap->payload, site, layer, value);
}

void att_tap_rows(const att_tap *tap, att_site site, int64_t layer, float *x, int64_t rows,
                  int64_t width) {
  if (!(tap = wanting(tap, site))) return;
  att_view value = att_view_of(x, ATT_F32, 2, (int64_t[]){rows, width});
  show(tap, site, layer, &value);
}

void att_tap_heads(const att_tap *tap, att_site site, int64_t layer, float *x, int64_t rows,
                   int64_t heads, int64_t dim) {
  if (!(tap = wanting(tap, site))) return;
  att_view value = att_view_of(x, ATT_F32, 3, (int64_t[]){rows, heads, dim});
  show(tap, site, layer, &value);
}

att_status att_tap_attention(const att_tap *tap, att_site pattern, int64_t layer,
                             const att_sdpa_args *args) {
  for (; tap; tap = tap->next)
    if (tap->attention) ATT_TRY(tap->attention(tap->payload, pattern, layer, args));
  return ATT_OK;
}

att_status att_tap_attend(const att_tap *tap, att_site pattern, int64_t layer, att_sdpa_args *args,
                          att_sdpa_plan *plan) {
  ATT_TRY(att_tap_attention(tap, pattern, layer, args));
  for (const att_tap *t = tap; t; t = t->next)
    if (t->ask) ATT_TRY(t->ask(t->payload, pattern, layer, args, &plan));
  ATT_TRY(att_sdpa(plan, args));
  for (const att_tap *t = tap; t; t = t->next)
    if (t->attended) ATT_TRY(t->attended(t->payload, pattern, layer, args));
  return ATT_OK;
}
