/* DistilBERT: BERT with half the layers and other words for everything; no token
 * types, no pooling head. */
#include "model/arch.h"
#include "model/bert.h"

static att_status read(att_config *c, att_settings *s) {
  c->width = 768;
  c->layers = 6;
  c->heads = 12;
  c->ffn_width = 3072;
  ATT_TRY(att_setting_size(&c->width, s, "dim", ATT_WITH_VALUE));
  ATT_TRY(att_setting_size(&c->layers, s, "n_layers", ATT_WITH_VALUE));
  ATT_TRY(att_setting_size(&c->heads, s, "n_heads", ATT_WITH_VALUE));
  ATT_TRY(att_setting_size(&c->ffn_width, s, "hidden_dim", ATT_WITH_VALUE));
  ATT_TRY(att_setting_size(&c->vocab, s, "vocab_size", ATT_NEEDED));
  c->context = 512;
  ATT_TRY(att_setting_size(&c->context, s, "max_position_embeddings", ATT_WITH_VALUE));
  c->activation = ATT_GELU;
  ATT_TRY(att_setting_activation(&c->activation, s, "activation", ATT_WITH_VALUE));
  att_setting_skip(s, "sinusoidal_pos_embds"); /* how the table came about; it is stored */
  att_setting_skip(s, "tie_weights_");
  att_setting_skip(s, "dropout");
  att_setting_skip(s, "qa_dropout");
  att_setting_skip(s, "seq_classif_dropout");
  c->norm_eps = (double)1e-12f;
  return att_bert_finish(c, s);
}

static void write(att_config_writer *w, const att_config *c) {
  att_put_size(w, "dim", c->width);
  att_put_size(w, "n_layers", c->layers);
  att_put_size(w, "n_heads", c->heads);
  att_put_size(w, "hidden_dim", c->ffn_width);
  att_put_size(w, "max_position_embeddings", c->context);
  att_put_text(w, "activation", att_bert_activation(c));
}

static const char *lacks(const att_config *c) {
  if (c->token_types) return "token types";
  if (c->pooler) return "a pooling head";
  if (c->first_position) return "positions that begin behind the padding token's";
  return c->norm_eps == (double)1e-12f ? NULL : "an epsilon of its own";
}

static const char *const others[] = {"DistilBertModel", NULL};

static const char *const ignored[] = {"distilbert.embeddings.position_ids", NULL};

#define LAYER "distilbert.transformer.layer.{l}."
const att_arch att_arch_distilbert = {
    .name = "distilbert",
    .class_name = "DistilBertForMaskedLM",
    .others = others,
    .headless = "DistilBertModel",
    .prefix = "distilbert.",
    .ignored = ignored,
    .names = {[ATT_SLOT_TOKENS] = {.name = "distilbert.embeddings.word_embeddings.weight"},
              [ATT_SLOT_POSITIONS] = {.name = "distilbert.embeddings.position_embeddings.weight"},
              [ATT_SLOT_EMBED_NORM_W] = {.name = "distilbert.embeddings.LayerNorm.weight"},
              [ATT_SLOT_EMBED_NORM_B] = {.name = "distilbert.embeddings.LayerNorm.bias"},
              [ATT_SLOT_Q_W] = {.name = LAYER "attention.q_lin.weight"},
              [ATT_SLOT_Q_B] = {.name = LAYER "attention.q_lin.bias"},
              [ATT_SLOT_K_W] = {.name = LAYER "attention.k_lin.weight"},
              [ATT_SLOT_K_B] = {.name = LAYER "attention.k_lin.bias"},
              [ATT_SLOT_V_W] = {.name = LAYER "attention.v_lin.weight"},
              [ATT_SLOT_V_B] = {.name = LAYER "attention.v_lin.bias"},
              [ATT_SLOT_O_W] = {.name = LAYER "attention.out_lin.weight"},
              [ATT_SLOT_O_B] = {.name = LAYER "attention.out_lin.bias"},
              [ATT_SLOT_NORM1_W] = {.name = LAYER "sa_layer_norm.weight"},
              [ATT_SLOT_NORM1_B] = {.name = LAYER "sa_layer_norm.bias"},
              [ATT_SLOT_UP_W] = {.name = LAYER "ffn.lin1.weight"},
              [ATT_SLOT_UP_B] = {.name = LAYER "ffn.lin1.bias"},
              [ATT_SLOT_DOWN_W] = {.name = LAYER "ffn.lin2.weight"},
              [ATT_SLOT_DOWN_B] = {.name = LAYER "ffn.lin2.bias"},
              [ATT_SLOT_NORM2_W] = {.name = LAYER "output_layer_norm.weight"},
              [ATT_SLOT_NORM2_B] = {.name = LAYER "output_layer_norm.bias"},
              [ATT_SLOT_HEAD_W] = {.name = "vocab_transform.weight"},
              [ATT_SLOT_HEAD_B] = {.name = "vocab_transform.bias"},
              [ATT_SLOT_NORM_W] = {.name = "vocab_layer_norm.weight"},
              [ATT_SLOT_NORM_B] = {.name = "vocab_layer_norm.bias"},
              [ATT_SLOT_OUTPUT] = {.name = "vocab_projector.weight"},
              [ATT_SLOT_OUTPUT_B] = {.name = "vocab_projector.bias"}},
    .read = read,
    .complete = att_bert_complete,
    .write = write,
    .lacks = lacks,
    .gguf = &att_gguf_bert,
};
