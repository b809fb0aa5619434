/* Traces: what flows through a model for one prompt, position by position.
 *
 * The file's tensors name what to compare: block.i.q is the site
 * blocks.i.attn.hook_rot_q and so on. The checkpoint is tried in every format
 * beside it; whatever order of rotary pairs a format has, the library brings it
 * to the goldens' own (component j turns with j + D/2). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define HIDDEN GOLDEN_HIDDEN
#define WEIGHTS 2e-5

static const struct trace_row {
  const char *golden, *site;
  bool heads; /* first in the golden, second at the site */
  double tolerance;
} rows[] = {
    {"attn_in", "ln1.hook_normalized", false, HIDDEN},
    {"q", "attn.hook_rot_q", true, HIDDEN},
    {"k", "attn.hook_rot_k", true, HIDDEN},
    {"v", "attn.hook_v", true, HIDDEN},
    {"scores", "attn.hook_attn_scores", false, HIDDEN},
    {"weights", "attn.hook_pattern", false, WEIGHTS},
    {"head_out", "attn.hook_z", true, HIDDEN},
    {"attn_out", "hook_attn_out", false, HIDDEN},
    {"sink", "attn.hook_sink", true, WEIGHTS},
    {"router_logits", "mlp.hook_router_logits", false, HIDDEN},
    {"mid", "hook_resid_mid", false, HIDDEN},
    {"mlp_out", "hook_mlp_out", false, HIDDEN},
    {"out", "hook_resid_post", false, HIDDEN},
    {"cross.attn_in", "ln_cross.hook_normalized", false, HIDDEN},
    {"cross.q", "cross_attn.hook_q", true, HIDDEN},
    {"cross.k", "cross_attn.hook_k", true, HIDDEN},
    {"cross.v", "cross_attn.hook_v", true, HIDDEN},
    {"cross.scores", "cross_attn.hook_attn_scores", false, HIDDEN},
    {"cross.weights", "cross_attn.hook_pattern", false, WEIGHTS},
    {"cross.head_out", "cross_attn.hook_z", true, HIDDEN},
    {"cross.attn_out", "hook_cross_attn_out", false, HIDDEN},
    {"cross.out", "hook_resid_mid_cross", false, HIDDEN},
};

/* "block.3.q" → "blocks.3.attn.hook_rot_q", "decoder.block.3.q" →
 * "decoder.3.attn.hook_rot_q"; NULL if there is no such site. */
static const struct trace_row *find_site(char site[128], const char *name) {
  static const struct trace_row plain = {"embed", NULL, false, HIDDEN};
  char stack[16] = "blocks";
  if (strncmp(name, "encoder.", 8) == 0 || strncmp(name, "decoder.", 8) == 0) {
    snprintf(stack, sizeof stack, "%.7s", name);
    name += 8;
  }
  if (strcmp(name, "final_norm") == 0) {
    bool alone = strcmp(stack, "blocks") == 0;
    snprintf(site, 128, "%s%sln_final.hook_normalized", alone ? "" : stack, alone ? "" : ".");
    return &plain;
  }
  if (strcmp(name, "embed") == 0) {
    snprintf(site, 128, "%s.0.hook_resid_pre", stack);
    return &plain;
  }
  int block, end = 0;
  if (sscanf(name, "block.%d.%n", &block, &end) != 1 || end == 0) return NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].golden, name + end) != 0) continue;
    snprintf(site, 128, "%s.%d.%s", stack, block, rows[i].site);
    return &rows[i];
  }
  return NULL;
}

/* A copy of a site's rows, each number times `factor`. */
att_view golden_times(golden_case *c, att_view view, float factor) {
  view = golden_as(c, view, ATT_F32);
  float *numbers = view.data;
  for (int64_t i = 0; i < att_view_count(&view); i++) numbers[i] *= factor;
  return view;
}

bool golden_site_get(golden_trace_site *out, golden_case *c, const att_capture *capture,
                     const char *name) {
  char site[128];
  const struct trace_row *row = find_site(site, name);
  if (!row) {
    golden_fail(c->g, "%s: no site is known for it", name);
    return false;
  }
  if (!golden_ok(c->g, att_capture_get(&out->got, capture, site), site)) return false;
  if (row->heads) out->got = att_view_transpose(out->got, 0, 1);
  out->tolerance = row->tolerance;
  out->heads_first = row->heads || strstr(row->golden, "scores") || strstr(row->golden, "weights");
  out->pairs = out->heads_first && !row->heads;
  out->zeros = strstr(row->golden, "weights") != NULL;
  return true;
}

/* `folded`: what the queries of a block have from the scale of its scores. */
static void expect_site(golden_case *c, const att_capture *capture, const char *name,
                        const golden_folding *folded) {
  golden_trace_site site;
  if (!golden_site_get(&site, c, capture, name)) return;
  size_t end = strlen(name);
  if (end > 2 && strcmp(name + end - 2, ".q") == 0) {
    float block = strtof(name + strlen("block."), NULL);
    site.got = golden_times(c, site.got, folded->by_layer ? block + 1 : folded->factor);
  }
  golden_expect(c, name, site.got, golden_view(c, name), site.tolerance);
  if (site.zeros) golden_expect_zeros(c, name, site.got, golden_view(c, name));
}

static bool is_input(const char *name) {
  return strcmp(name, "input_ids") == 0 || strcmp(name, "logits") == 0;
}

int32_t *golden_trace_ids(golden_case *c, const char *name, int64_t *n) {
  att_view view = golden_view(c, name);
  int64_t *wide = golden_integers(c, name);
  if (!wide) {
    golden_fail(c->g, "no %s", name);
    return NULL;
  }
  *n = att_view_count(&view);
  int32_t *ids = golden_alloc(c, *n, sizeof *ids);
  for (int64_t i = 0; i < *n; i++) ids[i] = (int32_t)wide[i];
  return ids;
}

static void compare(golden_case *c, const golden_timeline *timeline, att_capture *capture,
                    const golden_folding *folded) {
  int64_t n = 0;
  int32_t *ids = golden_trace_ids(c, "input_ids", &n);
  if (!ids) return;
  const att_model_info *info = att_model_describe(timeline->model);
  att_view logits = golden_new(c, ATT_F32, 2, (int64_t[]){n, info->vocab});
  if (!golden_feed(c->g, timeline->session, ids, n, logits)) return;
  att_view want = golden_view(c, "logits");
  if (want.data) golden_expect(c, "logits", logits, want, HIDDEN);
  for (int64_t i = 0; i < att_archive_count(c->archive); i++) {
    const char *name = att_archive_name(c->archive, i);
    if (!is_input(name)) expect_site(c, capture, name, folded);
  }
}

/* By the way that the model reads. */
static void compare_any(golden_case *c, const golden_timeline *timeline, att_capture *capture,
                        const char *model) {
  golden_folding folded = golden_folding_of(c->g, model);
  switch (att_model_describe(timeline->model)->kind) {
  case ATT_MODEL_DECODER: compare(c, timeline, capture, &folded); break;
  case ATT_MODEL_ENCODER: golden_trace_encoder(c, timeline, capture, model); break;
  case ATT_MODEL_ENCODER_DECODER: golden_trace_two(c, timeline, capture, model); break;
  }
}

static void run(golden_case *c, const char *model) {
  if (!golden_begin(c->g, c->path, golden_model_label(model))) return;
  golden_timeline timeline;
  att_view ids = golden_view(c, "input_ids");
  int64_t n = ids.data ? att_view_count(&ids) : 0;
  if (golden_timeline_open(&timeline, c->g, model, false, n)) {
    att_capture *capture = NULL;
    if (golden_ok(c->g, att_capture_create(&capture, timeline.session, "*", 0, 0), "capture"))
      compare_any(c, &timeline, capture, model);
    att_capture_free(capture);
    golden_timeline_close(&timeline);
  }
  golden_end(c->g);
}

void golden_trace(golden_case *c) {
  golden_models models;
  golden_find_models(&models, c->path);
  for (int i = 0; i < models.n; i++)
    if (!golden_is_rounded(models.path[i])) run(c, models.path[i]);
  if (models.n == 0 && golden_begin(c->g, c->path, "")) {
    golden_fail(c->g, "no checkpoint beside expected/");
    golden_end(c->g);
  }
}

/* dequant_logits: "NAME.TYPE.logits_last" are the last logits of trace_NAME over
 * the weights of the GGUF of that type. */
static void run_dequant(golden_case *c, const char *tensor, const char *model) {
  char name[64], type[16], path[GOLDEN_PATH], label[128];
  if (sscanf(tensor, "%63[^.].%15[^.].", name, type) != 2 || !strstr(model, type)) return;
  snprintf(label, sizeof label, "%s %s", name, golden_model_label(model));
  if (!golden_begin(c->g, c->path, label)) return;
  int folder = (int)(strrchr(c->path, '/') - c->path);
  snprintf(path, sizeof path, "%.*s/trace_%s.safetensors", folder, c->path, name);
  golden_case trace = {.g = c->g, .path = path};
  golden_timeline timeline;
  if (att_archive_open(&trace.archive, c->g->runtime, path) != ATT_OK) {
    golden_skip(c->g, "trace file of a dequant_logits tensor is absent");
  } else if (golden_timeline_open(&timeline, c->g, model, false, 0)) {
    int64_t n = 0, vocab = att_model_describe(timeline.model)->vocab;
    int32_t *ids = golden_trace_ids(&trace, "input_ids", &n);
    att_view logits = golden_new(c, ATT_F32, 2, (int64_t[]){n, vocab});
    if (ids && golden_feed(c->g, timeline.session, ids, n, logits))
      golden_expect(c, tensor, att_view_select(logits, 0, n - 1), golden_view(c, tensor), HIDDEN);
    golden_timeline_close(&timeline);
  }
  golden_case_free(&trace);
  att_archive_close(trace.archive);
  golden_end(c->g);
}

void golden_dequant(golden_case *c) {
  golden_models models;
  golden_find_models(&models, c->path);
  for (int i = 0; i < models.n; i++)
    if (golden_is_rounded(models.path[i]))
      for (int64_t t = 0; t < att_archive_count(c->archive); t++)
        run_dequant(c, att_archive_name(c->archive, t), models.path[i]);
}
