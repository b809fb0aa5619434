/* WordPiece and Unigram vocabularies as tokenizer.json. */
#include "text/stored_write.h"

#include <string.h>

#include "base/decimal.h"
#include "text/load_gguf_parts.h"

/* ---- WordPiece ---- */

void att_stored_put_bert_piece(FILE *f, att_stored_text piece) {
  const char *prefix;
  att_stored_text bare = att_gguf_bert_piece(&prefix, piece);
  if (!*prefix) {
    att_stored_put_string(f, bare);
    return;
  }
  fprintf(f, "\"%s", prefix);
  att_stored_put_characters(f, bare);
  putc('"', f);
}

void att_stored_put_bert_steps(FILE *f, const att_stored_tokenizer *s) {
  const char *small = att_gguf_bert_has_capitals(s) ? "false" : "true";
  fprintf(f,
          "  \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, "
          "\"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": %s},\n"
          "  \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},\n"
          "  \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true},\n",
          small);
}

static bool is_used(const att_stored_tokenizer *s, int64_t id) {
  return !s->types || s->types[id] != ATT_STORED_UNUSED;
}

void att_stored_put_wordpiece(FILE *f, const att_stored_tokenizer *s) {
  const char *comma = "";
  fputs("  \"model\": {\"type\": \"WordPiece\", \"unk_token\": ", f);
  if (s->unknown >= 0)
    att_stored_put_bert_piece(f, s->tokens[s->unknown]);
  else
    fputs("\"[UNK]\"", f);
  fputs(", \"continuing_subword_prefix\": \"##\", ", f);
  fprintf(f, "\"max_input_chars_per_word\": %d,\n    \"vocab\": {", ATT_WORD_LONGEST);
  for (int64_t id = 0; id < s->n_tokens; id++) {
    if (!is_used(s, id)) continue;
    fprintf(f, "%s\n      ", comma);
    att_stored_put_bert_piece(f, s->tokens[id]);
    fprintf(f, ": %lld", (long long)id);
    comma = ",";
  }
  fputs("\n    }\n  }", f);
}

/* ---- Unigram ---- */

static void put_base64(FILE *f, const unsigned char *bytes, size_t n) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < n; i += 3) {
    uint32_t three = (uint32_t)bytes[i] << 16;
    if (i + 1 < n) three |= (uint32_t)bytes[i + 1] << 8;
    if (i + 2 < n) three |= bytes[i + 2];
    for (size_t k = 0; k < 4; k++) putc(i + k > n ? '=' : digits[three >> (18 - 6 * k) & 63], f);
  }
}

void att_stored_put_t5_steps(FILE *f, const att_stored_tokenizer *s) {
  static const char space[] = "{\"type\": \"Metaspace\", \"replacement\": \"\xE2\x96\x81\", "
                              "\"prepend_scheme\": \"always\", \"split\": true}";
  if (s->charsmap.bytes) {
    fputs("  \"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"", f);
    put_base64(f, (const unsigned char *)s->charsmap.bytes, s->charsmap.n);
    fputs("\"},\n", f);
  } else {
    fputs("  \"normalizer\": null,\n", f);
  }
  fprintf(f,
          "  \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [\n"
          "    {\"type\": \"WhitespaceSplit\"},\n    %s\n  ]},\n  \"decoder\": %s,\n",
          space, space);
}

static void put_score(FILE *f, double score) {
  char text[ATT_DECIMAL_BYTES];
  fputs(att_decimal(text, 17, score), f);
}

void att_stored_put_unigram(FILE *f, const att_stored_tokenizer *s) {
  fputs("  \"model\": {\"type\": \"Unigram\", \"unk_id\": ", f);
  if (s->unknown >= 0)
    fprintf(f, "%lld", (long long)s->unknown);
  else
    fputs("null", f);
  fputs(", \"byte_fallback\": false,\n    \"vocab\": [", f);
  for (int64_t id = 0; id < s->n_tokens; id++) {
    fputs(id ? ",\n      [" : "\n      [", f);
    att_stored_put_string(f, s->tokens[id]);
    fputs(", ", f);
    put_score(f, (double)s->scores[id]);
    putc(']', f);
  }
  fputs("\n    ]\n  }", f);
}
