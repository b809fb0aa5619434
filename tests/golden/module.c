/* The module's bool masks say True for hidden, the library's for visible. 3-D
 * masks are [N*H,L,S]. add_bias_kv and add_zero_attn append one key and value
 * each, which no mask touches. */
#include "module.h"

#include <stdio.h>
#include <string.h>

#include "tape.h"

att_view golden_parameter(golden_case *c, const char *prefix, const char *name) {
  char key[96];
  snprintf(key, sizeof key, "param.%s%s", prefix, name);
  return golden_view(c, key);
}

att_view golden_input_rows(golden_case *c, const char *name, int64_t *batch, int64_t *n) {
  att_view x = golden_view(c, name);
  if (!x.data) return x;
  if (golden_number(c, "batch_first", 1) == 0) x = att_view_transpose(x, 0, 1);
  *batch = x.shape[0];
  *n = x.shape[1];
  return golden_reshaped(golden_as(c, x, ATT_F32), 2,
                         (int64_t[]){x.shape[0] * x.shape[1], x.shape[2]});
}

/* Keys that the module appends. */
static int64_t extra_of(const golden_module *m) {
  return (golden_number(m->c, "add_bias_kv", 0) != 0) +
         (golden_number(m->c, "add_zero_attn", 0) != 0);
}

att_view golden_module_linear(golden_case *c, att_view x, att_view weight, att_view bias) {
  att_view y = golden_linear(c, x, weight, bias);
  golden_tape(c, &(tape_step){.kind = TAPE_LINEAR, .y = y, .x = x, .weight = weight, .bias = bias});
  return y;
}

/* Projection 0, 1, 2 of q, k, v: a third of in_proj_weight, or a matrix of its own. */
static att_view project(const golden_module *m, att_view rows, int which) {
  static const char *const own[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
  golden_case *c = m->c;
  att_view all = golden_parameter(c, m->prefix, "in_proj_weight");
  att_view bias = golden_parameter(c, m->prefix, "in_proj_bias");
  att_view weight = golden_parameter(c, m->prefix, own[which]);
  if (!weight.data) {
    int64_t width = all.shape[0] / 3;
    weight = att_view_slice(all, 0, which * width, width);
  }
  if (bias.data) bias = att_view_slice(bias, 0, which * weight.shape[0], weight.shape[0]);
  return golden_module_linear(c, rows, weight, bias);
}

/* Copies rows [N*S,E] to [N*(S+extra),E] and fills what is appended. */
static att_view with_appended(const golden_module *m, att_view rows, const char *bias_name) {
  golden_case *c = m->c;
  int64_t width = rows.shape[1], total = m->keys + extra_of(m);
  att_view wide = golden_new(c, ATT_F32, 2, (int64_t[]){m->batch * total, width});
  att_view bias = golden_parameter(c, m->prefix, bias_name);
  for (int64_t b = 0; b < m->batch; b++) {
    float *to = (float *)wide.data + b * total * width;
    memset(to, 0, (size_t)(total * width) * sizeof *to);
    memcpy(to, (const float *)rows.data + b * m->keys * width,
           (size_t)(m->keys * width) * sizeof *to);
    if (bias.data) memcpy(to + m->keys * width, bias.data, (size_t)width * sizeof *to);
  }
  golden_tape(
      c, &(tape_step){.kind = TAPE_APPEND, .y = wide, .x = rows, .bias = bias, .batch = m->batch});
  return wide;
}

static att_view masked_shape(const golden_module *m, att_dtype dtype) {
  att_view view = golden_new(m->c, dtype, 4,
                             (int64_t[]){m->batch, m->heads, m->queries, m->keys + extra_of(m)});
  memset(view.data, dtype == ATT_BOOL, (size_t)(att_view_count(&view) * att_dtype_bytes(dtype)));
  return view;
}

/* Element of a 2-D [L,S] or 3-D [N*H,L,S] mask. */
static int64_t mask_index(const golden_module *m, const att_view *mask, int64_t b, int64_t h,
                          int64_t i, int64_t j) {
  int64_t head = mask->ndim == 3 ? b * m->heads + h : 0;
  return (head * m->queries + i) * m->keys + j;
}

/* One bool mask that says what all given ones hide, and the float one as bias. */
static void set_masks(const golden_module *m, att_sdpa_args *args) {
  golden_case *c = m->c;
  att_view mask = golden_view(c, m->mask), padding = golden_view(c, m->padding);
  bool additive = mask.data && mask.dtype == ATT_F32;
  att_view keep = masked_shape(m, ATT_BOOL), bias = masked_shape(m, ATT_F32);
  const uint8_t *hidden = additive ? NULL : mask.data, *padded = padding.data;
  int64_t at = 0;
  for (int64_t b = 0; b < m->batch; b++)
    for (int64_t h = 0; h < m->heads; h++)
      for (int64_t i = 0; i < m->queries; i++, at += extra_of(m))
        for (int64_t j = 0; j < m->keys; j++, at++) {
          int64_t from = mask_index(m, &mask, b, h, i, j);
          bool hide = (hidden && hidden[from]) || (padded && padded[b * m->keys + j]);
          ((uint8_t *)keep.data)[at] = !hide;
          if (additive) ((float *)bias.data)[at] = ((const float *)mask.data)[from];
        }
  if (additive) args->bias = bias;
  if (hidden || padded)
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = keep});
}

bool golden_module_run(att_view *out, att_view *weights, const golden_module *m, att_view q,
                       att_view k, att_view v) {
  golden_case *c = m->c;
  q = project(m, q, 0);
  k = with_appended(m, project(m, k, 1), "bias_k");
  v = with_appended(m, project(m, v, 2), "bias_v");
  att_view concat = golden_new(c, ATT_F32, 2, (int64_t[]){q.shape[0], v.shape[1]});
  att_sdpa_args args;
  golden_attention_args(c, &args);
  args.scale = ATT_SCALE_DEFAULT;
  args.q = golden_heads(q, m->batch, m->heads);
  args.k = golden_heads(k, m->batch, m->heads);
  args.v = golden_heads(v, m->batch, m->heads);
  args.out = golden_heads(concat, m->batch, m->heads);
  args.weights =
      golden_new(c, ATT_F32, 4, (int64_t[]){m->batch, m->heads, m->queries, m->keys + extra_of(m)});
  args.lse = golden_new(c, ATT_F32, 3, (int64_t[]){m->batch, m->heads, m->queries});
  set_masks(m, &args);
  if (!golden_ok(c->g, att_sdpa_once(c->g->runtime, &args), "attention")) return false;
  golden_tape(c, &(tape_step){.kind = TAPE_ATTENTION, .y = concat, .attention = args});
  *out = golden_module_linear(c, concat, golden_parameter(c, m->prefix, "out_proj.weight"),
                              golden_parameter(c, m->prefix, "out_proj.bias"));
  *weights = args.weights;
  return true;
}
