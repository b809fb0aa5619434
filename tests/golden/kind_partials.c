/* published_partials: activations that a model's author published, from a
 * float32 PyTorch run over a batch of prompts. Names are those of nanoGPT's
 * code; where nothing else is said they belong to block 0. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models.h"

#define TOLERANCE 1e-4 /* float32 against float32, of values of order one */

typedef enum partial_shape { ROWS, HEADS, JOINED } partial_shape;

static const struct partial {
  const char *name, *site;
  partial_shape shape; /* [T,C] | [H,T,D] of a site [T,H,D] | that site as [T,H*D] */
} partials[] = {
    {"tok_emb", "hook_embed", ROWS},
    {"pos_emb", "hook_pos_embed", ROWS},
    {"x", "blocks.0.hook_resid_pre", ROWS},
    {"ln1", "blocks.0.ln1.hook_normalized", ROWS},
    {"q", "blocks.0.attn.hook_q", HEADS},
    {"k", "blocks.0.attn.hook_k", HEADS},
    {"v", "blocks.0.attn.hook_v", HEADS},
    {"att", "blocks.0.attn.hook_attn_scores", ROWS},
    {"attSm", "blocks.0.attn.hook_pattern", ROWS},
    {"y", "blocks.0.attn.hook_z", JOINED},
    {"yProj", "blocks.0.hook_attn_out", ROWS},
    {"attnResid", "blocks.0.hook_resid_mid", ROWS},
    {"ln2", "blocks.0.ln2.hook_normalized", ROWS},
    {"fc", "blocks.0.mlp.hook_pre", ROWS},
    {"gelu", "blocks.0.mlp.hook_post", ROWS},
    {"mlp", "blocks.0.hook_mlp_out", ROWS},
    {"mlpResid", "blocks.0.hook_resid_post", ROWS},
    {"ln_f", "ln_final.hook_normalized", ROWS},
    {"lm_head", "logits", ROWS},
    {"probs", "logits", ROWS},
};

static const struct partial *find_partial(struct partial *block, char site[64], const char *name) {
  int index;
  for (size_t i = 0; i < sizeof partials / sizeof *partials; i++)
    if (strcmp(partials[i].name, name) == 0) return &partials[i];
  if (sscanf(name, "block%d", &index) != 1) return NULL;
  snprintf(site, 64, "blocks.%d.hook_resid_post", index);
  *block = (struct partial){name, site, ROWS};
  return block;
}

static att_view softmax_rows(golden_case *c, att_view logits) {
  att_view out = golden_new(c, ATT_F64, 2, logits.shape);
  double *p = golden_doubles(c, &logits), *y = out.data;
  int64_t width = logits.shape[1];
  for (int64_t i = 0; i < logits.shape[0] * width; i++) {
    double sum = 0;
    for (int64_t j = 0; j < width; j++) sum += exp(p[i / width * width + j] - p[i]);
    y[i] = 1 / sum;
  }
  return out;
}

static void expect_partial(golden_case *c, const att_capture *capture, const char *name,
                           int64_t row) {
  struct partial block;
  char site[64];
  const struct partial *partial = find_partial(&block, site, name);
  if (!partial) return; /* idx; qkv, which repeats q, k and v */
  att_view got, want = golden_view(c, name);
  if (!golden_ok(c->g, att_capture_get(&got, capture, partial->site), partial->site)) return;
  if (strcmp(name, "probs") == 0) got = softmax_rows(c, got);
  if (partial->shape == HEADS) got = att_view_transpose(got, 0, 1);
  if (partial->shape == JOINED)
    got = golden_reshaped(golden_as(c, got, ATT_F32), 2,
                          (int64_t[]){got.shape[0], got.shape[1] * got.shape[2]});
  want = att_view_select(want, 0, want.shape[0] == 1 ? 0 : row);
  golden_expect(c, name, got, want, TOLERANCE);
}

static void run(golden_case *c, const char *model, int64_t row) {
  golden_timeline timeline;
  if (!golden_timeline_open(&timeline, c->g, model, false, 0)) return;
  att_view idx = golden_view(c, "idx");
  int64_t n = idx.shape[1], *wide = golden_integers(c, "idx");
  int32_t *ids = golden_alloc(c, n, sizeof *ids);
  for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)wide[row * n + i];
  att_capture *capture = NULL;
  if (golden_ok(c->g, att_capture_create(&capture, timeline.session, "*", 0, 0), "capture") &&
      golden_feed(c->g, timeline.session, ids, n, att_view_none()))
    for (int64_t i = 0; i < att_archive_count(c->archive); i++)
      expect_partial(c, capture, att_archive_name(c->archive, i), row);
  att_capture_free(capture);
  golden_timeline_close(&timeline);
}

void golden_partials(golden_case *c) {
  golden_models models;
  golden_find_models(&models, c->path);
  att_view idx = golden_view(c, "idx");
  for (int i = 0; i < models.n && idx.ndim == 2; i++)
    for (int64_t row = 0; row < idx.shape[0]; row++) {
      char label[128];
      snprintf(label, sizeof label, "row %lld %.80s", (long long)row,
               golden_model_label(models.path[i]));
      if (!golden_begin(c->g, c->path, label)) continue;
      run(c, models.path[i], row);
      golden_end(c->g);
    }
}
