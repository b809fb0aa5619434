/* Opening models that are compiled in. */
#include "model/builtin.h"

#include <stdio.h>
#include <string.h>

#include "model/format_huggingface.h"
#include "text/tokenizer.h"

const att_builtin_file *att_builtin_find(const att_builtin_model *model, const char *name) {
  for (int i = 0; i < model->n_files; i++)
    if (!strcmp(model->files[i].name, name)) return &model->files[i];
  return NULL;
}

att_status att_builtin_tokenizer(att_tokenizer **out, att_runtime *runtime,
                                 const att_builtin_model *model) {
  const att_builtin_file *file = att_builtin_find(model, "words.txt");
  if (!file) return att_fail(ATT_NOT_FOUND, "built-in model %s has no words.txt", model->name);
  return att_load_words(out, runtime, (const char *)file->bytes, file->size, model->name);
}

att_status att_checkpoint_open_builtin(att_checkpoint *out, att_runtime *runtime,
                                       const char *name) {
  char known[256] = "";
  for (int i = 0; i < att_builtin_count; i++) {
    const att_builtin_model *model = &att_builtin_models[i];
    if (!name || !strcmp(name, model->name))
      return att_huggingface_open(out, runtime, &(att_folder){model->name, model});
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", model->name);
  }
  return att_fail(ATT_NOT_FOUND, "no built-in model is called \"%s\"; there are: %s",
                  name ? name : "", known);
}
