/* Gemma 3, the language model: Gemma 2 with norms of heads instead of caps, five
 * sliding layers to a full one, and another rotation for each of the two kinds. */
#include <string.h>

#include "attend/sdpa.h"
#include "model/gemma.h"

enum { LAYERS_OF_27B = 62, PERIOD = 6 };

static const att_rope_format full = {.theta_key = "rope_theta",
                                     .scaling_key = "rope_scaling",
                                     .layer = "full_attention",
                                     .theta = 1e6,
                                     .partial = 1};
static const att_rope_format sliding = {.theta_key = "rope_local_base_freq",
                                        .layer = "sliding_attention",
                                        .theta = 10000,
                                        .partial = 1};

static void set_blocks(att_config *c) {
  c->norm_place = ATT_NORM_AROUND;
  c->qk_norm = ATT_QK_NORM_HEAD;
  c->has_local_rope = true;
}

/* The layers that slide, from a list or a period. */
static att_status read_layers(att_config *c, att_settings *s) {
  int64_t period = PERIOD;
  bool listed, stated = att_json_member(s->object, "sliding_window_pattern") ||
                        att_json_member(s->object, "_sliding_window_pattern");
  att_layer_set list;
  ATT_TRY(att_setting_size(&period, s, "_sliding_window_pattern", ATT_NULLABLE));
  ATT_TRY(att_setting_size(&period, s, "sliding_window_pattern", ATT_NULLABLE));
  ATT_TRY(att_setting_layer_types(&list, &listed, s, c->layers));
  att_gemma_slide(c, period);
  if (listed && stated && memcmp(&list, &c->windowed, sizeof list))
    return att_fail(ATT_CORRUPT, "%s: layer_types contradict sliding_window_pattern", s->where);
  if (listed) c->windowed = list;
  return ATT_OK;
}

static att_status read(att_config *c, att_settings *s) {
  ATT_TRY(att_gemma_read(c, s,
                         &(att_decoder_defaults){.kv_heads = 4,
                                                 .head_dim = 256,
                                                 .context = 131072,
                                                 .norm_eps = 1e-6,
                                                 .tied_output = true,
                                                 .rope = &full}));
  ATT_TRY(att_setting_rope(&c->local_rope, NULL, s, &sliding, c->head_dim, c->context));
  ATT_TRY(att_gemma_read_scores(c, s, 256, ATT_SOFTCAP_NONE, ATT_SOFTCAP_NONE));
  set_blocks(c);
  c->window = 4096;
  ATT_TRY(att_setting_size(&c->window, s, "sliding_window", ATT_WITH_VALUE));
  return read_layers(c, s);
}

static void write(att_config_writer *w, const att_config *c) {
  att_gemma_write(w, c);
  att_put_number(w, "rope_local_base_freq", c->local_rope.theta);
  att_gemma_write_scores(w, c);
}

static const char *lacks(const att_config *c) {
  if (c->local_rope.scaling != ATT_ROPE_PLAIN) return "a scaled rotation of sliding layers";
  return att_gemma_lacks(c);
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gemma_read_gguf(c, k, LAYERS_OF_27B));
  set_blocks(c);
  att_gguf_key_skip(k, "mm.tokens_per_image"); /* of pictures, which are not read */
  c->local_rope = (att_rope){.pairs = c->rope.pairs, .theta = 10000, .magnitude = 1};
  ATT_TRY(att_gguf_key_number(&c->local_rope.theta, k, "rope.freq_base_swa", false));
  ATT_TRY(att_gguf_key_number(&c->final_softcap, k, "final_logit_softcapping", false));
  return att_gguf_decoder_window(c, k, PERIOD);
}

static double query_factor(const att_config *c) { return att_gemma_query_factor(c, LAYERS_OF_27B); }

static const char *gguf_lacks(const att_config *c) {
  if (c->softcap != ATT_SOFTCAP_NONE) return "a cap of its scores";
  return lacks(c) ? lacks(c) : att_gguf_decoder_lacks(c);
}

static const att_gguf_family gguf = {.name = "gemma3",
                                     .activation = ATT_GELU_TANH,
                                     .others = {ATT_GGUF_NAMES_AROUND},
                                     .query_factor = query_factor,
                                     .read = read_gguf,
                                     .write = att_gguf_decoder_write,
                                     .lacks = gguf_lacks};

const att_arch att_arch_gemma3 = {
    .name = "gemma3_text",
    .class_name = "Gemma3ForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names = {ATT_NAMES_MODEL, ATT_NAMES_ATTENTION, ATT_NAMES_GATED, ATT_NAMES_GEMMA_AROUND,
              [ATT_SLOT_Q_NORM] = {.name = ATT_LAYER "self_attn.q_norm.weight", .lacks_one = true},
              [ATT_SLOT_K_NORM] = {.name = ATT_LAYER "self_attn.k_norm.weight", .lacks_one = true}},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &gguf,
};
