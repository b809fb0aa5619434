/* Traces of models that read whole texts.
 *
 * The reference ran padded rows along with the text; the library is given the rows
 * whose mask is 1, with their own positions, and must give those rows' numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trace.h"

/* Rows of the golden that are text. */
typedef struct live_rows {
  int64_t n, *at;
} live_rows;

static live_rows find_live(golden_case *c, int64_t n) {
  const int64_t *mask = golden_integers(c, "attention_mask");
  live_rows live = {.at = golden_alloc(c, n, sizeof *live.at)};
  for (int64_t i = 0; i < n; i++)
    if (!mask || mask[i]) live.at[live.n++] = i;
  return live;
}

/* The chosen indices of one dimension. */
static att_view choose(golden_case *c, att_view view, int dim, const live_rows *live) {
  int64_t shape[ATT_MAX_NDIM];
  memcpy(shape, view.shape, sizeof shape);
  shape[dim] = live->n;
  att_view out = golden_new(c, view.dtype, view.ndim, shape);
  for (int64_t i = 0; i < live->n; i++) {
    att_view from = att_view_select(view, dim, live->at[i]);
    att_view to = att_view_select(out, dim, i);
    golden_ok(c->g, att_view_copy(&to, &from), "att_view_copy");
  }
  return out;
}

static void expect_live(golden_case *c, const att_capture *capture, const char *name,
                        const live_rows *live) {
  golden_trace_site site;
  if (!golden_site_get(&site, c, capture, name)) return;
  att_view want = choose(c, golden_view(c, name), site.heads_first, live);
  if (site.pairs) want = choose(c, want, 2, live);
  golden_expect(c, name, site.got, want, site.tolerance);
}

/* GGUF has neither heads nor the table's first rows, but the vectors are the same. */
static bool is_gguf(const char *model) { return strstr(model, ".gguf") != NULL; }

static void expect_pooled(golden_case *c, const golden_timeline *t, const char *model) {
  const att_model_info *info = att_model_describe(t->model);
  att_view want = golden_view(c, "pooled");
  if (!want.data || (is_gguf(model) && !info->pooling_head)) return;
  att_view got = golden_new(c, ATT_F32, 2, (int64_t[]){1, info->width});
  if (golden_ok(c->g, att_session_pool(t->session, got, ATT_POOL_HEAD), "att_session_pool"))
    golden_expect(c, "pooled", att_view_select(got, 0, 0), want, GOLDEN_HIDDEN);
}

static void expect_logits(golden_case *c, const golden_timeline *t, const char *model,
                          const live_rows *live) {
  const att_model_info *info = att_model_describe(t->model);
  att_view want = golden_view(c, "logits");
  if (!want.data || (is_gguf(model) && !info->fills_gaps)) return;
  att_view got = golden_new(c, ATT_F32, 2, (int64_t[]){live->n, info->vocab});
  if (!golden_ok(c->g, att_session_predict(t->session, got, NULL, live->n), "att_session_predict"))
    return;
  golden_expect(c, "logits", got, choose(c, want, 0, live), GOLDEN_HIDDEN);
}

/* The ids, types and positions of the text's rows. Positions of the file count from
 * where the table's rows for texts begin. */
static bool read_text(att_text *out, golden_case *c, const char *model, live_rows *live) {
  int64_t n = 0;
  int32_t *ids = golden_trace_ids(c, "input_ids", &n);
  if (!ids) return false;
  *live = find_live(c, n);
  const int64_t *types = golden_integers(c, "token_type_ids");
  const int64_t *places = golden_integers(c, "position_ids");
  int64_t first = golden_first_position(c->g, model);
  int32_t *kept = golden_alloc(c, n, sizeof *kept), *kinds = golden_alloc(c, n, sizeof *kinds);
  int64_t *positions = golden_alloc(c, n, sizeof *positions);
  for (int64_t i = 0; i < live->n; i++) {
    int64_t row = live->at[i];
    kept[i] = ids[row];
    kinds[i] = types ? (int32_t)types[row] : 0;
    positions[i] = places ? places[row] - first : i;
  }
  *out = (att_text){kept, live->n, kinds, positions};
  return true;
}

void golden_trace_encoder(golden_case *c, const golden_timeline *t, att_capture *capture,
                          const char *model) {
  static const char *const others[] = {"input_ids",    "attention_mask", "token_type_ids",
                                       "position_ids", "final_hidden",   "pooled",
                                       "logits"};
  att_text text;
  live_rows live;
  if (!read_text(&text, c, model, &live)) return;
  if (!golden_ok(c->g, att_session_encode(t->session, &text, 1), "att_session_encode")) return;
  att_view hidden = golden_view(c, "final_hidden");
  if (hidden.data)
    golden_expect(c, "final_hidden", att_session_hidden(t->session), choose(c, hidden, 0, &live),
                  GOLDEN_HIDDEN);
  expect_pooled(c, t, model);
  expect_logits(c, t, model, &live);
  for (int64_t i = 0; i < att_archive_count(c->archive); i++) {
    const char *name = att_archive_name(c->archive, i);
    bool other = false;
    for (size_t o = 0; o < sizeof others / sizeof *others; o++)
      other |= strcmp(name, others[o]) == 0;
    if (!other) expect_live(c, capture, name, &live);
  }
}

/* ---- an encoder with its decoder ---- */

/* The bias of scores: what they have beyond the scaled product. */
static void expect_bias(golden_case *c, const att_capture *capture, const char *name) {
  char site[64];
  att_view scores, scaled, want = golden_view(c, name);
  snprintf(site, sizeof site, "%.7s.0.attn.hook_attn_scores", name);
  if (!golden_ok(c->g, att_capture_get(&scores, capture, site), site)) return;
  snprintf(site, sizeof site, "%.7s.0.attn.hook_scaled_scores", name);
  if (!golden_ok(c->g, att_capture_get(&scaled, capture, site), site)) return;
  double *a = golden_doubles(c, &scores), *b = golden_doubles(c, &scaled);
  double *w = golden_doubles(c, &want);
  att_view got = golden_new(c, ATT_F64, 3, want.shape);
  for (int64_t i = 0; i < att_view_count(&want); i++) /* hidden pairs have no score */
    ((double *)got.data)[i] = isinf(a[i]) ? w[i] : a[i] - b[i];
  golden_expect(c, name, got, want, GOLDEN_HIDDEN);
}

/* The last norm of some GGUFs carries the factor of the logits. */
static void expect_last_norm(golden_case *c, const golden_timeline *t, const att_capture *capture,
                             const char *model) {
  golden_trace_site site;
  if (!golden_site_get(&site, c, capture, "decoder.final_norm")) return;
  double width = (double)att_model_describe(t->model)->width;
  if (golden_factor_is_folded(c->g, model))
    site.got = golden_times(c, site.got, (float)sqrt(width));
  golden_expect(c, "final_norm", site.got, golden_view(c, "final_norm"), GOLDEN_HIDDEN);
}

static void expect_two(golden_case *c, const golden_timeline *t, const att_capture *capture,
                       const char *model) {
  for (int64_t i = 0; i < att_archive_count(c->archive); i++) {
    const char *name = att_archive_name(c->archive, i);
    golden_trace_site site;
    if (strstr(name, "input_ids") || strcmp(name, "logits") == 0) continue;
    if (strcmp(name, "final_norm") == 0)
      expect_last_norm(c, t, capture, model);
    else if (strstr(name, ".position_bias"))
      expect_bias(c, capture, name);
    else if (golden_site_get(&site, c, capture, name)) {
      golden_expect(c, name, site.got, golden_view(c, name), site.tolerance);
      if (site.zeros) golden_expect_zeros(c, name, site.got, golden_view(c, name));
    }
  }
}

void golden_trace_two(golden_case *c, const golden_timeline *t, att_capture *capture,
                      const char *model) {
  int64_t n = 0, read = 0, vocab = att_model_describe(t->model)->vocab;
  int32_t *ids = golden_trace_ids(c, "decoder_input_ids", &n);
  int32_t *text_ids = golden_trace_ids(c, "encoder_input_ids", &read);
  if (!ids || !text_ids) return;
  att_text text = {.tokens = text_ids, .n = read};
  if (!golden_ok(c->g, att_session_encode(t->session, &text, 1), "att_session_encode")) return;
  att_view logits = golden_new(c, ATT_F32, 2, (int64_t[]){n, vocab});
  if (!golden_feed(c->g, t->session, ids, n, logits)) return;
  att_view want = golden_view(c, "logits");
  if (want.data) golden_expect(c, "logits", logits, want, GOLDEN_HIDDEN);
  expect_two(c, t, capture, model);
}
