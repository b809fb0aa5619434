/* Memory and plans of a pass, made once. */
#include <string.h>

#include "base/alloc.h"
#include "train/pass.h"

/* Adds arrays one after the other; with no base it only counts, up to a number that is
 * more than there is anywhere, and whose bytes can be summed. */
typedef struct arena {
  float *base;
  int64_t used;
} arena;
static const int64_t TOO_MANY_FLOATS = INT64_C(1) << 50;

static float *take(arena *a, int64_t floats) {
  float *at = a->base ? a->base + a->used : NULL;
  a->used += (floats + 15) / 16 * 16;
  if (a->used > TOO_MANY_FLOATS) a->used = TOO_MANY_FLOATS;
  return at;
}

/* Rows of the largest table that is learned. A rotation needs none, and its context is
 * a number of a file that nothing in it bears out. */
static int64_t widest_table(const att_config *c) {
  bool learned = c->position == ATT_POSITION_LEARNED;
  return learned && c->context > c->vocab ? c->context : c->vocab;
}

static void keep_block(arena *a, att_kept *kept, const att_config *c, int64_t rows) {
  int64_t hd = att_config_size(c, ATT_SIZE_HD), gd = att_config_size(c, ATT_SIZE_GD);
  kept->q = take(a, rows * hd);
  kept->k = take(a, rows * gd);
  kept->v = take(a, rows * gd);
  kept->z = take(a, rows * hd);
  kept->lse = take(a, rows * c->heads);
  kept->middle = c->ffn == ATT_FFN_NONE ? NULL : take(a, rows * c->width);
  kept->pre = take(a, rows * c->ffn_width);
  kept->up = c->ffn == ATT_FFN_GATED ? take(a, rows * c->ffn_width) : NULL;
}

int64_t att_pass_kept_bytes(const att_pass_plan *plan) {
  const att_config *c = &plan->parameters->config;
  arena one = {0};
  att_kept kept;
  keep_block(&one, &kept, c, plan->sequences * plan->length);
  return (c->layers - 1) * one.used * (int64_t)sizeof(float);
}

static void lay_out_back(arena *a, att_pass_plan *p, const att_config *c, int64_t rows) {
  int64_t hd = att_config_size(c, ATT_SIZE_HD), gd = att_config_size(c, ATT_SIZE_GD);
  p->dstream = take(a, rows * c->width);
  p->dnormed = take(a, rows * c->width);
  p->terms = take(a, rows * c->width);
  p->dq = take(a, rows * hd);
  p->dk = take(a, rows * gd);
  p->dv = take(a, rows * gd);
  p->dz = take(a, rows * hd);
  p->dhidden = take(a, rows * c->ffn_width);
  p->dup = c->ffn == ATT_FFN_GATED ? take(a, rows * c->ffn_width) : NULL;
  p->positions = (int32_t *)take(a, rows);
  p->order = (int32_t *)take(a, rows);
  p->starts = (int64_t *)take(a, 2 * (widest_table(c) + 1));
  p->way_back.workspace = take(a, att_backward_floats(p->runtime, p->slices, c->width));
  int64_t largest = 0;
  for (int64_t i = 0; i < p->parameters->n; i++) {
    const att_parameter *w = &p->parameters->list[i];
    int64_t floats = att_packed_floats(w->columns, w->rows);
    if (att_slots[w->slot].kind == ATT_KIND_MATRIX && floats > largest) largest = floats;
  }
  p->way_back.transposed.panels = take(a, largest);
}

static int64_t lay_out(att_pass_plan *p, float *base) {
  const att_config *c = &p->parameters->config;
  int64_t rows = p->sequences * p->length;
  arena a = {.base = base};
  for (int64_t l = 0; l < c->layers; l++) {
    p->kept[l].x = take(&a, rows * c->width);
    if (l == 0 || !p->recompute) {
      keep_block(&a, &p->kept[l], c, rows);
      continue;
    }
    float *x = p->kept[l].x;
    p->kept[l] = p->kept[0];
    p->kept[l].x = x;
  }
  p->last = take(&a, rows * c->width);
  p->normed = take(&a, rows * c->width);
  p->branch = take(&a, rows * c->width);
  p->hidden = take(&a, rows * c->ffn_width);
  p->logits = take(&a, rows * c->vocab);
  p->loss = take(&a, rows);
  lay_out_back(&a, p, c, rows);
  return a.used;
}

/* ---- rotation ---- */

static att_status create_rope(att_pass_plan *p) {
  const att_config *c = &p->parameters->config;
  if (c->position != ATT_POSITION_ROPE) return ATT_OK;
  int64_t count = p->length * c->rope.pairs;
  p->bytes += 4 * count * (int64_t)sizeof(float);
  if (p->measuring) return ATT_OK;
  ATT_TRY(att_weights_rope(&p->rope, p->weights, p->runtime, &c->rope, p->length));
  ATT_TRY(att_weights_rope(&p->back, p->weights, p->runtime, &c->rope, p->length));
  for (int64_t i = 0; i < count; i++) p->back.sine[i] = -p->back.sine[i];
  return ATT_OK;
}

/* ---- attention ---- */

/* Plans look at shapes only: one number stands for every array, so that there need be
 * none yet. */
static att_status create_attention(att_pass_plan *p) {
  float any = 0;
  int32_t any_document = 0;
  att_kept kept = {.q = &any, .k = &any, .v = &any, .z = &any, .lse = &any};
  att_pass whole = {.sequences = p->sequences, .training = true, .documents = &any_document};
  att_pass_plan shapes = *p;
  shapes.kept = &kept;
  att_sdpa_args args;
  att_sdpa_grads grads;
  att_pass_attention(&args, &shapes, &whole, 0, 0);
  att_sdpa_grads_init(&grads);
  grads.out = grads.dout = args.out;
  grads.lse = args.lse;
  grads.dq = args.q;
  grads.dk = args.k;
  grads.dv = args.v;
  ATT_TRY(att_sdpa_plan_create(&p->attention, p->runtime, &args));
  ATT_TRY(att_sdpa_backward_plan_create(&p->attention_back, p->runtime, &args, &grads));
  p->bytes += att_sdpa_plan_workspace(p->attention);
  p->bytes += att_sdpa_backward_plan_workspace(p->attention_back);
  return ATT_OK;
}

/* ---- all ---- */

static att_status check(const att_pass_plan *p) {
  const att_config *c = &p->parameters->config;
  int64_t rows, floats;
  if (p->length > c->context)
    return att_fail(ATT_BAD_ARGUMENT, "sequences of %lld tokens; the model has %lld positions",
                    (long long)p->length, (long long)c->context);
  if (!att_mul_checked(&rows, p->sequences, p->length) || rows > INT32_MAX ||
      !att_mul_checked(&floats, rows, c->vocab))
    return att_fail(ATT_TOO_LARGE, "a pass over %lld sequences of %lld tokens overflows",
                    (long long)p->sequences, (long long)p->length);
  return ATT_OK;
}

static att_status create(att_pass_plan *p) {
  const att_runtime *r = p->runtime;
  int64_t layers = p->parameters->config.layers;
  ATT_TRY(check(p));
  ATT_TRY(att_alloc((void **)&p->kept, r, layers, sizeof *p->kept, "kept activations"));
  p->floats = lay_out(p, NULL);
  if (p->floats == TOO_MANY_FLOATS)
    return att_fail(ATT_TOO_LARGE, "activations of %lld sequences of %lld tokens overflow",
                    (long long)p->sequences, (long long)p->length);
  p->bytes = p->floats * (int64_t)sizeof(float);
  p->way_back.runtime = r;
  ATT_TRY(create_attention(p));
  ATT_TRY(create_rope(p));
  if (p->measuring) return ATT_OK;
  ATT_TRY(att_alloc((void **)&p->memory, r, p->floats, sizeof(float), "activations"));
  lay_out(p, p->memory);
  return ATT_OK;
}

att_status att_pass_plan_create(att_pass_plan *plan) {
  att_status status = create(plan);
  if (status != ATT_OK) att_pass_plan_release(plan);
  return status;
}

void att_pass_plan_release(att_pass_plan *p) {
  if (!p->runtime) return;
  const att_runtime *r = p->runtime;
  int64_t layers = p->parameters->config.layers;
  att_sdpa_plan_free(p->attention);
  att_sdpa_backward_plan_free(p->attention_back);
  att_rope_table_release(&p->rope, r);
  att_rope_table_release(&p->back, r);
  att_release(r, p->memory, p->floats, sizeof(float));
  att_release(r, p->kept, layers, sizeof *p->kept);
  *p = (att_pass_plan){0};
}
