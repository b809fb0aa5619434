/* Inside of an att_model. Nothing in it changes after opening. */
#ifndef ATT_MODEL_MODEL_H
#define ATT_MODEL_MODEL_H

#include "attend/model.h"
#include "model/checkpoint.h"

struct att_model {
  att_runtime *runtime;
  att_config config;
  att_model_weights weights;
  att_tokenizer *tokenizer; /* or NULL */
  int n_end_ids;
  int32_t end_ids[ATT_MAX_END_IDS];
  char *name; /* owned; info.name */
  att_model_info info;
};

/* Builds a model from a checkpoint, which it closes in any case. Errors as
 * att_model_open. */
att_status att_model_create(att_model **out, att_checkpoint *checkpoint,
                            const att_open_options *options);

/* What a checkpoint's model is; strings are borrowed. */
att_model_info att_checkpoint_info(const att_checkpoint *checkpoint, const char *name,
                                   const att_weights_summary *summary);

#endif
