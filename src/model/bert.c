/* The settings of BERT and its likes. */
#include "model/bert.h"

#include <string.h>

static att_status read_positions(att_settings *s) {
  const char *kind = "absolute";
  ATT_TRY(att_setting_string(&kind, s, "position_embedding_type", ATT_NULLABLE));
  if (!strcmp(kind, "absolute")) return ATT_OK;
  return att_fail(ATT_UNSUPPORTED, "%s: \"position_embedding_type\" is \"%s\", not absolute",
                  s->where, kind);
}

att_status att_bert_read(att_config *c, att_settings *s) {
  ATT_TRY(att_setting_size(&c->width, s, "hidden_size", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->layers, s, "num_hidden_layers", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->heads, s, "num_attention_heads", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->ffn_width, s, "intermediate_size", ATT_NEEDED));
  ATT_TRY(att_setting_size(&c->vocab, s, "vocab_size", ATT_NEEDED));
  c->context = 512;
  ATT_TRY(att_setting_size(&c->context, s, "max_position_embeddings", ATT_WITH_VALUE));
  c->norm_eps = (double)1e-12f;
  ATT_TRY(att_setting_number(&c->norm_eps, s, "layer_norm_eps", ATT_WITH_VALUE));
  c->activation = ATT_GELU;
  ATT_TRY(att_setting_activation(&c->activation, s, "hidden_act", ATT_WITH_VALUE));
  ATT_TRY(read_positions(s));
  return att_bert_finish(c, s);
}

const char *att_bert_activation(const att_config *c) {
  static const char *const names[] = {
      [ATT_SILU] = "silu", [ATT_GELU] = "gelu", [ATT_GELU_TANH] = "gelu_new", [ATT_RELU] = "relu"};
  return names[c->activation];
}

void att_bert_write(att_config_writer *w, const att_config *c) {
  att_put_size(w, "hidden_size", c->width);
  att_put_size(w, "num_hidden_layers", c->layers);
  att_put_size(w, "num_attention_heads", c->heads);
  att_put_size(w, "intermediate_size", c->ffn_width);
  att_put_size(w, "max_position_embeddings", c->first_position + c->context);
  att_put_size(w, "type_vocab_size", c->token_types);
  att_put_number(w, "layer_norm_eps", c->norm_eps);
  att_put_text(w, "hidden_act", att_bert_activation(c));
}

void att_bert_fill(att_config *c) {
  c->norm = ATT_NORM_LAYER;
  c->norm_place = ATT_NORM_AFTER_SUM;
  c->embed_norm = true;
  c->bidirectional = true;
  c->position = ATT_POSITION_LEARNED;
  c->ffn = ATT_FFN_PLAIN;
  c->qkv_bias = c->out_bias = c->ffn_bias = true;
}

att_status att_bert_finish(att_config *c, att_settings *s) {
  static const char *const trained[] = {"hidden_dropout_prob", "attention_probs_dropout_prob",
                                        "classifier_dropout", NULL};
  for (const char *const *key = trained; *key; key++) att_setting_skip(s, *key);
  if (c->width % c->heads)
    return att_fail(ATT_CORRUPT, "%s: %lld heads do not divide the width %lld", s->where,
                    (long long)c->heads, (long long)c->width);
  c->kv_heads = c->heads;
  c->head_dim = c->width / c->heads;
  att_bert_fill(c);
  c->tied_output = true;
  ATT_TRY(att_setting_bool(&c->tied_output, s, "tie_word_embeddings", ATT_WITH_VALUE));
  const char *name = att_setting_class(s);
  c->fill_head = strstr(name, "ForMaskedLM") || strstr(name, "ForPreTraining");
  return ATT_OK;
}

void att_bert_complete(att_config *c, att_has_slot_fn *has, const void *file) {
  c->fill_head = c->fill_head || has(file, ATT_SLOT_HEAD_W);
  c->pooler = has(file, ATT_SLOT_POOLER_W);
  if (!c->fill_head) c->tied_output = true; /* there is no output to be another */
}
