/* The way back through the model. Each part quotes the forward it reverses. */
#include <string.h>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "train/pass.h"

/* What the way back works on. */
typedef struct back {
  att_pass_plan *plan;
  const att_pass *pass;
  float *gradients;
  int64_t rows, width;
} back;

static float *gradient(const back *b, att_slot slot, int64_t l) {
  return att_parameter_in(b->plan->parameters, b->gradients, slot, l);
}

static const float *value(const back *b, att_slot slot, int64_t l) {
  return att_parameter_in(b->plan->parameters, (float *)b->plan->values, slot, l);
}

/* dW, db and dx += of one linear layer, dx [rows,k] from dy [rows,n]. */
static void linear(const back *b, att_slot weight, att_slot bias, int64_t l, const float *x,
                   const float *dy, int64_t n, int64_t k, const float *residual, float *dx) {
  att_linear_backward_w(&b->plan->way_back, dy, n, x, k, gradient(b, weight, l),
                        gradient(b, bias, l));
  if (dx) att_linear_backward_x(&b->plan->way_back, value(b, weight, l), dy, n, k, residual, dx);
}

static void show(const back *b, att_site site, int64_t l, float *x, int64_t width) {
  att_tap_rows(b->pass->tap, site, l, x, b->rows, width);
}

static void show_heads(const back *b, att_site site, int64_t l, float *x, int64_t heads) {
  att_tap_heads(b->pass->tap, site, l, x, b->rows, heads, b->plan->parameters->config.head_dim);
}

/* forward: stream = stream + drop(branch). Gives back the branch's gradient. */
static const float *into_branch(const back *b, int64_t l, int place) {
  att_pass_plan *p = b->plan;
  if (p->dropout == 0 || !b->pass->training) return p->dstream;
  memcpy(p->branch, p->dstream, (size_t)(b->rows * b->width) * sizeof(float));
  att_pass_drop(p, b->pass, l, place, p->branch);
  return p->branch;
}

/* forward: normed = norm(x); the stream's gradient takes up dnormed's part. */
static void through_norm(const back *b, const att_norm *norm, att_slot weight, att_slot bias,
                         int64_t l, const float *x, float *dx) {
  att_pass_plan *p = b->plan;
  att_norm_backward(&p->way_back, norm, x, p->dnormed, dx, p->terms, gradient(b, weight, l),
                    gradient(b, bias, l));
}

/* forward: middle -> norm2 -> pre (and up) -> hidden -> down -> drop -> + middle */
static void ffn(const back *b, int64_t l) {
  att_pass_plan *p = b->plan;
  const att_layer_weights *layer = &p->weights->layer[l];
  const att_kept *kept = &p->kept[l];
  int64_t c = b->width, f = p->parameters->config.ffn_width;
  bool gated = layer->ffn.kind == ATT_FFN_GATED;
  const float *dbranch = into_branch(b, l, ATT_DROP_FFN);
  show(b, ATT_SITE_MLP_OUT, l, (float *)dbranch, c);
  att_norm_forward(p->runtime, &layer->norm2, kept->middle, b->rows, p->normed);
  att_activate(p->runtime, layer->ffn.activation, kept->pre, kept->up, b->rows * f, p->hidden);
  linear(b, ATT_SLOT_DOWN_W, ATT_SLOT_DOWN_B, l, p->hidden, dbranch, c, f, NULL, p->dhidden);
  show(b, ATT_SITE_MLP_POST, l, p->dhidden, f);
  att_activation_backward(p->runtime, layer->ffn.activation, kept->pre, kept->up, p->dhidden,
                          b->rows * f, p->dhidden, p->dup);
  show(b, ATT_SITE_MLP_PRE, l, p->dhidden, f);
  linear(b, gated ? ATT_SLOT_GATE_W : ATT_SLOT_UP_W, gated ? ATT_SLOT_GATE_B : ATT_SLOT_UP_B, l,
         p->normed, p->dhidden, f, c, NULL, p->dnormed);
  if (gated)
    linear(b, ATT_SLOT_UP_W, ATT_SLOT_UP_B, l, p->normed, p->dup, f, c, p->dnormed, p->dnormed);
  show(b, ATT_SITE_LN2, l, p->dnormed, c);
  through_norm(b, &layer->norm2, ATT_SLOT_NORM2_W, ATT_SLOT_NORM2_B, l, kept->middle, p->branch);
  att_pass_add(p, b->pass, p->dstream, p->branch);
  show(b, ATT_SITE_RESID_MID, l, p->dstream, c);
}

static void turn_back(const back *b, float *x, int64_t heads) {
  att_pass_plan *p = b->plan;
  int64_t dim = p->parameters->config.head_dim;
  if (!p->back.cosine) return;
  for (int64_t s = 0; s < b->pass->sequences; s++)
    att_rope_forward(p->runtime, &p->back, x + s * p->length * heads * dim, p->length, heads, dim,
                     0);
}

/* forward: z = attention(turned q, turned k, v) */
static att_status heads(const back *b, int64_t l) {
  att_pass_plan *p = b->plan;
  const att_config *c = &p->parameters->config;
  int64_t together = att_pass_together(p, b->pass);
  for (int64_t s = 0; s < b->pass->sequences; s += together) {
    att_sdpa_args args;
    att_sdpa_grads grads;
    att_pass_attention(&args, p, b->pass, l, s);
    ATT_TRY(att_tap_attention(b->pass->tap, ATT_SITE_PATTERN, l, &args));
    att_sdpa_grads_init(&grads);
    int64_t q = s * p->length * c->heads * c->head_dim;
    int64_t kv = s * p->length * c->kv_heads * c->head_dim;
    grads.out = grads.dout = args.out;
    grads.dout.data = p->dz + q;
    grads.lse = args.lse;
    grads.dq = args.q, grads.dq.data = p->dq + q;
    grads.dk = args.k, grads.dk.data = p->dk + kv;
    grads.dv = args.v, grads.dv.data = p->dv + kv;
    ATT_TRY(att_sdpa_backward(p->attention_back, &args, &grads));
  }
  show_heads(b, ATT_SITE_ROT_Q, l, p->dq, c->heads);
  show_heads(b, ATT_SITE_ROT_K, l, p->dk, c->kv_heads);
  turn_back(b, p->dq, c->heads);
  turn_back(b, p->dk, c->kv_heads);
  show_heads(b, ATT_SITE_Q, l, p->dq, c->heads);
  show_heads(b, ATT_SITE_K, l, p->dk, c->kv_heads);
  show_heads(b, ATT_SITE_V, l, p->dv, c->kv_heads);
  return ATT_OK;
}

/* forward: x -> norm1 -> q, k, v -> heads -> o -> drop -> + x */
static att_status attention(const back *b, int64_t l) {
  att_pass_plan *p = b->plan;
  const att_layer_weights *layer = &p->weights->layer[l];
  const att_config *config = &p->parameters->config;
  const att_kept *kept = &p->kept[l];
  int64_t c = b->width, hd = att_config_size(config, ATT_SIZE_HD);
  int64_t gd = att_config_size(config, ATT_SIZE_GD);
  const float *dbranch = into_branch(b, l, ATT_DROP_ATTENTION);
  show(b, ATT_SITE_ATTN_OUT, l, (float *)dbranch, c);
  linear(b, ATT_SLOT_O_W, ATT_SLOT_O_B, l, kept->z, dbranch, c, hd, NULL, p->dz);
  show_heads(b, ATT_SITE_Z, l, p->dz, config->heads);
  ATT_TRY(heads(b, l));
  att_norm_forward(p->runtime, &layer->norm1, kept->x, b->rows, p->normed);
  linear(b, ATT_SLOT_Q_W, ATT_SLOT_Q_B, l, p->normed, p->dq, hd, c, NULL, p->dnormed);
  linear(b, ATT_SLOT_K_W, ATT_SLOT_K_B, l, p->normed, p->dk, gd, c, p->dnormed, p->dnormed);
  linear(b, ATT_SLOT_V_W, ATT_SLOT_V_B, l, p->normed, p->dv, gd, c, p->dnormed, p->dnormed);
  show(b, ATT_SITE_LN1, l, p->dnormed, c);
  through_norm(b, &layer->norm1, ATT_SLOT_NORM1_W, ATT_SLOT_NORM1_B, l, kept->x, p->branch);
  att_pass_add(p, b->pass, p->dstream, p->branch);
  show(b, ATT_SITE_RESID_PRE, l, p->dstream, c);
  return ATT_OK;
}

/* forward: last -> norm -> logits -> loss */
static void output(const back *b) {
  att_pass_plan *p = b->plan;
  int64_t v = p->parameters->config.vocab;
  show(b, ATT_SITE_LOGITS, 0, p->logits, v);
  att_norm_forward(p->runtime, &p->weights->norm, p->last, b->rows, p->normed);
  linear(b, ATT_SLOT_OUTPUT, ATT_SLOT_COUNT, -1, p->normed, p->logits, v, b->width, NULL,
         p->dnormed);
  show(b, ATT_SITE_LN_FINAL, 0, p->dnormed, b->width);
  through_norm(b, &p->weights->norm, ATT_SLOT_NORM_W, ATT_SLOT_NORM_B, -1, p->last, p->dstream);
}

/* forward: x = drop(table(token) + positions(t)) */
static void embedding(const back *b) {
  att_pass_plan *p = b->plan;
  const att_parameters *all = p->parameters;
  const att_config *c = &all->config;
  att_pass_drop(p, b->pass, c->layers, ATT_DROP_EMBED, p->dstream);
  show(b, ATT_SITE_EMBED, 0, p->dstream, b->width);
  float *table = c->tied_output ? b->gradients + all->tied_table : gradient(b, ATT_SLOT_TOKENS, -1);
  att_embedding_backward(&p->way_back, b->pass->tokens, p->dstream, c->vocab, b->width, p->order,
                         p->starts, table);
  if (c->position != ATT_POSITION_LEARNED) return;
  show(b, ATT_SITE_POS_EMBED, 0, p->dstream, b->width);
  for (int64_t r = 0; r < b->rows; r++) p->positions[r] = (int32_t)(r % p->length);
  att_embedding_backward(&p->way_back, p->positions, p->dstream, c->context, b->width, p->order,
                         p->starts, gradient(b, ATT_SLOT_POSITIONS, -1));
}

att_status att_pass_backward(att_pass_plan *p, const att_pass *pass, float *gradients) {
  const att_config *c = &p->parameters->config;
  back b = {p, pass, gradients, att_pass_rows(p, pass), c->width};
  p->way_back.rows = b.rows;
  p->way_back.cuts = pass->cuts;
  p->way_back.slices = pass->slices;
  output(&b);
  for (int64_t l = c->layers - 1; l >= 0; l--) {
    if (p->recompute) ATT_TRY(att_pass_block(p, pass, l, true));
    show(&b, ATT_SITE_RESID_POST, l, p->dstream, b.width);
    if (c->ffn != ATT_FFN_NONE) ffn(&b, l);
    ATT_TRY(attention(&b, l));
  }
  embedding(&b);
  return ATT_OK;
}
