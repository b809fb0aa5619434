/* Settings that the decoders of Llama's kind share. */
#include "model/decoder.h"

#include <math.h>
#include <string.h>

#include "attend/sdpa.h"

const char *const att_decoder_ignored[] = {"model.layers.{l}.self_attn.rotary_emb.inv_freq", NULL};

/* ---- reading ---- */

static att_status read_sizes(att_config *c, att_settings *s, const att_decoder_defaults *d) {
  ATT_TRY(att_setting_size(&c->width, s, "hidden_size", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->ffn_width, s, "intermediate_size", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->layers, s, "num_hidden_layers", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->heads, s, "num_attention_heads", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->vocab, s, "vocab_size", ATT_NEEDED));
  c->context = d->context;
  ATT_TRY(att_setting_size(&c->context, s, "max_position_embeddings", ATT_WITH_VALUE));
  bool absent = !att_json_member(s->object, "num_key_value_heads");
  c->kv_heads = absent && d->kv_heads ? d->kv_heads : c->heads;
  ATT_TRY(att_setting_size(&c->kv_heads, s, "num_key_value_heads", ATT_NULLABLE));
  c->head_dim = d->head_dim;
  ATT_TRY(att_setting_size(&c->head_dim, s, "head_dim", ATT_NULLABLE));
  if (!c->head_dim && c->width % c->heads)
    return att_fail(ATT_CORRUPT, "%s: %lld heads do not divide the hidden_size %lld", s->where,
                    (long long)c->heads, (long long)c->width);
  if (!c->head_dim) c->head_dim = c->width / c->heads;
  return ATT_OK;
}

/* A dynamic rotation is made for `factor` times the positions of the training. */
static void extend_context(att_config *c) {
  if (c->rope.scaling != ATT_ROPE_DYNAMIC || !(c->rope.factor > 1)) return;
  double longest = c->rope.factor * c->rope.original;
  if (longest > (double)c->context && longest < INT32_MAX) c->context = (int64_t)longest;
}

att_status att_decoder_read(att_config *c, att_settings *s, const att_decoder_defaults *d) {
  ATT_TRY(read_sizes(c, s, d));
  c->norm = ATT_NORM_RMS;
  c->norm_eps = (double)(float)d->norm_eps;
  ATT_TRY(att_setting_number(&c->norm_eps, s, "rms_norm_eps", ATT_WITH_VALUE));
  c->position = ATT_POSITION_ROPE;
  ATT_TRY(att_setting_rope(&c->rope, c->long_divisors, s, d->rope ? d->rope : &att_rope_usual,
                           c->head_dim, c->context));
  extend_context(c);
  c->ffn = ATT_FFN_GATED;
  c->activation = ATT_SILU;
  ATT_TRY(att_setting_activation(&c->activation, s, "hidden_act", ATT_WITH_VALUE));
  c->tied_output = d->tied_output;
  return att_setting_bool(&c->tied_output, s, "tie_word_embeddings", ATT_WITH_VALUE);
}

att_status att_decoder_window(int64_t *window, att_settings *settings, int64_t absent) {
  bool there = att_json_member(settings->object, "sliding_window") != NULL;
  *window = there ? 0 : absent;
  return att_setting_size(window, settings, "sliding_window", ATT_NULLABLE);
}

void att_layer_set_all(att_layer_set *set, int64_t layers) {
  for (int64_t l = 0; l < layers && l < ATT_MOST_LAYERS; l++) att_layer_set_add(set, l);
}

bool att_layer_set_is_empty(const att_layer_set *set) {
  static const att_layer_set empty;
  return !memcmp(set, &empty, sizeof empty);
}

att_status att_decoder_upper_window(att_config *c, att_settings *s) {
  int64_t window, first = 28;
  bool used = false, listed;
  att_layer_set upper = {0}, list;
  ATT_TRY(att_decoder_window(&window, s, 4096));
  ATT_TRY(att_setting_bool(&used, s, "use_sliding_window", ATT_WITH_VALUE));
  bool bordered = att_json_member(s->object, "max_window_layers") != NULL;
  ATT_TRY(att_setting_count(&first, s, "max_window_layers"));
  ATT_TRY(att_setting_layer_types(&list, &listed, s, c->layers));
  for (int64_t l = first; used && window && l < c->layers && l < ATT_MOST_LAYERS; l++)
    att_layer_set_add(&upper, l);
  if (listed && (bordered || !used) && memcmp(&list, &upper, sizeof list))
    return att_fail(ATT_CORRUPT,
                    "%s: layer_types contradict use_sliding_window and max_window_layers",
                    s->where);
  c->windowed = listed ? list : upper;
  if (!att_layer_set_is_empty(&c->windowed)) c->window = window;
  return ATT_OK;
}

/* ---- writing ---- */

void att_decoder_write(att_config_writer *w, const att_config *c) {
  static const char *const activations[] = {
      [ATT_SILU] = "silu", [ATT_GELU] = "gelu", [ATT_GELU_TANH] = "gelu_pytorch_tanh"};
  bool dynamic = c->rope.scaling == ATT_ROPE_DYNAMIC;
  att_put_size(w, "hidden_size", c->width);
  att_put_size(w, "intermediate_size", c->ffn_width);
  att_put_size(w, "num_hidden_layers", c->layers);
  att_put_size(w, "num_attention_heads", c->heads);
  att_put_size(w, "num_key_value_heads", c->kv_heads);
  att_put_size(w, "head_dim", c->head_dim);
  att_put_size(w, "max_position_embeddings", dynamic ? (int64_t)c->rope.original : c->context);
  att_put_number(w, "rms_norm_eps", c->norm_eps);
  att_put_number(w, "rope_theta", c->rope.theta);
  if (2 * c->rope.pairs != c->head_dim)
    att_put_number(w, "partial_rotary_factor", 2 * (double)c->rope.pairs / (double)c->head_dim);
  att_put_rope_scaling(w, &c->rope);
  att_put_text(w, "hidden_act",
               c->activation == ATT_SWIGLU_CLAMPED ? "silu" : activations[c->activation]);
}

void att_decoder_write_upper_window(att_config_writer *w, const att_config *c) {
  bool used = !att_layer_set_is_empty(&c->windowed);
  att_put_bool(w, "use_sliding_window", used);
  if (!used) return;
  att_put_size(w, "sliding_window", c->window);
  att_put_layer_types(w, c);
}

const char *att_decoder_lacks(const att_config *c) {
  if (c->norm != ATT_NORM_RMS || c->position != ATT_POSITION_ROPE)
    return "a norm or positions of another kind";
  if (c->rope.scaling == ATT_ROPE_TABLE) return "a table of rotary divisors";
  if (c->scale_by_layer) return "a scale that depends on the layer";
  return NULL;
}
