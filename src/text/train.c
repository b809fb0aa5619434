/* att_tokenizer_train_bpe: checks what it is asked for, then counts, merges and
 * writes. */
#include "text/train.h"

#include <string.h>

#include "base/file.h"
#include "base/line.h"
#include "text/byte_alphabet.h"

enum { BYTES = 256, VOCAB_MAX = 1 << 24 };

void att_train_bpe_options_init(att_train_bpe_options *options) {
  if (options == NULL) return;
  *options =
      (att_train_bpe_options){.struct_size = sizeof *options, .vocab_size = 32000, .min_count = 2};
}

/* The printable bytes come first, in ascending order, then the others. */
int32_t att_train_id_of_byte(unsigned char byte) {
  uint32_t code = att_char_of_byte(byte);
  if (code >= 0x100) return BYTES - 68 + (int32_t)code - 0x100;
  return (int32_t)code - (code < 0x7F ? '!' : code < 0xAD ? 0xA1 - 94 : 0xA1 - 93);
}

att_status att_train_progress(const att_trainer *trainer, double done) {
  const att_train_bpe_options *o = trainer->options;
  if (o->progress == NULL || o->progress(done, o->payload)) return ATT_OK;
  return att_fail(ATT_CANCELLED, "training a tokenizer was cancelled");
}

static bool is_special(const att_train_bpe_options *o, const char *name, int64_t before) {
  for (int64_t i = 0; i < before; i++)
    if (strcmp(o->special[i], name) == 0) return true;
  return false;
}

static att_status check_special(const att_train_bpe_options *o) {
  char quoted[96];
  if (o->n_special < 0 || (o->n_special > 0 && o->special == NULL))
    return att_fail(ATT_BAD_ARGUMENT, "special: %lld tokens", (long long)o->n_special);
  for (int64_t i = 0; i < o->n_special; i++) {
    const char *name = o->special[i];
    if (name == NULL || name[0] == '\0' || !att_chars_valid(name, (int64_t)strlen(name)))
      return att_fail(ATT_BAD_ARGUMENT, "special[%lld] is no name in UTF-8", (long long)i);
    if (is_special(o, name, i))
      return att_fail(ATT_BAD_ARGUMENT, "special[%lld] is %s again", (long long)i,
                      att_quote(quoted, sizeof quoted, name, strlen(name)));
  }
  if (o->begin != NULL && !is_special(o, o->begin, o->n_special))
    return att_fail(ATT_BAD_ARGUMENT, "begin is %s, which is no special token",
                    att_quote(quoted, sizeof quoted, o->begin, strlen(o->begin)));
  return ATT_OK;
}

static att_status check(const att_train_bpe_options *o, const char *out_path,
                        const char *const *paths, int64_t n) {
  if (o->struct_size != sizeof *o)
    return att_fail(ATT_BAD_ARGUMENT, "options were not set by att_train_bpe_options_init");
  if (out_path == NULL || paths == NULL || n < 1)
    return att_fail(ATT_BAD_ARGUMENT, "%s",
                    out_path == NULL ? "out_path is NULL" : "no text files");
  for (int64_t i = 0; i < n; i++)
    if (paths[i] == NULL)
      return att_fail(ATT_BAD_ARGUMENT, "paths[%lld] is NULL", (long long)i);
    else if (att_path_is_same(paths[i], out_path))
      return att_fail(ATT_BAD_ARGUMENT, "%s is a text to learn from, and not written over",
                      out_path);
  ATT_TRY(check_special(o));
  if (o->vocab_size < BYTES + o->n_special || o->vocab_size > VOCAB_MAX)
    return att_fail(ATT_BAD_ARGUMENT, "vocab_size %lld is outside %lld … %d",
                    (long long)o->vocab_size, (long long)(BYTES + o->n_special), VOCAB_MAX);
  if (o->min_count < 1)
    return att_fail(ATT_BAD_ARGUMENT, "min_count %lld is under 1", (long long)o->min_count);
  if (o->pattern != NULL && !att_chars_valid(o->pattern, (int64_t)strlen(o->pattern)))
    return att_fail(ATT_BAD_ARGUMENT, "pattern is no UTF-8");
  return ATT_OK;
}

static att_status add_bytes(att_trainer *t) {
  char bytes[BYTES];
  for (int byte = 0; byte < BYTES; byte++)
    bytes[att_train_id_of_byte((unsigned char)byte)] = (char)byte;
  ATT_TRY(att_list_append(&t->bytes, bytes, BYTES));
  for (int64_t id = 0; id < BYTES; id++) {
    att_train_piece piece = {id, 1};
    ATT_TRY(att_list_append(&t->pieces, &piece, 1));
  }
  return ATT_OK;
}

static att_status write_file(const att_trainer *t, const att_list *json, const char *path) {
  att_file_writer writer;
  ATT_TRY(att_file_create(&writer, t->runtime, path));
  fwrite(json->items, 1, (size_t)json->n, writer.stream); /* commit sees what went wrong */
  return att_file_commit(&writer, t->runtime);
}

static att_status train(att_trainer *t, const char *out_path, const char *const *paths, int64_t n) {
  att_list json;
  ATT_TRY(add_bytes(t));
  ATT_TRY(att_train_count(t, paths, n));
  ATT_TRY(att_train_merge_pairs(t));
  att_list_init(&json, t->runtime, 1);
  att_status status = att_train_write(&json, t);
  if (status == ATT_OK) status = write_file(t, &json, out_path);
  att_list_free(&json);
  return status;
}

att_status att_tokenizer_train_bpe(int64_t *out_size, att_runtime *runtime, const char *out_path,
                                   const char *const *paths, int64_t n_paths,
                                   const att_train_bpe_options *options) {
  att_train_bpe_options defaults;
  att_train_bpe_options_init(&defaults);
  if (options == NULL) options = &defaults;
  if (out_size == NULL || runtime == NULL)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", runtime == NULL ? "runtime" : "out_size");
  ATT_TRY(check(options, out_path, paths, n_paths));
  att_trainer t = {.runtime = runtime, .options = options};
  t.limit = options->vocab_size - options->n_special;
  att_list_init(&t.words, runtime, sizeof(att_train_word));
  att_list_init(&t.symbols, runtime, sizeof(int32_t));
  att_list_init(&t.merges, runtime, sizeof(att_train_merge));
  att_list_init(&t.pieces, runtime, sizeof(att_train_piece));
  att_list_init(&t.bytes, runtime, 1);
  att_status status = train(&t, out_path, paths, n_paths);
  if (status == ATT_OK) *out_size = t.pieces.n + options->n_special;
  att_list *const lists[] = {&t.words, &t.symbols, &t.merges, &t.pieces, &t.bytes};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) att_list_free(lists[i]);
  return status;
}
