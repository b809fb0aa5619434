/* GPT-OSS: experts chosen token by token, a sink in every head's softmax, biases
 * everywhere, a sliding window in every other layer. Experts are read as floats;
 * the packed MXFP4 of the published files is not. */
#include <string.h>

#include "attend/sdpa.h"
#include "model/decoder.h"
#include "model/gguf_decoder.h"

enum { PERIOD = 2 };

/* What an absent rope_scaling means there. */
static void usual_scaling(att_rope *rope) {
  rope->scaling = ATT_ROPE_YARN;
  rope->factor = 32;
  rope->beta_fast = 32;
  rope->beta_slow = 1;
  rope->original = 4096;
  rope->truncate = false;
  rope->magnitude = att_rope_yarn_magnitude(rope->factor);
}

static void set_blocks(att_config *c) {
  c->ffn = ATT_FFN_EXPERTS;
  c->activation = ATT_SWIGLU_CLAMPED;
  c->sinks = true;
  c->ffn_bias = true;
  c->swiglu_limit = 7;
}

static att_status read_experts(att_config *c, att_settings *s) {
  int64_t same;
  c->experts = 128;
  c->experts_used = 4;
  ATT_TRY(att_setting_size(&c->experts, s, "num_local_experts", ATT_WITH_VALUE));
  ATT_TRY(att_setting_size(&c->experts_used, s, "num_experts_per_tok", ATT_WITH_VALUE));
  same = c->experts_used;
  ATT_TRY(att_setting_size(&same, s, "experts_per_token", ATT_NULLABLE));
  if (same != c->experts_used)
    return att_fail(ATT_CORRUPT, "%s: experts_per_token contradicts num_experts_per_tok", s->where);
  att_setting_skip(s, "initial_context_length"); /* said again by rope_scaling */
  att_setting_skip(s, "router_aux_loss_coef");
  return att_setting_number(&c->swiglu_limit, s, "swiglu_limit", ATT_WITH_VALUE);
}

static att_status read_layers(att_config *c, att_settings *s) {
  bool listed;
  att_layer_set list;
  c->window = 128;
  ATT_TRY(att_setting_size(&c->window, s, "sliding_window", ATT_WITH_VALUE));
  ATT_TRY(att_setting_layer_types(&list, &listed, s, c->layers));
  for (int64_t l = 0; l < c->layers && l < ATT_MOST_LAYERS; l += PERIOD)
    att_layer_set_add(&c->windowed, l);
  if (listed) c->windowed = list;
  return ATT_OK;
}

static att_status read(att_config *c, att_settings *s) {
  static const att_rope_format rope = {
      .theta_key = "rope_theta", .scaling_key = "rope_scaling", .theta = 150000, .partial = 1};
  ATT_TRY(att_decoder_read(
      c, s,
      &(att_decoder_defaults){
          .kv_heads = 8, .head_dim = 64, .context = 131072, .norm_eps = 1e-5, .rope = &rope}));
  bool absent =
      !att_json_member(s->object, "rope_scaling") && !att_json_member(s->object, "rope_parameters");
  if (absent) usual_scaling(&c->rope);
  if (c->activation != ATT_SILU)
    return att_fail(ATT_UNSUPPORTED, "%s: \"hidden_act\" is not silu", s->where);
  set_blocks(c);
  c->qkv_bias = true;
  ATT_TRY(att_setting_bool(&c->qkv_bias, s, "attention_bias", ATT_WITH_VALUE));
  c->out_bias = c->qkv_bias;
  ATT_TRY(read_experts(c, s));
  return read_layers(c, s);
}

static void write(att_config_writer *w, const att_config *c) {
  att_decoder_write(w, c);
  if (c->rope.scaling == ATT_ROPE_PLAIN) att_put_null(w, "rope_scaling");
  att_put_bool(w, "attention_bias", c->qkv_bias);
  att_put_size(w, "num_local_experts", c->experts);
  att_put_size(w, "num_experts_per_tok", c->experts_used);
  att_put_number(w, "swiglu_limit", c->swiglu_limit);
  att_put_size(w, "sliding_window", c->window);
  att_put_layer_types(w, c);
}

static const char *lacks(const att_config *c) {
  if (c->qkv_bias != c->out_bias) return "biases in a part of its attention only";
  return c->scale != ATT_SCALE_DEFAULT ? "a scale of its own" : att_decoder_lacks(c);
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_decoder_read(c, k));
  set_blocks(c);
  c->qkv_bias = c->out_bias = true;
  ATT_TRY(att_gguf_key_size(&c->experts, k, "expert_count", true));
  ATT_TRY(att_gguf_key_size(&c->experts_used, k, "expert_used_count", true));
  ATT_TRY(att_gguf_key_size(&c->ffn_width, k, "expert_feed_forward_length", false));
  return att_gguf_decoder_window(c, k, PERIOD);
}

static void write_gguf(att_gguf_list *l, const att_config *c) {
  att_gguf_decoder_write(l, c);
  att_gguf_add_size(l, "expert_count", c->experts);
  att_gguf_add_size(l, "expert_used_count", c->experts_used);
  att_gguf_add_size(l, "expert_feed_forward_length", c->ffn_width);
}

static const char *gguf_lacks(const att_config *c) {
  if (!c->qkv_bias || !c->out_bias) return "no biases in its attention";
  if (c->swiglu_limit != 7) return "a limit of its gated unit other than 7";
  return att_gguf_decoder_lacks(c);
}

static const att_gguf_family gguf = {
    .name = "gpt-oss",
    .activation = ATT_SWIGLU_CLAMPED,
    .others = {{ATT_SLOT_NORM2_W, {.name = "blk.{l}.post_attention_norm.weight"}}},
    .read = read_gguf,
    .write = write_gguf,
    .lacks = gguf_lacks};

#define MLP ATT_LAYER "mlp."
#define GATE_UP(end, n)                                                                            \
  {                                                                                                \
    .name = MLP "experts.gate_up_proj" end, .transposed = true, .fusion = ATT_FUSED_TURNS,         \
    .part = n, .parts = 2                                                                          \
  }
const att_arch att_arch_gpt_oss = {
    .name = "gpt_oss",
    .class_name = "GptOssForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names =
        {ATT_NAMES_MODEL, ATT_NAMES_NORMS,
         ATT_NAMES_ATTENTION, [ATT_SLOT_SINKS] = {.name = ATT_LAYER "self_attn.sinks"},
         [ATT_SLOT_ROUTER_W] = {.name = MLP "router.weight"},
         [ATT_SLOT_ROUTER_B] = {.name = MLP "router.bias"},
         [ATT_SLOT_EXPERT_GATE_W] = GATE_UP("", 0), [ATT_SLOT_EXPERT_GATE_B] = GATE_UP("_bias", 0),
         [ATT_SLOT_EXPERT_UP_W] = GATE_UP("", 1), [ATT_SLOT_EXPERT_UP_B] = GATE_UP("_bias", 1),
         [ATT_SLOT_EXPERT_DOWN_W] = {.name = MLP "experts.down_proj", .transposed = true},
         [ATT_SLOT_EXPERT_DOWN_B] = {.name = MLP "experts.down_proj_bias"}},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &gguf,
};
