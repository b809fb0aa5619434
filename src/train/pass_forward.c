/* Forward through the model over whole sequences. */
#include <string.h>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "train/pass.h"

int64_t att_pass_rows(const att_pass_plan *plan, const att_pass *pass) {
  return pass->sequences * plan->length;
}

typedef struct add_job {
  const att_kernels *kernels;
  float *y;
  const float *a, *b;
} add_job;

static void add_some(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const add_job *job = context;
  job->kernels->add(job->y + begin, job->a + begin, job->b + begin, end - begin);
}

/* y = a + b over [rows, C]. */
static void add(const att_pass_plan *p, const att_pass *pass, float *y, const float *a,
                const float *b) {
  add_job job = {p->runtime->kernels, y, a, b};
  att_parallel_for(p->runtime, att_pass_rows(p, pass) * p->parameters->config.width, 8192, add_some,
                   &job);
}

void att_pass_add(const att_pass_plan *plan, const att_pass *pass, float *y, const float *x) {
  add(plan, pass, y, y, x);
}

void att_pass_drop(const att_pass_plan *plan, const att_pass *pass, int64_t l, int place,
                   float *x) {
  if (!pass->training) return;
  att_dropout dropout = {plan->dropout, pass->seed, pass->first, plan->length};
  att_dropout_apply(plan->runtime, &dropout, 3 * l + place, x, att_pass_rows(plan, pass),
                    plan->parameters->config.width);
}

/* ---- attention ---- */

int64_t att_pass_together(const att_pass_plan *plan, const att_pass *pass) {
  return plan->dropout > 0 ? 1 : pass->sequences;
}

/* Rows [sequences, T, heads, D] from a sequence on, as [B, heads, T, D]. */
static att_view heads_view(float *x, int64_t first, int64_t n, int64_t length, int64_t heads,
                           int64_t dim) {
  att_view view =
      att_view_of(x + first * length * heads * dim, ATT_F32, 4, (int64_t[]){n, length, heads, dim});
  return att_view_transpose(view, 1, 2);
}

void att_pass_attention(att_sdpa_args *args, const att_pass_plan *plan, const att_pass *pass,
                        int64_t l, int64_t sequence) {
  const att_config *c = &plan->parameters->config;
  const att_kept *kept = &plan->kept[l];
  int64_t n = att_pass_together(plan, pass), t = plan->length, d = c->head_dim;
  att_sdpa_args_init(args);
  args->q = heads_view(kept->q, sequence, n, t, c->heads, d);
  args->k = heads_view(kept->k, sequence, n, t, c->kv_heads, d);
  args->v = heads_view(kept->v, sequence, n, t, c->kv_heads, d);
  args->out = heads_view(kept->z, sequence, n, t, c->heads, d);
  args->lse =
      att_view_of(kept->lse + sequence * c->heads * t, ATT_F32, 3, (int64_t[]){n, c->heads, t});
  args->scale = att_config_scale(c, l);
  args->mask.rules[args->mask.n_rules++] = (att_mask_rule){.kind = ATT_MASK_CAUSAL};
  if (plan->documents) {
    att_view ids =
        att_view_of((void *)(pass->documents + sequence * t), ATT_I32, 2, (int64_t[]){n, t});
    args->mask.rules[args->mask.n_rules++] =
        (att_mask_rule){.kind = ATT_MASK_DOCUMENTS, .query_side = ids, .key_side = ids};
  }
  if (!pass->training || plan->dropout == 0) return;
  args->dropout = plan->dropout;
  args->dropout_seed = pass->seed + UINT64_C(0x9e3779b97f4a7c15) *
                                        (uint64_t)(((pass->first + sequence) << 16) + l + 1);
}

static void turn(const att_pass_plan *p, const att_pass *pass, float *x, int64_t heads) {
  if (!p->rope.cosine) return;
  int64_t dim = p->parameters->config.head_dim;
  for (int64_t s = 0; s < pass->sequences; s++)
    att_rope_forward(p->runtime, &p->rope, x + s * p->length * heads * dim, p->length, heads, dim,
                     0);
}

static att_status attend(att_pass_plan *p, const att_pass *pass, int64_t l) {
  const att_self_attention *layer = &p->weights->layer[l].attention;
  const att_kept *kept = &p->kept[l];
  int64_t rows = att_pass_rows(p, pass);
  att_linear_forward(p->runtime, &layer->q, p->normed, rows, kept->q);
  att_linear_forward(p->runtime, &layer->k, p->normed, rows, kept->k);
  att_linear_forward(p->runtime, &layer->v, p->normed, rows, kept->v);
  turn(p, pass, kept->q, layer->heads);
  turn(p, pass, kept->k, layer->kv_heads);
  for (int64_t s = 0; s < pass->sequences; s += att_pass_together(p, pass)) {
    att_sdpa_args args;
    att_pass_attention(&args, p, pass, l, s);
    ATT_TRY(att_sdpa(p->attention, &args));
  }
  return ATT_OK;
}

/* ---- blocks ---- */

/* hidden = act(pre), or act(pre) up. */
static void feed(att_pass_plan *p, const att_ffn *ffn, const att_kept *kept, int64_t rows) {
  bool gated = ffn->kind == ATT_FFN_GATED;
  att_linear_forward(p->runtime, gated ? &ffn->gate : &ffn->up, p->normed, rows, kept->pre);
  if (gated) att_linear_forward(p->runtime, &ffn->up, p->normed, rows, kept->up);
  att_activate(p->runtime, ffn->activation, kept->pre, kept->up, rows * ffn->down.weight.k,
               p->hidden);
}

att_status att_pass_block(att_pass_plan *p, const att_pass *pass, int64_t l, bool again) {
  const att_layer_weights *layer = &p->weights->layer[l];
  const att_kept *kept = &p->kept[l];
  bool last = l + 1 == p->parameters->config.layers, fed = layer->ffn.kind != ATT_FFN_NONE;
  float *next = last ? p->last : p->kept[l + 1].x;
  int64_t rows = att_pass_rows(p, pass);

  att_norm_forward(p->runtime, &layer->norm1, kept->x, rows, p->normed);
  ATT_TRY(attend(p, pass, l));
  if (again && !fed) return ATT_OK;
  att_linear_forward(p->runtime, &layer->attention.o, kept->z, rows, p->branch);
  att_pass_drop(p, pass, l, ATT_DROP_ATTENTION, p->branch);
  add(p, pass, fed ? kept->middle : next, kept->x, p->branch);
  if (!fed) return ATT_OK;

  att_norm_forward(p->runtime, &layer->norm2, kept->middle, rows, p->normed);
  feed(p, &layer->ffn, kept, rows);
  if (again) return ATT_OK;
  att_linear_forward(p->runtime, &layer->ffn.down, p->hidden, rows, p->branch);
  att_pass_drop(p, pass, l, ATT_DROP_FFN, p->branch);
  add(p, pass, next, kept->middle, p->branch);
  return ATT_OK;
}

static void embed(att_pass_plan *p, const att_pass *pass) {
  const att_config *c = &p->parameters->config;
  int64_t rows = att_pass_rows(p, pass);
  float *x = p->kept[0].x;
  for (int64_t r = 0; r < rows; r++)
    att_embedding_row(&p->weights->tokens, pass->tokens[r], x + r * c->width);
  if (c->position == ATT_POSITION_LEARNED) {
    for (int64_t r = 0; r < rows; r++)
      att_embedding_row(&p->weights->positions, r % p->length, p->branch + r * c->width);
    att_pass_add(p, pass, x, p->branch);
  }
  att_pass_drop(p, pass, c->layers, ATT_DROP_EMBED, x);
}

att_status att_pass_forward(att_pass_plan *p, const att_pass *pass, float scale) {
  const att_config *c = &p->parameters->config;
  int64_t rows = att_pass_rows(p, pass);
  embed(p, pass);
  for (int64_t l = 0; l < c->layers; l++) ATT_TRY(att_pass_block(p, pass, l, false));
  att_norm_forward(p->runtime, &p->weights->norm, p->last, rows, p->normed);
  att_linear_forward(p->runtime, &p->weights->output, p->normed, rows, p->logits);
  att_cross_entropy(p->runtime, p->logits, pass->targets, rows, c->vocab, scale, p->loss);
  return ATT_OK;
}
