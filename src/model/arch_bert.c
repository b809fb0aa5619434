/* BERT: an encoder. Every token sees every other, learned positions and token
 * types are added to the token's vector, norms stand behind the sums. A head fills
 * gaps ("masked language model"), another makes one vector of the text; which of
 * them a checkpoint has only its weights tell. */
#include "model/arch.h"
#include "model/bert.h"
#include "model/gguf_decoder.h"
#include "model/pooling.h"

static att_status read(att_config *c, att_settings *s) {
  c->token_types = 2;
  ATT_TRY(att_bert_read(c, s));
  return att_setting_size(&c->token_types, s, "type_vocab_size", ATT_WITH_VALUE);
}

/* GGUF keeps the vectors alone, for all three of the kind: no heads, and of RoBERTa's
 * table of positions only the rows that texts use. */
static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_read_sizes(c, k));
  if (c->head_dim * c->heads != c->width || c->kv_heads != c->heads)
    return att_fail(ATT_UNSUPPORTED, "%s: BERT with %lld heads of %lld, %lld for keys, width %lld",
                    att_gguf_name(k->file), (long long)c->heads, (long long)c->head_dim,
                    (long long)c->kv_heads, (long long)c->width);
  ATT_TRY(att_gguf_key_number(&c->norm_eps, k, "attention.layer_norm_epsilon", true));
  int64_t pooling = 0;
  ATT_TRY(att_gguf_key_count(&pooling, k, "pooling_type"));
  c->pooling = att_pooling_of_gguf(pooling);
  const att_gguf_tensor *types = att_gguf_tensor_find(k->file, "token_types.weight");
  if (types && types->view.ndim == 2) c->token_types = types->view.shape[0];
  c->activation = ATT_GELU;
  att_bert_fill(c);
  return ATT_OK;
}

static void write_gguf(att_gguf_list *l, const att_config *c) {
  att_gguf_write_sizes(l, c);
  att_gguf_add_number(l, "attention.layer_norm_epsilon", c->norm_eps);
  att_gguf_add_bool(l, "attention.causal", false);
  int64_t pooling = att_pooling_to_gguf(c->pooling);
  if (pooling >= 0) att_gguf_add_size(l, "pooling_type", pooling);
  att_gguf_add_u32(l, "tokenizer.ggml.token_type_count", c->token_types ? c->token_types : 1);
}

static const char *gguf_lacks(const att_config *c) {
  if (c->fill_head) return "a head that fills gaps (--no-heads leaves it out)";
  if (c->pooler) return "a pooling head (--no-heads leaves it out)";
  return c->activation == ATT_GELU ? NULL : "an activation other than the erf form of GELU";
}

const att_gguf_family att_gguf_bert = {
    .name = "bert",
    .others = {{ATT_SLOT_NORM1_W, {.name = "blk.{l}.attn_output_norm.weight"}},
               {ATT_SLOT_NORM1_B, {.name = "blk.{l}.attn_output_norm.bias"}},
               {ATT_SLOT_NORM2_W, {.name = "blk.{l}.layer_output_norm.weight"}},
               {ATT_SLOT_NORM2_B, {.name = "blk.{l}.layer_output_norm.bias"}}},
    .read = read_gguf,
    .write = write_gguf,
    .lacks = gguf_lacks,
};

static const char *lacks(const att_config *c) {
  if (c->first_position) return "positions that begin behind the padding token's";
  return c->token_types ? NULL : "no token types";
}

static const char *const others[] = {"BertModel", "BertForPreTraining", NULL};

static const char *const ignored[] = {"bert.embeddings.position_ids", "cls.seq_relationship.weight",
                                      "cls.seq_relationship.bias", "cls.predictions.decoder.bias",
                                      NULL};

#define LAYER "bert.encoder.layer.{l}."
/* Norms of the oldest files are called gamma and beta. */
#define NORM_W(norm)                                                                               \
  { .name = norm ".weight", .other = norm ".gamma" }
#define NORM_B(norm)                                                                               \
  { .name = norm ".bias", .other = norm ".beta" }
const att_arch att_arch_bert = {
    .name = "bert",
    .class_name = "BertForMaskedLM",
    .others = others,
    .headless = "BertModel",
    .prefix = "bert.",
    .ignored = ignored,
    .names = {[ATT_SLOT_TOKENS] = {.name = "bert.embeddings.word_embeddings.weight"},
              [ATT_SLOT_POSITIONS] = {.name = "bert.embeddings.position_embeddings.weight"},
              [ATT_SLOT_TYPES] = {.name = "bert.embeddings.token_type_embeddings.weight"},
              [ATT_SLOT_EMBED_NORM_W] = NORM_W("bert.embeddings.LayerNorm"),
              [ATT_SLOT_EMBED_NORM_B] = NORM_B("bert.embeddings.LayerNorm"),
              [ATT_SLOT_Q_W] = {.name = LAYER "attention.self.query.weight"},
              [ATT_SLOT_Q_B] = {.name = LAYER "attention.self.query.bias"},
              [ATT_SLOT_K_W] = {.name = LAYER "attention.self.key.weight"},
              [ATT_SLOT_K_B] = {.name = LAYER "attention.self.key.bias"},
              [ATT_SLOT_V_W] = {.name = LAYER "attention.self.value.weight"},
              [ATT_SLOT_V_B] = {.name = LAYER "attention.self.value.bias"},
              [ATT_SLOT_O_W] = {.name = LAYER "attention.output.dense.weight"},
              [ATT_SLOT_O_B] = {.name = LAYER "attention.output.dense.bias"},
              [ATT_SLOT_NORM1_W] = NORM_W(LAYER "attention.output.LayerNorm"),
              [ATT_SLOT_NORM1_B] = NORM_B(LAYER "attention.output.LayerNorm"),
              [ATT_SLOT_UP_W] = {.name = LAYER "intermediate.dense.weight"},
              [ATT_SLOT_UP_B] = {.name = LAYER "intermediate.dense.bias"},
              [ATT_SLOT_DOWN_W] = {.name = LAYER "output.dense.weight"},
              [ATT_SLOT_DOWN_B] = {.name = LAYER "output.dense.bias"},
              [ATT_SLOT_NORM2_W] = NORM_W(LAYER "output.LayerNorm"),
              [ATT_SLOT_NORM2_B] = NORM_B(LAYER "output.LayerNorm"),
              [ATT_SLOT_POOLER_W] = {.name = "bert.pooler.dense.weight"},
              [ATT_SLOT_POOLER_B] = {.name = "bert.pooler.dense.bias"},
              [ATT_SLOT_HEAD_W] = {.name = "cls.predictions.transform.dense.weight"},
              [ATT_SLOT_HEAD_B] = {.name = "cls.predictions.transform.dense.bias"},
              [ATT_SLOT_NORM_W] = NORM_W("cls.predictions.transform.LayerNorm"),
              [ATT_SLOT_NORM_B] = NORM_B("cls.predictions.transform.LayerNorm"),
              [ATT_SLOT_OUTPUT] = {.name = "cls.predictions.decoder.weight"},
              [ATT_SLOT_OUTPUT_B] = {.name = "cls.predictions.bias"}},
    .read = read,
    .complete = att_bert_complete,
    .write = att_bert_write,
    .lacks = lacks,
    .gguf = &att_gguf_bert,
};
