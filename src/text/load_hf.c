/* tokenizer.json of Hugging Face: the order of its sections is the order of the
 * work, so the loader only walks over them and each part adds its steps. What
 * a file asks for that is not done here is refused by name; cutting long texts
 * and padding short ones is left to the caller, with a warning. */
#include <string.h>

#include "base/log.h"
#include "text/hf.h"

#define ATT_PART(type, function) {type, function},

static const att_hf_row normalizers[] = {
#include "text/normalizers.inc"
};
static const att_hf_row pretokenizers[] = {
#include "text/pretokenizers.inc"
};
static const att_hf_row models[] = {
#include "text/models.inc"
};
static const att_hf_row postprocessors[] = {
#include "text/postprocessors.inc"
};
static const att_hf_row decoders[] = {
#include "text/decoders.inc"
};
#undef ATT_PART

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

att_status att_hf_normalizer(att_hf *hf, const att_json_node *node) {
  return att_hf_dispatch(hf, node, "normalizer", normalizers, COUNT(normalizers));
}

att_status att_hf_pretokenizer(att_hf *hf, const att_json_node *node) {
  return att_hf_dispatch(hf, node, "pre-tokenizer", pretokenizers, COUNT(pretokenizers));
}

att_status att_hf_postprocessor(att_hf *hf, const att_json_node *node) {
  return att_hf_dispatch(hf, node, "post-processor", postprocessors, COUNT(postprocessors));
}

att_status att_hf_decoder(att_hf *hf, const att_json_node *node) {
  return att_hf_dispatch(hf, node, "decoder", decoders, COUNT(decoders));
}

/* Old files leave the model's type to be guessed from its fields. */
att_status att_hf_model(att_hf *hf, const att_json_node *node) {
  if (node->type != ATT_JSON_OBJECT || att_json_member(node, "type") != NULL)
    return att_hf_dispatch(hf, node, "model", models, COUNT(models));
  if (att_json_member(node, "merges") != NULL) return att_hf_model_bpe(hf, node);
  if (att_json_member(node, "unk_id") != NULL) return att_hf_model_unigram(hf, node);
  if (att_json_member(node, "max_input_chars_per_word") != NULL)
    return att_hf_model_wordpiece(hf, node);
  return att_hf_model_wordlevel(hf, node);
}

att_status att_hf_normalizer_sequence(att_hf *hf, const att_json_node *node) {
  return att_hf_sequence(hf, node, "normalizers", att_hf_normalizer);
}

att_status att_hf_pretokenizer_sequence(att_hf *hf, const att_json_node *node) {
  return att_hf_sequence(hf, node, "pretokenizers", att_hf_pretokenizer);
}

att_status att_hf_postprocessor_sequence(att_hf *hf, const att_json_node *node) {
  return att_hf_sequence(hf, node, "processors", att_hf_postprocessor);
}

att_status att_hf_decoder_sequence(att_hf *hf, const att_json_node *node) {
  return att_hf_sequence(hf, node, "decoders", att_hf_decoder);
}

/* A section that may be absent or null. */
static att_status section(att_hf *hf, const char *key, att_hf_load *load) {
  const att_json_node *node = att_json_member(att_json_root(hf->json), key);
  return node == NULL || node->type == ATT_JSON_NULL ? ATT_OK : load(hf, node);
}

/* Moves a list of steps to memory of the tokenizer. */
static att_status settle(const void **out, int *n, const att_hf *hf, const att_list *steps) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, steps->n, steps->size));
  if (steps->n > 0) memcpy(memory, steps->items, (size_t)steps->n * steps->size);
  *out = memory;
  *n = (int)steps->n;
  return ATT_OK;
}

att_status att_hf_settle(att_hf *hf) {
  att_tokenizer *t = hf->t;
  const void *steps;
  ATT_TRY(settle(&steps, &t->n_normalizers, hf, &hf->normalizers));
  t->normalizers = steps;
  ATT_TRY(settle(&steps, &t->n_pretokenizers, hf, &hf->pretokenizers));
  t->pretokenizers = steps;
  ATT_TRY(settle(&steps, &t->n_decoders, hf, &hf->decoders));
  t->decoders = steps;
  return ATT_OK;
}

static void warn_of_the_rest(const att_hf *hf) {
  static const char *const left_out[] = {"truncation", "padding"};
  for (int i = 0; i < 2; i++) {
    const att_json_node *node = att_json_member(att_json_root(hf->json), left_out[i]);
    if (node != NULL && node->type != ATT_JSON_NULL)
      att_log(hf->t->runtime, ATT_LOG_WARNING, "%s: \"%s\" is not applied", hf->name, left_out[i]);
  }
}

static att_status load(att_hf *hf) {
  const att_json_node *root = att_json_root(hf->json), *model;
  if (root->type != ATT_JSON_OBJECT)
    return att_hf_fail(hf, ATT_CORRUPT, root, "a tokenizer must be an object");
  ATT_TRY(section(hf, "normalizer", att_hf_normalizer));
  ATT_TRY(section(hf, "pre_tokenizer", att_hf_pretokenizer));
  ATT_TRY(att_hf_field(&model, hf, root, "model", ATT_JSON_OBJECT));
  ATT_TRY(att_hf_model(hf, model));
  ATT_TRY(section(hf, "post_processor", att_hf_postprocessor));
  ATT_TRY(section(hf, "decoder", att_hf_decoder));
  if (hf->decoders.n == 0) ATT_TRY(att_hf_add_decoder(hf, &att_decode_join, " "));
  ATT_TRY(att_hf_settle(hf));
  ATT_TRY(att_hf_added_tokens(hf));
  ATT_TRY(att_hf_spell(hf));
  warn_of_the_rest(hf);
  return ATT_OK;
}

att_status att_hf_begin(att_hf *hf, const att_runtime *runtime, const char *bytes, size_t n,
                        const char *name) {
  att_json *json = NULL;
  if (bytes) ATT_TRY(att_json_parse(&json, runtime, bytes, n, name));
  *hf = (att_hf){.name = name, .json = json};
  att_status status = att_tokenizer_create(&hf->t, runtime);
  if (status != ATT_OK) {
    att_json_free(json);
    return status;
  }
  att_list_init(&hf->normalizers, runtime, sizeof(att_step));
  att_list_init(&hf->pretokenizers, runtime, sizeof(att_step));
  att_list_init(&hf->decoders, runtime, sizeof(att_decode_step));
  return ATT_OK;
}

att_status att_hf_end(att_tokenizer **out, att_hf *hf, att_status status) {
  att_list_free(&hf->normalizers);
  att_list_free(&hf->pretokenizers);
  att_list_free(&hf->decoders);
  att_json_free(hf->json);
  if (status == ATT_OK)
    *out = hf->t;
  else
    att_tokenizer_free(hf->t);
  return status;
}

att_status att_load_hf(att_tokenizer **out, const att_runtime *runtime, const char *bytes, size_t n,
                       const char *name) {
  att_hf hf;
  ATT_TRY(att_hf_begin(&hf, runtime, bytes, n, name));
  return att_hf_end(out, &hf, load(&hf));
}
