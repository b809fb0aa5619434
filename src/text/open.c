/* Finds out what kind of file or folder a path is, and loads it. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "text/tokenizer.h"

enum { PATH_BYTES = 4096 };

static att_status join(char out[PATH_BYTES], const char *folder, const char *name) {
  if (snprintf(out, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES) return ATT_OK;
  return att_fail(ATT_TOO_LARGE, "%s: the path is too long", folder);
}

/* The folder of a file, "." for a bare name. */
static att_status folder_of(char out[PATH_BYTES], const char *path) {
  const char *slash = strrchr(path, '/');
  int n = slash ? (int)(slash - path) : 0;
  if (slash == path) return join(out, "", "");
  if (snprintf(out, PATH_BYTES, "%.*s", n > 0 ? n : 1, n > 0 ? path : ".") < PATH_BYTES)
    return ATT_OK;
  return att_fail(ATT_TOO_LARGE, "%s: the path is too long", path);
}

/* Frees a tokenizer whose last step failed; else hands it over. */
static att_status finish(att_tokenizer **out, att_tokenizer *t, att_status status) {
  if (status == ATT_OK)
    *out = t;
  else
    att_tokenizer_free(t);
  return status;
}

static att_status load_json(att_tokenizer **out, const att_runtime *runtime, const att_file *file,
                            const char *path) {
  char folder[PATH_BYTES];
  att_tokenizer *t;
  ATT_TRY(folder_of(folder, path));
  ATT_TRY(att_load_hf(&t, runtime, (const char *)file->data, file->bytes, path));
  return finish(out, t, att_tokenizer_find_ends(t, folder));
}

static att_status load(att_tokenizer **out, const att_runtime *runtime, const att_file *file,
                       const char *path, int64_t vocab_size) {
  const char *bytes = (const char *)file->data;
  if (att_path_ends_with(path, ".bin"))
    return att_load_llama2c(out, runtime, bytes, file->bytes, path, vocab_size);
  if (att_path_ends_with(path, ".json")) return load_json(out, runtime, file, path);
  if (att_is_words(bytes, file->bytes))
    return att_load_words(out, runtime, bytes, file->bytes, path);
  return att_fail(ATT_UNSUPPORTED,
                  "%s: no kind of tokenizer file; known are tokenizer.json, tokenizer.bin and "
                  "words.txt",
                  path);
}

static att_status open_file(att_tokenizer **out, const att_runtime *runtime, const char *path,
                            int64_t vocab_size) {
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  att_status status = load(out, runtime, &file, path, vocab_size);
  att_file_unmap(&file);
  return status;
}

static att_status open_pair(att_tokenizer **out, const att_runtime *runtime, const char *folder,
                            const char *vocab_path, const char *merges_path) {
  att_file vocab, merges;
  att_tokenizer *t;
  ATT_TRY(att_file_map(&vocab, vocab_path));
  att_status status = att_file_map(&merges, merges_path);
  if (status == ATT_OK) {
    status = att_load_gpt2(&t, runtime, (const char *)vocab.data, vocab.bytes, vocab_path,
                           (const char *)merges.data, merges.bytes, merges_path);
    att_file_unmap(&merges);
  }
  att_file_unmap(&vocab);
  ATT_TRY(status);
  return finish(out, t, att_tokenizer_find_ends(t, folder));
}

static att_status open_folder(att_tokenizer **out, const att_runtime *runtime, const char *folder,
                              int64_t vocab_size) {
  static const char *const names[] = {"tokenizer.json", "words.txt"};
  char path[PATH_BYTES], merges[PATH_BYTES];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ATT_TRY(join(path, folder, names[i]));
    if (att_path_is_file(path)) return open_file(out, runtime, path, vocab_size);
  }
  ATT_TRY(join(path, folder, "vocab.json"));
  ATT_TRY(join(merges, folder, "merges.txt"));
  if (att_path_is_file(path)) return open_pair(out, runtime, folder, path, merges);
  return att_fail(ATT_NOT_FOUND,
                  "%s holds no tokenizer; known are tokenizer.json, words.txt, and vocab.json "
                  "with merges.txt",
                  folder);
}

att_status att_tokenizer_open_path(att_tokenizer **out, const att_runtime *runtime,
                                   const char *path, int64_t vocab_size) {
  return att_path_is_folder(path) ? open_folder(out, runtime, path, vocab_size)
                                  : open_file(out, runtime, path, vocab_size);
}
