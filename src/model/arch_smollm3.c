/* SmolLM3: Llama in which some layers do not rotate. "no_rope_layers" is named
 * the wrong way round: 1 is a layer that rotates. */
#include "attend/sdpa.h"
#include "model/decoder.h"
#include "model/gguf_decoder.h"

enum { INTERVAL = 4 };

/* Every `interval`th layer, counted from 1. */
static void every(att_layer_set *set, int64_t layers, int64_t interval) {
  for (int64_t l = interval - 1; l < layers && l < ATT_MOST_LAYERS; l += interval)
    att_layer_set_add(set, l);
}

/* A window is one of the layers that do not rotate, unless they are listed. */
static att_status read_window(att_config *c, att_settings *s) {
  int64_t window;
  bool used = false, listed;
  att_layer_set list = {0};
  ATT_TRY(att_decoder_window(&window, s, 0));
  ATT_TRY(att_setting_bool(&used, s, "use_sliding_window", ATT_WITH_VALUE));
  att_setting_skip(s, "max_window_layers"); /* of qwen2's code, not used here */
  ATT_TRY(att_setting_layer_types(&list, &listed, s, c->layers));
  if (!used && !att_layer_set_is_empty(&list))
    return att_fail(ATT_CORRUPT, "%s: layer_types contradict use_sliding_window", s->where);
  if (!used || !window) return ATT_OK;
  c->window = window;
  c->windowed = listed ? list : c->unrotated;
  return ATT_OK;
}

static att_status read(att_config *c, att_settings *s) {
  static const att_rope_format rope = {
      .theta_key = "rope_theta", .scaling_key = "rope_scaling", .theta = 2e6, .partial = 1};
  int64_t interval = INTERVAL;
  bool listed;
  ATT_TRY(att_decoder_read(
      c, s,
      &(att_decoder_defaults){
          .kv_heads = 4, .context = 32768, .norm_eps = 1e-6, .tied_output = true, .rope = &rope}));
  ATT_TRY(att_setting_size(&interval, s, "no_rope_layer_interval", ATT_WITH_VALUE));
  ATT_TRY(att_setting_flags(&c->unrotated, &listed, s, "no_rope_layers", c->layers, false));
  if (!listed) every(&c->unrotated, c->layers, interval);
  ATT_TRY(att_setting_bool(&c->qkv_bias, s, "attention_bias", ATT_WITH_VALUE));
  ATT_TRY(att_setting_bool(&c->ffn_bias, s, "mlp_bias", ATT_WITH_VALUE));
  c->out_bias = c->qkv_bias;
  return read_window(c, s);
}

static void write(att_config_writer *w, const att_config *c) {
  att_decoder_write(w, c);
  att_put_flags(w, "no_rope_layers", &c->unrotated, c->layers, false);
  att_put_bool(w, "attention_bias", c->qkv_bias);
  att_put_bool(w, "mlp_bias", c->ffn_bias);
  att_decoder_write_upper_window(w, c);
}

static const char *lacks(const att_config *c) {
  if (c->qkv_bias != c->out_bias) return "biases in a part of its attention only";
  return c->scale != ATT_SCALE_DEFAULT ? "a scale of its own" : att_decoder_lacks(c);
}

/* GGUF has no key for it: every fourth layer of all that llama.cpp runs. */
static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_decoder_read(c, k));
  every(&c->unrotated, c->layers, INTERVAL);
  att_gguf_decoder_biases(c, k);
  return att_gguf_decoder_window(c, k, 0);
}

static const char *gguf_lacks(const att_config *c) {
  att_layer_set usual = {0};
  every(&usual, c->layers, INTERVAL);
  for (int64_t l = 0; l < c->layers; l++)
    if (att_layer_set_has(&usual, l) != att_layer_set_has(&c->unrotated, l))
      return "other layers without rotation than every fourth";
  return att_gguf_decoder_lacks(c);
}

static const att_gguf_family gguf = {.name = "smollm3",
                                     .pairs_adjacent = true,
                                     .read = read_gguf,
                                     .write = att_gguf_decoder_write,
                                     .lacks = gguf_lacks};

const att_arch att_arch_smollm3 = {
    .name = "smollm3",
    .class_name = "SmolLM3ForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names = {ATT_NAMES_MODEL, ATT_NAMES_NORMS, ATT_NAMES_ATTENTION, ATT_NAMES_GATED,
              ATT_NAMES_GATED_BIAS},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &gguf,
};
