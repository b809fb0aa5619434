/* att_tokenizer_open: finds out what kind of file a path is, and loads it. */
#include <string.h>

#include "base/file.h"
#include "base/line.h"
#include "text/tokenizer.h"

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

att_status att_tokenizer_open(att_tokenizer **out, att_runtime *runtime, const char *path,
                              int64_t vocab_size) {
  if (out == NULL || runtime == NULL || path == NULL)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    out == NULL       ? "out"
                    : runtime == NULL ? "runtime"
                                      : "path");
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  att_status status = load(out, runtime, &file, path, vocab_size);
  att_file_unmap(&file);
  return status;
}
