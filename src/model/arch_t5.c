/* T5: an encoder, and a decoder that looks at it. No positions but a bias of the
 * scores by distance, the same in all layers of a stack; no scale of the scores; RMS
 * norms before each part; no biases of linear layers. The first version ties output
 * and embedding, and scales the logits by 1/sqrt(width) then; its feed-forward
 * network is plain, the second's gated. */
#include <math.h>
#include <string.h>

#include "model/gguf_decoder.h"
#include "model/t5.h"

/* "relu", "gated-gelu": the activation, whose "gelu" means the tanh form if gated. */
static const struct {
  const char *name, *inner;
  att_ffn_kind kind;
  att_activation activation;
} known[] = {{"relu", "relu", ATT_FFN_PLAIN, ATT_RELU},
             {"gated-gelu", "gelu_new", ATT_FFN_GATED, ATT_GELU_TANH},
             {"gated-silu", "silu", ATT_FFN_GATED, ATT_SILU},
             {"gated-relu", "relu", ATT_FFN_GATED, ATT_RELU}};
enum { N_KNOWN = sizeof known / sizeof *known };

/* NULL if settings have no name for it. */
static const char *ffn_name(const att_config *c) {
  for (int i = 0; i < N_KNOWN; i++)
    if (known[i].kind == c->ffn && known[i].activation == c->activation) return known[i].name;
  return NULL;
}

static att_status read_ffn(att_config *c, att_settings *s, const char *usual) {
  const char *name = usual, *inner = NULL;
  ATT_TRY(att_setting_string(&name, s, "feed_forward_proj", ATT_WITH_VALUE));
  ATT_TRY(att_setting_string(&inner, s, "dense_act_fn", ATT_NULLABLE));
  for (int i = 0; i < N_KNOWN; i++) {
    if (strcmp(name, known[i].name)) continue;
    bool gated = known[i].kind == ATT_FFN_GATED, stated = gated;
    ATT_TRY(att_setting_bool(&stated, s, "is_gated_act", ATT_NULLABLE));
    if (stated != gated || (inner && strcmp(inner, known[i].inner)))
      return att_fail(ATT_CORRUPT, "%s: \"feed_forward_proj\" is \"%s\", which contradicts %s",
                      s->where, name, stated != gated ? "\"is_gated_act\"" : "\"dense_act_fn\"");
    c->ffn = known[i].kind;
    c->activation = known[i].activation;
    return ATT_OK;
  }
  return att_fail(ATT_UNSUPPORTED,
                  "%s: \"feed_forward_proj\" is \"%s\"; attend knows relu, gated-gelu, gated-silu "
                  "and gated-relu",
                  s->where, name);
}

static att_status read_sizes(att_config *c, att_settings *s) {
  ATT_TRY(att_setting_size(&c->width, s, "d_model", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->head_dim, s, "d_kv", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->ffn_width, s, "d_ff", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->encoder_layers, s, "num_layers", ATT_NEEDED));
  c->layers = c->encoder_layers;
  ATT_TRY(att_setting_size(&c->layers, s, "num_decoder_layers", ATT_NULLABLE));
  ATT_TRY(att_setting_size(&c->heads, s, "num_heads", ATT_NEEDED));
  c->kv_heads = c->heads;
  ATT_TRY(att_setting_size(&c->vocab, s, "vocab_size", ATT_NEEDED));
  c->context = 512; /* what it was trained with; distances have no end */
  ATT_TRY(att_setting_size(&c->context, s, "n_positions", ATT_NULLABLE));
  c->relative_buckets = 32;
  ATT_TRY(
      att_setting_size(&c->relative_buckets, s, "relative_attention_num_buckets", ATT_WITH_VALUE));
  c->relative_reach = 128;
  return att_setting_size(&c->relative_reach, s, "relative_attention_max_distance", ATT_WITH_VALUE);
}

/* The factor of logits whose matrix is the embedding. */
static double tied_scale(const att_config *c) {
  return (double)(float)(1 / sqrt((double)c->width));
}

/* What no setting says. */
static void fill(att_config *c) {
  c->norm = ATT_NORM_RMS;
  c->position = ATT_POSITION_RELATIVE;
  c->scale = 1;
}

att_status att_t5_read(att_config *c, att_settings *s, const char *feed_forward, bool tied) {
  int64_t start = 0;
  bool both = true;
  fill(c);
  ATT_TRY(read_sizes(c, s));
  ATT_TRY(read_ffn(c, s, feed_forward));
  c->norm_eps = (double)1e-6f;
  ATT_TRY(att_setting_number(&c->norm_eps, s, "layer_norm_epsilon", ATT_WITH_VALUE));
  c->tied_output = tied;
  ATT_TRY(att_setting_bool(&c->tied_output, s, "tie_word_embeddings", ATT_WITH_VALUE));
  bool scaled = c->tied_output;
  ATT_TRY(att_setting_bool(&scaled, s, "scale_decoder_outputs", ATT_NULLABLE));
  if (scaled) c->logit_scale = tied_scale(c);
  ATT_TRY(att_setting_id(&start, s, "decoder_start_token_id"));
  c->start_token = (int32_t)start;
  att_setting_skip(s, "dropout_rate");
  att_setting_skip(s, "initializer_factor");
  att_setting_skip(s, "classifier_dropout");
  ATT_TRY(att_setting_bool(&both, s, "is_encoder_decoder", ATT_WITH_VALUE));
  if (both) return ATT_OK;
  return att_fail(ATT_UNSUPPORTED, "%s: \"is_encoder_decoder\" is false", s->where);
}

void att_t5_write(att_config_writer *w, const att_config *c) {
  bool scaled = c->logit_scale != 1;
  att_put_size(w, "d_model", c->width);
  att_put_size(w, "d_kv", c->head_dim);
  att_put_size(w, "d_ff", c->ffn_width);
  att_put_size(w, "num_layers", c->encoder_layers);
  att_put_size(w, "num_decoder_layers", c->layers);
  att_put_size(w, "num_heads", c->heads);
  att_put_size(w, "n_positions", c->context);
  att_put_size(w, "relative_attention_num_buckets", c->relative_buckets);
  att_put_size(w, "relative_attention_max_distance", c->relative_reach);
  att_put_text(w, "feed_forward_proj", ffn_name(c));
  att_put_number(w, "layer_norm_epsilon", c->norm_eps);
  if (scaled != c->tied_output) att_put_bool(w, "scale_decoder_outputs", scaled);
  att_put_bool(w, "is_encoder_decoder", true);
  att_put_size(w, "decoder_start_token_id", c->start_token);
}

const char *att_t5_lacks(const att_config *c) {
  if (!ffn_name(c)) return "a feed-forward network of its own";
  if (c->logit_scale != 1 && c->logit_scale != tied_scale(c)) return "logits with a factor";
  return c->scale == 1 ? NULL : "a scale of its own";
}

/* The factor of tied logits has no key: files have it in the decoder's last norm. */
static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  int64_t start = 0;
  fill(c);
  ATT_TRY(att_gguf_read_sizes(c, k));
  c->encoder_layers = c->layers;
  ATT_TRY(att_gguf_key_size(&c->layers, k, "decoder_block_count", false));
  ATT_TRY(att_gguf_key_number(&c->norm_eps, k, "attention.layer_norm_epsilon", false));
  ATT_TRY(att_gguf_key_number(&c->norm_eps, k, "attention.layer_norm_rms_epsilon", true));
  ATT_TRY(att_gguf_key_size(&c->relative_buckets, k, "attention.relative_buckets_count", true));
  c->relative_reach = 128;
  ATT_TRY(att_gguf_key_id(&start, k, "decoder_start_token_id"));
  c->start_token = (int32_t)start;
  bool gated = att_gguf_tensor_find(k->file, "dec.blk.0.ffn_gate.weight") != NULL;
  c->ffn = gated ? ATT_FFN_GATED : ATT_FFN_PLAIN;
  c->activation = gated ? ATT_GELU_TANH : ATT_RELU;
  return ATT_OK;
}

/* The blocks of the common key are the encoder's; of both epsilons the second counts. */
static void write_gguf(att_gguf_list *l, const att_config *c) {
  att_config encoder = *c;
  encoder.layers = c->encoder_layers;
  att_gguf_write_sizes(l, &encoder);
  att_gguf_add_size(l, "attention.key_length", c->head_dim);
  att_gguf_add_size(l, "attention.value_length", c->head_dim);
  att_gguf_add_size(l, "decoder_block_count", c->layers);
  att_gguf_add_size(l, "attention.relative_buckets_count", c->relative_buckets);
  att_gguf_add_size(l, "decoder_start_token_id", c->start_token);
  att_gguf_add_number(l, "attention.layer_norm_epsilon", c->norm_eps);
  att_gguf_add_number(l, "attention.layer_norm_rms_epsilon", c->norm_eps);
}

static const char *gguf_lacks(const att_config *c) {
  if (c->ffn == ATT_FFN_PLAIN && c->activation != ATT_RELU) return "an activation of its own";
  return c->relative_reach == 128 ? NULL : "distances that end elsewhere than at 128";
}

#define BLOCK "dec.blk.{l}."
const att_gguf_family att_gguf_t5 = {
    .name = "t5",
    .activation = ATT_GELU_TANH,
    .scale = 1,
    .others = {{ATT_SLOT_NORM1_W, {.name = BLOCK "attn_norm.weight"}},
               {ATT_SLOT_Q_W, {.name = BLOCK "attn_q.weight"}},
               {ATT_SLOT_K_W, {.name = BLOCK "attn_k.weight"}},
               {ATT_SLOT_V_W, {.name = BLOCK "attn_v.weight"}},
               {ATT_SLOT_O_W, {.name = BLOCK "attn_o.weight"}},
               {ATT_SLOT_NORM2_W, {.name = BLOCK "ffn_norm.weight"}},
               {ATT_SLOT_GATE_W, {.name = BLOCK "ffn_gate.weight"}},
               {ATT_SLOT_UP_W, {.name = BLOCK "ffn_up.weight"}},
               {ATT_SLOT_DOWN_W, {.name = BLOCK "ffn_down.weight"}},
               {ATT_SLOT_NORM_W, {.name = "dec.output_norm.weight"}}},
    .read = read_gguf,
    .write = write_gguf,
    .lacks = gguf_lacks,
};

const char *const att_t5_ignored[] = {
    "encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", NULL};

static att_status read(att_config *c, att_settings *s) { return att_t5_read(c, s, "relu", true); }

const att_arch att_arch_t5 = {
    .name = "t5",
    .class_name = "T5ForConditionalGeneration",
    .prefix = "transformer.",
    .ignored = att_t5_ignored,
    .names = ATT_T5_NAMES,
    .read = read,
    .write = att_t5_write,
    .lacks = att_t5_lacks,
    .tied_is_scaled = true,
    .gguf = &att_gguf_t5,
};
