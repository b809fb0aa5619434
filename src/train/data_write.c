/* From text to the run's tokenizer.json and tokens.npy. Both are made once and
 * appear when complete; a run that goes on finds them. Tokens outside of marks are
 * stored as -1 - id, so that one array says all. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/utf8.h"
#include "text/load_gguf.h"
#include "text/tokenizer.h"
#include "train/data.h"
#include "train/learner.h"
#include "train/marks.h"

enum { PATH = ATT_FOLDER_PATH, END_OF_BYTES = 256, PIECE = 1 << 18 };

static att_status join(char out[PATH], const char *folder, const char *name) {
  int n = snprintf(out, PATH, "%s/%s", folder, name);
  if (n > 0 && n < PATH) return ATT_OK;
  return att_fail(ATT_TOO_LARGE, "the path of %s is too long", name);
}

/* ---- the files of the data ---- */

typedef att_status visit_fn(const char *path, void *context);

static att_status visit_files(const char *data, visit_fn *visit, void *context) {
  char name[ATT_FOLDER_NAME] = "", path[PATH];
  if (!att_path_is_folder(data)) return visit(data, context);
  int64_t n = 0;
  while (att_folder_next(name, data)) {
    ATT_TRY(join(path, data, name));
    if (!att_path_is_file(path) || name[0] == '.') continue;
    ATT_TRY(visit(path, context));
    n++;
  }
  return n ? ATT_OK : att_fail(ATT_NOT_FOUND, "%s has no files", data);
}

static att_status add_bytes(const char *path, void *context) {
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  *(uint64_t *)context += file.bytes;
  att_file_unmap(&file);
  return ATT_OK;
}

/* ---- tokenizers ---- */

typedef struct characters {
  unsigned char seen[0x110000 / 8];
} characters;

static att_status mark_characters(const char *path, void *context) {
  characters *all = context;
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  att_status status = ATT_OK;
  for (size_t at = 0; at < file.bytes && status == ATT_OK;) {
    uint32_t code;
    int n = att_utf8_decode(&code, (const char *)file.data + at, file.bytes - at);
    if (n <= 0)
      status =
          att_fail(ATT_CORRUPT, "%s: byte %zu is no UTF-8; use the tokenizer \"bytes\"", path, at);
    else
      all->seen[code / 8] |= (unsigned char)(1 << code % 8), at += (size_t)n;
  }
  att_file_unmap(&file);
  return status;
}

/* A vocabulary of single characters without merges, and an end of documents. */
static void put_characters(FILE *f, const characters *all) {
  int n = 0;
  fputs("{\"version\": \"1.0\", \"added_tokens\": [{\"id\": 0, \"content\": \"<|endoftext|>\", "
        "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
        "\"special\": true}],\n\"normalizer\": null, \"pre_tokenizer\": null, "
        "\"post_processor\": null, \"decoder\": {\"type\": \"Fuse\"},\n"
        "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
        "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": false, "
        "\"byte_fallback\": false, \"vocab\": {\"<|endoftext|>\": 0",
        f);
  for (uint32_t code = 0; code < 0x110000; code++) {
    if (!(all->seen[code / 8] >> code % 8 & 1)) continue;
    if (code < 0x10000)
      fprintf(f, ",\n\"\\u%04x\": %d", code, ++n);
    else
      fprintf(f, ",\n\"\\u%04x\\u%04x\": %d", 0xd800 + ((code - 0x10000) >> 10),
              0xdc00 + ((code - 0x10000) & 0x3ff), ++n);
  }
  fputs("}, \"merges\": []}}\n", f);
}

static att_status make_characters(att_runtime *runtime, const char *data, const char *path) {
  characters *all;
  att_file_writer file;
  ATT_TRY(att_alloc((void **)&all, runtime, 1, sizeof *all, "a set of characters"));
  att_status status = visit_files(data, mark_characters, all);
  if (status == ATT_OK) status = att_file_create(&file, runtime, path);
  if (status == ATT_OK) {
    put_characters(file.stream, all);
    status = att_file_commit(&file, runtime);
  }
  att_release(runtime, all, 1, sizeof *all);
  return status;
}

static att_status write_stored(att_runtime *runtime, const char *path,
                               const att_tokenizer_copy *copy) {
  att_file_writer file;
  ATT_TRY(att_file_create(&file, runtime, path));
  att_stored_write_json(file.stream, &copy->stored);
  return att_file_commit(&file, runtime);
}

static att_status make_bytes(att_runtime *runtime, const char *path) {
  att_tokenizer_copy copy;
  ATT_TRY(att_tokenizer_store_bytes(&copy, runtime, END_OF_BYTES + 1));
  att_status status = write_stored(runtime, path, &copy);
  att_tokenizer_copy_release(&copy);
  return status;
}

typedef struct path_list {
  char (*paths)[PATH];
  const char **pointers;
  int64_t n, room;
} path_list;

static att_status count_path(const char *path, void *context) {
  path_list *list = context;
  if (list->paths && list->n < list->room) {
    snprintf(list->paths[list->n], PATH, "%s", path);
    list->pointers[list->n] = list->paths[list->n];
  }
  list->n++;
  return ATT_OK;
}

static att_status make_bpe(att_runtime *runtime, const att_train_settings *s, const char *path) {
  static const char *const special[] = {"<|endoftext|>"};
  path_list list = {0};
  ATT_TRY(visit_files(s->data, count_path, &list));
  list.room = list.n;
  ATT_TRY(att_alloc((void **)&list.paths, runtime, list.room, sizeof *list.paths, "paths"));
  att_status status =
      att_alloc((void **)&list.pointers, runtime, list.room, sizeof *list.pointers, "paths");
  list.n = 0;
  if (status == ATT_OK) status = visit_files(s->data, count_path, &list);
  att_train_bpe_options options;
  att_train_bpe_options_init(&options);
  options.vocab_size = s->vocab;
  options.special = special;
  options.n_special = 1;
  int64_t size;
  if (status == ATT_OK)
    status = att_tokenizer_train_bpe(&size, runtime, path, list.pointers, list.n, &options);
  att_release(runtime, list.pointers, list.room, sizeof *list.pointers);
  att_release(runtime, list.paths, list.room, sizeof *list.paths);
  return status;
}

/* The tokenizer that a model came with: any other gives its ids other meanings. */
static att_status open_own(att_tokenizer **out, att_runtime *runtime, const char *model) {
  att_checkpoint checkpoint;
  ATT_TRY(att_checkpoint_open(&checkpoint, runtime, model));
  att_status status = checkpoint.open_tokenizer(out, &checkpoint);
  att_checkpoint_close(&checkpoint);
  if (status != ATT_NOT_FOUND) return status;
  return att_fail(ATT_BAD_ARGUMENT, "\"tokenizer\" is not given, and \"start\", %s, has none",
                  model);
}

static att_status copy_tokenizer(att_runtime *runtime, const att_train_settings *s,
                                 const char *path) {
  att_tokenizer *tokenizer;
  att_tokenizer_copy copy;
  if (s->tokenizer[0])
    ATT_TRY(att_tokenizer_open(&tokenizer, runtime, s->tokenizer, 0));
  else
    ATT_TRY(open_own(&tokenizer, runtime, s->start));
  att_status status = att_tokenizer_store(&copy, tokenizer, att_tokenizer_size(tokenizer));
  att_tokenizer_free(tokenizer);
  ATT_TRY(status);
  status = write_stored(runtime, path, &copy);
  att_tokenizer_copy_release(&copy);
  return status;
}

static att_status make_tokenizer(att_runtime *runtime, const att_train_settings *s,
                                 const char *path) {
  if (!strcmp(s->tokenizer, "characters")) return make_characters(runtime, s->data, path);
  if (!strcmp(s->tokenizer, "bytes")) return make_bytes(runtime, path);
  if (!strcmp(s->tokenizer, "bpe")) return make_bpe(runtime, s, path);
  return copy_tokenizer(runtime, s, path);
}

/* ---- tokens ---- */

typedef struct encoder {
  att_runtime *runtime;
  const att_tokenizer *tokenizer;
  int32_t separator;
  bool foreign; /* a tokenizer that was not made here */
  bool lines;   /* are documents */
  const char *marks_path;
  att_marks marks; /* of the file that is read */
  int64_t next;    /* among their limits */
  int32_t *ids;
  int64_t n, room;
} encoder;

static att_status make_room(encoder *e, int64_t more) {
  if (e->n + more <= e->room) return ATT_OK;
  int64_t room = e->n + more + e->room / 2;
  int32_t *ids;
  ATT_TRY(att_alloc((void **)&ids, e->runtime, room, sizeof *ids, "tokens"));
  if (e->n) memcpy(ids, e->ids, (size_t)e->n * sizeof *ids);
  att_release(e->runtime, e->ids, e->room, sizeof *ids);
  e->ids = ids;
  e->room = room;
  return ATT_OK;
}

static bool is_ink(char c) { return c > ' ' && c <= '~'; }

/* Where the next piece of a text ends. An encoding takes many times the memory of its
 * text. Our own tokenizers see a single line end between ink as a word, so that a cut
 * behind it changes no token; of others nobody knows. */
static size_t piece_end(const encoder *e, const char *text, size_t begin, size_t bytes) {
  if (e->foreign) return bytes;
  for (size_t at = begin + PIECE; at < bytes; at++)
    if (text[at - 1] == '\n' && is_ink(text[at - 2]) && is_ink(text[at])) return at;
  return bytes;
}

static att_status encode_piece(encoder *e, const char *text, size_t bytes) {
  att_encoding *encoding;
  ATT_TRY(att_encode(&encoding, e->tokenizer, text, bytes, &(att_encode_options){false, false}));
  att_status status = make_room(e, encoding->n + 1); /* and a separator */
  if (status == ATT_OK && encoding->n) {
    memcpy(e->ids + e->n, encoding->ids, (size_t)encoding->n * sizeof *e->ids);
    e->n += encoding->n;
  }
  att_encoding_free(encoding);
  return status;
}

/* From begin to end, cut where marks begin and end, so that no token is half in one. */
static att_status encode_part(encoder *e, const char *text, size_t begin, size_t end) {
  if (!e->marks.limits) return encode_piece(e, text + begin, end - begin);
  for (int64_t at = (int64_t)begin, to; at < (int64_t)end; at = to) {
    bool marked = att_marks_find(&e->marks, at, (int64_t)end, &e->next, &to);
    int64_t first = e->n;
    ATT_TRY(encode_piece(e, text + at, (size_t)(to - at)));
    for (int64_t i = first; i < e->n && !marked; i++) e->ids[i] = ~e->ids[i];
  }
  return ATT_OK;
}

static void put_separator(encoder *e) {
  e->ids[e->n++] = e->marks.limits ? ~e->separator : e->separator;
}

static att_status encode_lines(encoder *e, const char *text, size_t bytes) {
  ATT_TRY(make_room(e, 1)); /* also if all lines are empty */
  for (size_t at = 0, end; at < bytes; at = end + 1) {
    const char *found = memchr(text + at, '\n', bytes - at);
    end = found ? (size_t)(found - text) : bytes;
    if (end == at) continue;
    ATT_TRY(encode_part(e, text, at, end));
    put_separator(e);
  }
  return ATT_OK;
}

static att_status encode_file(const char *path, void *context) {
  encoder *e = context;
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  const char *text = (const char *)file.data;
  att_status status = ATT_OK;
  if (e->marks_path) status = att_marks_read(&e->marks, e->runtime, e->marks_path, file.bytes);
  if (status == ATT_OK) status = e->lines ? encode_lines(e, text, file.bytes) : make_room(e, 1);
  for (size_t at = 0, end; status == ATT_OK && !e->lines && at < file.bytes; at = end) {
    end = piece_end(e, text, at, file.bytes);
    status = encode_part(e, text, at, end);
  }
  att_file_unmap(&file);
  if (status == ATT_OK && !e->lines && e->separator >= 0) put_separator(e);
  att_marks_release(&e->marks, e->runtime);
  return status;
}

/* True for the tokenizers that are made from the data. */
static bool is_own(const char *tokenizer) {
  return !strcmp(tokenizer, "characters") || !strcmp(tokenizer, "bytes") ||
         !strcmp(tokenizer, "bpe");
}

static att_status make_tokens(att_runtime *runtime, const att_train_settings *s,
                              const att_tokenizer *tokenizer, int32_t separator, const char *path) {
  encoder e = {.runtime = runtime,
               .tokenizer = tokenizer,
               .separator = separator,
               .foreign = !is_own(s->tokenizer),
               .lines = s->lines,
               .marks_path = s->marks[0] ? s->marks : NULL};
  if (s->marks[0] && att_path_is_folder(s->data))
    return att_fail(ATT_BAD_ARGUMENT, "\"marks\" are of one file, and \"data\", %s, is a folder",
                    s->data);
  att_status status = visit_files(s->data, encode_file, &e);
  att_view view = att_view_of(e.ids, ATT_I32, 1, &e.n);
  if (status == ATT_OK) status = att_npy_write(runtime, path, &view);
  att_release(runtime, e.ids, e.room, sizeof *e.ids);
  return status;
}

/* ---- opening ---- */

static att_status open_tokens(att_data *data, att_runtime *runtime, const att_train_settings *s,
                              const char *path) {
  att_view view;
  ATT_TRY(att_archive_open(&data->archive, runtime, path));
  ATT_TRY(att_archive_get(&view, data->archive, "array"));
  if (view.dtype != ATT_I32 || view.ndim != 1 || !att_view_is_contiguous(&view))
    return att_fail(ATT_CORRUPT, "%s holds no row of i32", path);
  data->tokens = view.data;
  data->n = view.shape[0];
  data->train = data->n - (int64_t)((double)data->n * s->validation);
  data->checksum = att_checksum(view.data, (size_t)data->n * sizeof *data->tokens);
  for (int64_t i = 0; i < data->n; i++)
    if (att_data_id(data->tokens[i]) >= data->vocab)
      return att_fail(ATT_CORRUPT, "%s: token %lld is %d, not below %lld", path, (long long)i,
                      (int)att_data_id(data->tokens[i]), (long long)data->vocab);
  if (data->train >= s->length + 1) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT,
                  "%s has %lld tokens to learn from, fewer than a sequence of %lld and one more",
                  s->data, (long long)data->train, (long long)s->length);
}

/* What ends a document: the token that texts to learn from are parted by, where models
 * that chat have another one that ends a turn; or else the only end there is. */
static int32_t find_separator(const att_tokenizer *tokenizer) {
  static const char usual[] = "<|endoftext|>";
  int32_t id = att_tokenizer_find(tokenizer, usual, sizeof usual - 1);
  return id >= 0 ? id : tokenizer->eos;
}

static att_status fill(att_data *data, att_runtime *runtime, const att_train_settings *s) {
  char words[PATH], tokens[PATH];
  att_tokenizer *tokenizer;
  ATT_TRY(join(words, s->output, "tokenizer.json"));
  ATT_TRY(join(tokens, s->output, "tokens.npy"));
  if (!att_path_is_file(words)) ATT_TRY(make_tokenizer(runtime, s, words));
  ATT_TRY(att_tokenizer_open(&tokenizer, runtime, words, 0));
  data->vocab = att_tokenizer_size(tokenizer);
  data->separator = find_separator(tokenizer);
  att_status status = ATT_OK;
  if ((s->documents || s->lines) && data->separator < 0)
    status = att_fail(ATT_BAD_ARGUMENT, "\"%s\": the tokenizer has no token that ends a text",
                      s->lines ? "lines" : "documents");
  if (status == ATT_OK && !att_path_is_file(tokens))
    status = make_tokens(runtime, s, tokenizer, data->separator, tokens);
  att_tokenizer_free(tokenizer);
  if (status == ATT_OK && visit_files(s->data, add_bytes, &data->text_bytes) != ATT_OK)
    data->text_bytes = 0; /* a run that goes on needs the tokens only */
  return status == ATT_OK ? open_tokens(data, runtime, s, tokens) : status;
}

att_status att_data_open(att_data *out, att_runtime *runtime, const att_train_settings *settings) {
  att_data data = {0};
  att_status status = fill(&data, runtime, settings);
  if (status == ATT_OK)
    *out = data;
  else
    att_data_close(&data);
  return status;
}

void att_data_close(att_data *data) {
  att_archive_close(data->archive);
  *data = (att_data){0};
}
