/* Opening models that are compiled in. */
#include "model/builtin.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "model/format_gguf.h"
#include "model/format_huggingface.h"
#include "text/tokenizer.h"

const att_builtin_file *att_builtin_find(const att_builtin_model *model, const char *name) {
  for (int i = 0; i < model->n_files; i++)
    if (!strcmp(model->files[i].name, name)) return &model->files[i];
  return NULL;
}

const att_builtin_model *att_builtin_model_find(const char *name) {
  for (int i = 0; i < att_builtin_count; i++)
    if (!name || !strcmp(name, att_builtin_models[i].name)) return &att_builtin_models[i];
  return NULL;
}

const att_builtin_model *att_builtin_meant(const char *path) {
  if (att_path_is_file(path) || att_path_is_folder(path)) return NULL;
  return att_builtin_model_find(path);
}

att_status att_builtin_tokenizer(att_tokenizer **out, att_runtime *runtime,
                                 const att_builtin_model *model) {
  const att_builtin_file *json = att_builtin_find(model, "tokenizer.json");
  const att_builtin_file *words = att_builtin_find(model, "words.txt");
  if (json) return att_load_hf(out, runtime, (const char *)json->bytes, json->size, model->name);
  if (words)
    return att_load_words(out, runtime, (const char *)words->bytes, words->size, model->name);
  return att_fail(ATT_NOT_FOUND, "built-in model %s has neither tokenizer.json nor words.txt",
                  model->name);
}

void att_builtin_names(char out[ATT_BUILTIN_NAMES], const char *wanted) {
  out[0] = 0;
  for (int i = 0; i < att_builtin_count; i++) {
    const char *name = att_builtin_models[i].name;
    if (strchr(name, '@') && !strchr(wanted, '@')) continue;
    size_t used = strlen(out);
    snprintf(out + used, ATT_BUILTIN_NAMES - used, "%s%s", used ? ", " : "", name);
  }
}

att_status att_checkpoint_open_builtin(att_checkpoint *out, att_runtime *runtime,
                                       const char *name) {
  const att_builtin_model *model = att_builtin_model_find(name);
  if (model) {
    const att_builtin_file *gguf = att_builtin_find(model, "model.gguf");
    return gguf ? att_gguf_model_builtin(out, runtime, model, gguf)
                : att_huggingface_open(out, runtime, &(att_folder){model->name, model});
  }
  char known[ATT_BUILTIN_NAMES];
  if (!name) name = "";
  att_builtin_names(known, name);
  return att_fail(ATT_NOT_FOUND, "no built-in model is called \"%s\"; there are: %s", name, known);
}
