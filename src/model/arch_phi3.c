/* Phi-3 and Phi-4-mini: q, k and v in one matrix, gate and up in another; rotation
 * of a part of each head, with tables of divisors ("longrope") where the context is
 * longer than the training's; a sliding window in some. */
#include "attend/sdpa.h"
#include "model/decoder.h"
#include "model/gguf_decoder.h"

/* Settings of Phi-4's files that only 1 has been seen of. */
static att_status read_modes(att_settings *s) {
  static const char *const keys[] = {"full_attn_mod", "interpolate_factor"};
  for (int i = 0; i < 2; i++) {
    double mode = 1;
    ATT_TRY(att_setting_number(&mode, s, keys[i], ATT_NULLABLE));
    if (mode != 1)
      return att_fail(ATT_UNSUPPORTED, "%s: \"%s\" is %g, not 1", s->where, keys[i], mode);
  }
  return ATT_OK;
}

static att_status read(att_config *c, att_settings *s) {
  static const att_rope_format rope = {.theta_key = "rope_theta",
                                       .partial_key = "partial_rotary_factor",
                                       .scaling_key = "rope_scaling",
                                       .theta = 10000,
                                       .partial = 1,
                                       .longrope = true};
  ATT_TRY(att_decoder_read(
      c, s, &(att_decoder_defaults){.context = 4096, .norm_eps = 1e-5, .rope = &rope}));
  ATT_TRY(read_modes(s));
  ATT_TRY(att_decoder_window(&c->window, s, 0));
  if (c->window) att_layer_set_all(&c->windowed, c->layers);
  return ATT_OK;
}

static void write(att_config_writer *w, const att_config *c) {
  att_decoder_write(w, c);
  if (c->window)
    att_put_size(w, "sliding_window", c->window);
  else
    att_put_null(w, "sliding_window");
  if (c->rope.original >= 1)
    att_put_size(w, "original_max_position_embeddings", (int64_t)c->rope.original);
}

static const char *lacks(const att_config *c) {
  if (c->qkv_bias || c->out_bias || c->ffn_bias) return "biases";
  if (c->rope.scaling == ATT_ROPE_YARN) return "yarn, a word that means longrope there";
  return c->scale != ATT_SCALE_DEFAULT ? "a scale of its own" : att_decoder_lacks(c);
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_decoder_read(c, k));
  return att_gguf_decoder_window(c, k, 0);
}

static const att_gguf_family gguf = {
    .name = "phi3",
    .others =
        {ATT_GGUF_FUSED_QKV,
         {ATT_SLOT_GATE_W,
          {.name = "blk.{l}.ffn_up.weight", .fusion = ATT_FUSED_ENDS, .part = 0, .parts = 2}},
         {ATT_SLOT_UP_W,
          {.name = "blk.{l}.ffn_up.weight", .fusion = ATT_FUSED_ENDS, .part = 1, .parts = 2}}},
    .read = read_gguf,
    .write = att_gguf_decoder_write,
    .lacks = att_gguf_decoder_lacks};

#define QKV(n)                                                                                     \
  { .name = ATT_LAYER "self_attn.qkv_proj.weight", .fusion = ATT_FUSED_ENDS, .part = n, .parts = 3 }
#define GATE_UP(n)                                                                                 \
  { .name = ATT_LAYER "mlp.gate_up_proj.weight", .fusion = ATT_FUSED_ENDS, .part = n, .parts = 2 }
const att_arch att_arch_phi3 = {
    .name = "phi3",
    .class_name = "Phi3ForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names =
        {ATT_NAMES_MODEL, ATT_NAMES_NORMS, [ATT_SLOT_Q_W] = QKV(0), [ATT_SLOT_K_W] = QKV(1),
         [ATT_SLOT_V_W] = QKV(2), [ATT_SLOT_O_W] = {.name = ATT_LAYER "self_attn.o_proj.weight"},
         [ATT_SLOT_GATE_W] = GATE_UP(0), [ATT_SLOT_UP_W] = GATE_UP(1),
         [ATT_SLOT_DOWN_W] = {.name = ATT_LAYER "mlp.down_proj.weight"}},
    .read = read,
    .write = write,
    .lacks = lacks,
    .gguf = &gguf,
};
