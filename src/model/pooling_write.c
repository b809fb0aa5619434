/* Writing sentence-transformers' description of what happens behind a model. */
#include <stdio.h>

#include "attend/encoder.h"
#include "base/file.h"
#include "base/folder.h"
#include "model/pooling.h"

static const char pooling_folder[] = "1_Pooling";

static att_status write_file(const att_runtime *runtime, const char *path, const char *text) {
  att_file_writer file;
  ATT_TRY(att_file_create(&file, runtime, path));
  fputs(text, file.stream);
  return att_file_commit(&file, runtime);
}

static att_status write_pooling(const att_config *c, const att_runtime *runtime, const char *path) {
  char text[512];
  snprintf(text, sizeof text,
           "{\n  \"word_embedding_dimension\": %lld,\n  \"pooling_mode_cls_token\": %s,\n"
           "  \"pooling_mode_mean_tokens\": %s,\n  \"pooling_mode_max_tokens\": false,\n"
           "  \"pooling_mode_mean_sqrt_len_tokens\": false\n}\n",
           (long long)c->width, c->pooling == ATT_POOL_CLS ? "true" : "false",
           c->pooling == ATT_POOL_MEAN ? "true" : "false");
  return write_file(runtime, path, text);
}

#define MODULE(n, folder, kind)                                                                    \
  "  {\"idx\": " n ", \"name\": \"" n "\", \"path\": \"" folder                                    \
  "\", \"type\": \"sentence_transformers.models." kind "\"}"

att_status att_pooling_write(const att_config *c, const att_runtime *runtime, const char *path) {
  static const char plain[] =
      "[\n" MODULE("0", "", "Transformer") ",\n" MODULE("1", "1_Pooling", "Pooling") "\n]\n";
  static const char normed[] = "[\n" MODULE("0", "", "Transformer") ",\n" MODULE(
      "1", "1_Pooling", "Pooling") ",\n" MODULE("2", "2_Normalize", "Normalize") "\n]\n";
  const att_folder folder = {.path = path};
  char name[ATT_PATH_BYTES];
  if (c->pooling != ATT_POOL_CLS && c->pooling != ATT_POOL_MEAN) return ATT_OK;
  ATT_TRY(att_folder_join(name, sizeof name, &folder, "modules.json"));
  ATT_TRY(write_file(runtime, name, c->unit_length ? normed : plain));
  ATT_TRY(att_folder_join(name, sizeof name, &folder, pooling_folder));
  ATT_TRY(att_folder_make(name));
  ATT_TRY(att_folder_join(name, sizeof name, &folder, "1_Pooling/config.json"));
  return write_pooling(c, runtime, name);
}

void att_pooling_remove(const char *path) {
  char name[ATT_PATH_BYTES];
  const att_folder folder = {.path = path};
  if (att_folder_join(name, sizeof name, &folder, pooling_folder) == ATT_OK)
    att_folder_remove(name);
}
