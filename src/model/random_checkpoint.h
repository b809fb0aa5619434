/* A checkpoint that is not in a file: its weights are drawn when asked for. */
#ifndef ATT_MODEL_RANDOM_CHECKPOINT_H
#define ATT_MODEL_RANDOM_CHECKPOINT_H

#include "attend/convert.h"
#include "model/checkpoint.h"

/* Sizes that are 0 in `options` get the usual values; options->vocab is not.
 * UNSUPPORTED (the family), BAD_ARGUMENT, OUT_OF_MEMORY. */
att_status att_random_checkpoint(att_checkpoint *out, att_runtime *runtime, const char *name,
                                 const att_init_options *options);

#endif
