/* The tokenizer.json of a byte-level BPE, in the layout of Hugging Face's own
 * files. Ids: the 256 bytes, then merges in order, then special tokens. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/byte_alphabet.h"
#include "text/train.h"

static att_status put(att_list *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static att_status put(att_list *out, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (n < 0 || n >= (int)sizeof text) return att_fail(ATT_INTERNAL, "%d bytes at once", n);
  return att_list_append(out, text, n);
}

/* A string with its quotes. */
static att_status put_string(att_list *out, const char *text, int64_t n) {
  ATT_TRY(put(out, "\""));
  for (int64_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\')
      ATT_TRY(put(out, "\\%c", c));
    else if (c < 0x20)
      ATT_TRY(put(out, "\\u%04x", c));
    else
      ATT_TRY(att_list_append(out, text + i, 1));
  }
  return put(out, "\"");
}

/* The bytes of a piece in the byte alphabet, without quotes. */
static att_status put_bytes(att_list *out, const att_trainer *t, int32_t id) {
  const att_train_piece *piece = (const att_train_piece *)t->pieces.items + id;
  const char *bytes = (const char *)t->bytes.items + piece->first;
  for (int64_t i = 0; i < piece->n; i++) {
    char c[ATT_UTF8_MAX];
    int n = att_utf8_encode(c, att_char_of_byte((unsigned char)bytes[i]));
    if (c[0] == '"' || c[0] == '\\') ATT_TRY(put(out, "\\"));
    ATT_TRY(att_list_append(out, c, n));
  }
  return ATT_OK;
}

static att_status put_added(att_list *out, const att_trainer *t) {
  const att_train_bpe_options *o = t->options;
  ATT_TRY(put(out, "  \"added_tokens\": ["));
  for (int64_t i = 0; i < o->n_special; i++) {
    ATT_TRY(put(out, "%s\n    {\"id\": %lld, \"content\": ", i > 0 ? "," : "",
                (long long)(t->pieces.n + i)));
    ATT_TRY(put_string(out, o->special[i], (int64_t)strlen(o->special[i])));
    ATT_TRY(put(out, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                     "\"normalized\": false, \"special\": true}"));
  }
  return put(out, "%s],\n", o->n_special > 0 ? "\n  " : "");
}

static att_status put_pretokenizer(att_list *out, const char *pattern) {
  static const char byte_level[] =
      "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
      "\"use_regex\": ";
  ATT_TRY(put(out, "  \"normalizer\": null,\n  \"pre_tokenizer\": "));
  if (pattern == NULL) return put(out, "%strue},\n", byte_level);
  ATT_TRY(put(out, "{\"type\": \"Sequence\", \"pretokenizers\": [\n    {\"type\": \"Split\", "
                   "\"pattern\": {\"Regex\": "));
  ATT_TRY(put_string(out, pattern, (int64_t)strlen(pattern)));
  ATT_TRY(put(out, "}, \"behavior\": \"Isolated\", \"invert\": false},\n    "));
  return put(out, "%sfalse}\n  ]},\n", byte_level);
}

static int64_t id_of_special(const att_trainer *t, const char *name) {
  for (int64_t i = 0; i < t->options->n_special; i++)
    if (strcmp(t->options->special[i], name) == 0) return t->pieces.n + i;
  return -1;
}

/* BOS, if there is one, in front of every text. */
static att_status put_template(att_list *out, const att_trainer *t) {
  const char *begin = t->options->begin;
  if (begin == NULL)
    return put(out, "  \"post_processor\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                    "\"trim_offsets\": false, \"use_regex\": true},\n");
  ATT_TRY(put(out, "  \"post_processor\": {\"type\": \"TemplateProcessing\",\n"));
  for (int pair = 0; pair < 2; pair++) {
    ATT_TRY(put(out, "    \"%s\": [", pair ? "pair" : "single"));
    for (int text = 0; text <= pair; text++) {
      ATT_TRY(put(out, "%s{\"SpecialToken\": {\"id\": ", text ? ", " : ""));
      ATT_TRY(put_string(out, begin, (int64_t)strlen(begin)));
      ATT_TRY(put(out, ", \"type_id\": %d}}, {\"Sequence\": {\"id\": \"%c\", \"type_id\": %d}}",
                  text, 'A' + text, text));
    }
    ATT_TRY(put(out, "],\n"));
  }
  ATT_TRY(put(out, "    \"special_tokens\": {"));
  ATT_TRY(put_string(out, begin, (int64_t)strlen(begin)));
  ATT_TRY(put(out, ": {\"id\": "));
  ATT_TRY(put_string(out, begin, (int64_t)strlen(begin)));
  ATT_TRY(put(out, ", \"ids\": [%lld], \"tokens\": [", (long long)id_of_special(t, begin)));
  ATT_TRY(put_string(out, begin, (int64_t)strlen(begin)));
  return put(out, "]}}},\n");
}

static att_status put_model(att_list *out, const att_trainer *t) {
  const att_train_merge *merges = t->merges.items;
  ATT_TRY(put(out, "  \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null,\n"
                   "    \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null,\n"
                   "    \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n"
                   "    \"vocab\": {"));
  for (int32_t id = 0; id < t->pieces.n; id++) {
    ATT_TRY(put(out, "%s\n      \"", id > 0 ? "," : ""));
    ATT_TRY(put_bytes(out, t, id));
    ATT_TRY(put(out, "\": %d", id));
  }
  ATT_TRY(put(out, "\n    },\n    \"merges\": ["));
  for (int64_t i = 0; i < t->merges.n; i++) {
    ATT_TRY(put(out, "%s\n      [\"", i > 0 ? "," : ""));
    ATT_TRY(put_bytes(out, t, merges[i].left));
    ATT_TRY(put(out, "\", \""));
    ATT_TRY(put_bytes(out, t, merges[i].right));
    ATT_TRY(put(out, "\"]"));
  }
  return put(out, "\n    ]\n  }\n}\n");
}

att_status att_train_write(att_list *out, const att_trainer *trainer) {
  ATT_TRY(put(out, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n"));
  ATT_TRY(put_added(out, trainer));
  ATT_TRY(put_pretokenizer(out, trainer->options->pattern));
  ATT_TRY(put_template(out, trainer));
  ATT_TRY(put(out, "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                   "\"trim_offsets\": true, \"use_regex\": true},\n"));
  return put_model(out, trainer);
}
