/* Wraps the layers' buffers in views for every tap of a chain. */
#include "nn/tap.h"

static void show(const att_tap *tap, att_site site, int64_t layer, const att_view *value) {
  for (; tap; tap = tap->next) tap->value(tap->payload, site, layer, value);
}

void att_tap_rows(const att_tap *tap, att_site site, int64_t layer, float *x, int64_t rows,
                  int64_t width) {
  if (!tap) return;
  att_view value = att_view_of(x, ATT_F32, 2, (int64_t[]){rows, width});
  show(tap, site, layer, &value);
}

void att_tap_heads(const att_tap *tap, att_site site, int64_t layer, float *x, int64_t rows,
                   int64_t heads, int64_t dim) {
  if (!tap) return;
  att_view value = att_view_of(x, ATT_F32, 3, (int64_t[]){rows, heads, dim});
  show(tap, site, layer, &value);
}

att_status att_tap_attention(const att_tap *tap, att_site pattern, int64_t layer,
                             const att_sdpa_args *args) {
  for (; tap; tap = tap->next) ATT_TRY(tap->attention(tap->payload, pattern, layer, args));
  return ATT_OK;
}
