/* att_tokenizer_open: finds out what kind of file a path is, and loads it. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/line.h"
#include "text/tokenizer.h"

enum { PATH_BYTES = 4096 };

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && memcmp(text + n - m, end, m) == 0;
}

static att_status load(att_tokenizer **out, const att_runtime *runtime, const att_file *file,
                       const char *path, int64_t vocab_size) {
  const char *bytes = (const char *)file->data;
  if (ends_with(path, ".bin"))
    return att_load_llama2c(out, runtime, bytes, file->bytes, path, vocab_size);
  if (att_is_words(bytes, file->bytes))
    return att_load_words(out, runtime, bytes, file->bytes, path);
  return att_fail(ATT_UNSUPPORTED,
                  "%s: no kind of tokenizer file; known are tokenizer.bin and words.txt", path);
}

static att_status open_file(att_tokenizer **out, const att_runtime *runtime, const char *path,
                            int64_t vocab_size) {
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  att_status status = load(out, runtime, &file, path, vocab_size);
  att_file_unmap(&file);
  return status;
}

static att_status open_folder(att_tokenizer **out, const att_runtime *runtime, const char *folder,
                              int64_t vocab_size) {
  static const char *const names[] = {"words.txt"};
  char path[PATH_BYTES];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    int n = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    if (n < 0 || (size_t)n >= sizeof path)
      return att_fail(ATT_TOO_LARGE, "the path %s/%s is too long", folder, names[i]);
    if (att_path_is_file(path)) return open_file(out, runtime, path, vocab_size);
  }
  return att_fail(ATT_NOT_FOUND, "%s holds no tokenizer; known is words.txt", folder);
}

att_status att_tokenizer_open(att_tokenizer **out, att_runtime *runtime, const char *path,
                              int64_t vocab_size) {
  if (out == NULL || runtime == NULL || path == NULL)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    out == NULL       ? "out"
                    : runtime == NULL ? "runtime"
                                      : "path");
  return att_path_is_folder(path) ? open_folder(out, runtime, path, vocab_size)
                                  : open_file(out, runtime, path, vocab_size);
}
