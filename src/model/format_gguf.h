/* Opening a GGUF that is compiled in. */
#ifndef ATT_MODEL_FORMAT_GGUF_H
#define ATT_MODEL_FORMAT_GGUF_H

#include "model/builtin.h"
#include "model/checkpoint.h"

/* `file` is model.gguf of the built-in `model`. */
att_status att_gguf_model_builtin(att_checkpoint *out, att_runtime *runtime,
                                  const att_builtin_model *model, const att_builtin_file *file);

#endif
