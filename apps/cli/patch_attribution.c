/* patch_attribution.c — attribution patching: what the gradient at B says of all places.
 *
 * The way back starts at losses -log p. B is given to it twice, once with each of the two
 * tokens as the answer: what the losses have beside the two logits is the same in both and
 * falls out of the difference of their gradients. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/capture.h"
#include "attend/gradients.h"
#include "memory.h"
#include "patch.h"

enum { TARGET, VERSUS };
static const int64_t BUDGET = (int64_t)1 << 32;

static att_status keep_run(att_capture **out, const patching *p, int side) {
  char select[96];
  att_session_options room;
  att_session *session;
  att_session_options_init(&room);
  room.context = p->prompts->n[side];
  snprintf(select, sizeof select, "blocks.*.%s", p->options.site);
  att_status status = att_session_create(&session, p->what->model, &room);
  if (status != ATT_OK) return status;
  status = att_capture_create(out, session, select, 0, BUDGET);
  if (status == ATT_OK)
    status = att_session_eval(session, p->prompts->ids[side], p->prompts->n[side]);
  att_session_free(session);
  return status;
}

static att_status go_back(att_learner *learner, const patching *p) {
  const int64_t n = p->prompts->n[1];
  int32_t *tokens = memory_get((size_t)(4 * n), sizeof *tokens), *targets = tokens + 2 * n;
  for (int64_t i = 0; i < 2 * n; i++) tokens[i] = p->prompts->ids[1][i % n], targets[i] = -1;
  targets[n - 1] = p->options.target;
  targets[2 * n - 1] = p->options.versus;
  att_step_result result;
  const att_batch batch = {tokens, targets, NULL};
  const att_status status = att_learner_gradients(learner, &batch, &result);
  free(tokens);
  return status;
}

/* Where a layer's sums go: the axes that the grid keeps, in the order of its cells. */
static att_view cells_of(const patching *p, int64_t layer, const att_view *x, float *sums) {
  const bool pairs = !strcmp(p->options.site, "attn.hook_pattern"); /* [H,T,S], not [T,H,D] */
  const int position = pairs ? 1 : 0, head = pairs ? 0 : 1;
  const int64_t first = layer * p->heads * p->columns;
  att_view cells = att_view_of(sums + first, ATT_F32, x->ndim, (int64_t[]){1, 1, 1});
  if (p->options.grid != ATT_PATCH_LAYER_HEAD)
    cells.shape[position] = x->shape[position], cells.stride[position] = 1;
  if (p->options.grid != ATT_PATCH_LAYER_POSITION)
    cells.shape[head] = x->shape[head],
    cells.stride[head] = p->options.grid == ATT_PATCH_LAYER_HEAD ? 1 : p->columns;
  return cells;
}

static att_status sum_layer(const patching *p, int64_t layer, const att_gradients *gradients,
                            att_capture *const runs[2], float *const sums[2]) {
  char name[96], grad[104];
  att_view x[2], g;
  snprintf(name, sizeof name, "blocks.%" PRId64 ".%s", layer, p->options.site);
  snprintf(grad, sizeof grad, "%s_grad", name);
  att_status status = att_gradients_get(&g, gradients, grad);
  for (int i = 0; i < 2 && status == ATT_OK; i++) status = att_capture_get(&x[i], runs[i], name);
  for (int i = TARGET; i <= VERSUS && status == ATT_OK; i++)
    status =
        att_attribution(cells_of(p, layer, &x[0], sums[i]), att_view_select(g, 0, i), x[0], x[1]);
  return status;
}

static att_status sum_all(patching *p, const att_gradients *gradients, att_capture *const runs[2]) {
  const int64_t cells = p->rows * p->columns;
  float *both = memory_get((size_t)(2 * cells), sizeof *both);
  float *const sums[2] = {both, both + cells};
  att_status status = ATT_OK;
  for (int64_t l = 0; l < p->layers && status == ATT_OK; l++)
    status = sum_layer(p, l, gradients, runs, sums);
  /* The loss is the mean of two, and falls as its token's logit grows. */
  for (int64_t i = 0; i < cells; i++)
    p->scores[i] = (float)(2 * ((double)sums[VERSUS][i] - (double)sums[TARGET][i]) /
                           (p->clean - p->corrupted));
  free(both);
  return status;
}

att_status patch_attribute(patching *p) {
  char select[104];
  att_learn_options options;
  att_learn_options_init(&options);
  options.batch = options.slices = 2;
  options.length = p->prompts->n[1];
  options.gradients_only = true;
  snprintf(select, sizeof select, "blocks.*.%s_grad", p->options.site);
  att_learner *learner = NULL;
  att_gradients *gradients = NULL;
  att_capture *runs[2] = {NULL, NULL};
  att_status status = att_learner_open(&learner, p->what->runtime, p->what->model_path, &options);
  if (status == ATT_OK) status = att_gradients_create(&gradients, learner, select, BUDGET);
  if (status == ATT_OK) status = go_back(learner, p);
  for (int i = 0; i < 2 && status == ATT_OK; i++) status = keep_run(&runs[i], p, i);
  if (status == ATT_OK) status = sum_all(p, gradients, runs);
  for (int i = 0; i < 2; i++) att_capture_free(runs[i]);
  att_gradients_free(gradients);
  att_learner_free(learner);
  return status;
}
