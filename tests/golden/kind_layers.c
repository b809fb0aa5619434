/* Encoder and decoder layers of PyTorch, and stacks of them, forward and back.
 *
 *   before:  x = x + part(norm(x))      after:  x = norm(x + part(x))
 *
 * Parts are self-attention, in a decoder attention to the memory, and the
 * feed-forward network linear2(act(linear1(x))). Every step is one public call. */
#include <stdio.h>
#include <string.h>

#include "module.h"
#include "tape.h"

typedef struct layer_job {
  golden_case *c;
  bool decoder, before;
  int64_t batch, heads, rows, memory_rows; /* rows of a batch member */
  att_view x, memory;                      /* [N*L,E] */
  att_view weights, cross;                 /* of the last layer */
} layer_job;

static att_view norm(const layer_job *job, att_view x, const char *prefix, const char *name) {
  golden_case *c = job->c;
  att_view weight = golden_parameter(c, prefix, name);
  char bias_name[32];
  snprintf(bias_name, sizeof bias_name, "%.*s.bias", (int)(strchr(name, '.') - name), name);
  att_view y = golden_new(c, ATT_F32, 2, x.shape);
  golden_ok(c->g,
            att_layer_norm(c->g->runtime, y, x, weight, golden_parameter(c, prefix, bias_name),
                           golden_number(c, "layer_norm_eps", 1e-5)),
            "att_layer_norm");
  golden_tape(c, &(tape_step){.kind = TAPE_NORM,
                              .y = y,
                              .x = x,
                              .weight = weight,
                              .bias = golden_parameter(c, prefix, bias_name),
                              .eps = golden_number(c, "layer_norm_eps", 1e-5)});
  return y;
}

static att_view add(golden_case *c, att_view a, att_view b) {
  att_view sum = golden_new(c, ATT_F32, 2, a.shape);
  for (int64_t i = 0; i < att_view_count(&a); i++)
    ((float *)sum.data)[i] = ((const float *)a.data)[i] + ((const float *)b.data)[i];
  golden_tape(c, &(tape_step){.kind = TAPE_ADD, .y = sum, .x = a, .other = b});
  return sum;
}

static att_view activate(golden_case *c, att_view x) {
  att_view y = golden_new(c, ATT_F32, 2, x.shape);
  bool gelu = strcmp(golden_text(c, "activation", "relu"), "gelu") == 0;
  golden_tape(c, &(tape_step){.kind = gelu ? TAPE_GELU : TAPE_RELU, .y = y, .x = x});
  if (gelu) {
    golden_ok(c->g, att_gelu(c->g->runtime, y, x), "att_gelu");
    return y;
  }
  for (int64_t i = 0; i < att_view_count(&x); i++) {
    float number = ((const float *)x.data)[i];
    ((float *)y.data)[i] = number > 0 ? number : 0;
  }
  return y;
}

static att_view feed_forward(const layer_job *job, att_view x, const char *prefix) {
  golden_case *c = job->c;
  att_view hidden = golden_module_linear(c, x, golden_parameter(c, prefix, "linear1.weight"),
                                         golden_parameter(c, prefix, "linear1.bias"));
  return golden_module_linear(c, activate(c, hidden), golden_parameter(c, prefix, "linear2.weight"),
                              golden_parameter(c, prefix, "linear2.bias"));
}

static bool self_attention(att_view *out, layer_job *job, att_view x, const char *prefix) {
  char own[64];
  snprintf(own, sizeof own, "%sself_attn.", prefix);
  const golden_module m = {.c = job->c,
                           .prefix = own,
                           .mask = job->decoder ? "tgt_mask" : "src_mask",
                           .padding =
                               job->decoder ? "tgt_key_padding_mask" : "src_key_padding_mask",
                           .batch = job->batch,
                           .heads = job->heads,
                           .queries = job->rows,
                           .keys = job->rows};
  return golden_module_run(out, &job->weights, &m, x, x, x);
}

static bool cross_attention(att_view *out, layer_job *job, att_view x, const char *prefix) {
  char own[64];
  snprintf(own, sizeof own, "%smultihead_attn.", prefix);
  const golden_module m = {.c = job->c,
                           .prefix = own,
                           .mask = "memory_mask",
                           .padding = "memory_key_padding_mask",
                           .batch = job->batch,
                           .heads = job->heads,
                           .queries = job->rows,
                           .keys = job->memory_rows};
  return golden_module_run(out, &job->cross, &m, x, job->memory, job->memory);
}

/* Part 0 self-attention, 1 attention to the memory, 2 the feed-forward network; the
 * norms are counted without what a layer does not have. */
static bool run_part(layer_job *job, int part, const char *prefix) {
  char name[32];
  snprintf(name, sizeof name, "norm%d.weight", part == 2 && !job->decoder ? 2 : part + 1);
  att_view x = job->before ? norm(job, job->x, prefix, name) : job->x, branch;
  if (part == 2)
    branch = feed_forward(job, x, prefix);
  else if (!(part == 1 ? cross_attention : self_attention)(&branch, job, x, prefix))
    return false;
  job->x = add(job->c, job->x, branch);
  if (!job->before) job->x = norm(job, job->x, prefix, name);
  return true;
}

static bool run_layer(layer_job *job, const char *prefix) {
  return run_part(job, 0, prefix) && (!job->decoder || run_part(job, 1, prefix)) &&
         run_part(job, 2, prefix);
}

static bool run_layers(layer_job *job, bool stack) {
  golden_case *c = job->c;
  if (!stack) return run_layer(job, "");
  int layers = (int)golden_number(c, "num_layers", 1);
  for (int l = 0; l < layers; l++) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "layers.%d.", l);
    if (!run_layer(job, prefix)) return false;
  }
  if (golden_parameter(c, "", "norm.weight").data) job->x = norm(job, job->x, "", "norm.weight");
  return true;
}

static void expect_weights(golden_case *c, const char *name, att_view got) {
  att_view want = golden_view(c, name);
  if (!want.data) return;
  golden_expect(c, name, got, want, golden_number(c, "tol_f32_weights", 1e-6));
  golden_expect_zeros(c, name, got, want);
}

static void run(golden_case *c, bool back) {
  const char *op = golden_text(c, "op", "");
  layer_job job = {.c = c,
                   .decoder = strstr(op, "Decoder") != NULL,
                   .before = golden_number(c, "norm_first", 0) != 0,
                   .heads = (int64_t)golden_number(c, "nhead", 1)};
  job.x = golden_input_rows(c, "x", &job.batch, &job.rows);
  job.memory = golden_input_rows(c, "memory", &job.batch, &job.memory_rows);
  if (!job.x.data || (job.decoder && !job.memory.data)) {
    golden_fail(c->g, "no input x or memory");
    return;
  }
  att_view x = job.x;
  if (!run_layers(&job, strstr(op, "Layer") == NULL)) return;
  if (back) {
    golden_back(c, job.x, job.batch, job.rows);
    golden_expect_input(c, "dx", &x, 1, job.batch, job.rows);
    golden_expect_input(c, "d_memory", &job.memory, 1, job.batch, job.memory_rows);
    return;
  }
  att_view want = golden_view(c, "out");
  if (want.data && golden_number(c, "batch_first", 1) == 0) want = att_view_transpose(want, 0, 1);
  att_view out = golden_reshaped(job.x, 3, (int64_t[]){job.batch, job.rows, job.x.shape[1]});
  if (want.data) golden_expect(c, "out", out, want, golden_number(c, "tol_f32_out", 1e-6));
  expect_weights(c, "weights", job.weights);
  expect_weights(c, "weights_cross", job.cross);
}

void golden_layers(golden_case *c) {
  for (int back = 0; back < 2; back++) {
    if (!golden_begin(c->g, c->path, back ? "gradients" : "")) continue;
    c->tape = NULL;
    run(c, back);
    golden_end(c->g);
  }
}
