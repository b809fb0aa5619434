/* Unigram vocabularies of GGUF files, model "t5": the steps that T5's tokenizer.json
 * has, that is a map of characters, words at white space, and U+2581 in front of
 * each. */
#include "text/load_gguf_parts.h"

att_status att_gguf_load_t5(att_hf *hf, const att_stored_tokenizer *stored) {
  static const att_json_node usual = {.type = ATT_JSON_OBJECT};
  if (!stored->scores)
    return att_fail(ATT_CORRUPT, "%s: key \"tokenizer.ggml.scores\" is missing", stored->name);
  ATT_TRY(att_gguf_read_tokens(hf, stored));
  ATT_TRY(att_unigram_make(hf, (int32_t)stored->unknown));
  const att_stored_text map = stored->charsmap;
  if (map.bytes) ATT_TRY(att_precompiled_make(hf, map.bytes, (int64_t)map.n));
  ATT_TRY(att_hf_add_pretokenizer(hf, att_split_whitespace, NULL));
  ATT_TRY(att_hf_pretokenizer_metaspace(hf, &usual));
  return att_hf_decoder_metaspace(hf, &usual);
}
