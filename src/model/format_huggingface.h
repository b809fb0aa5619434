/* Opening a Hugging Face folder that may also be compiled in. */
#ifndef ATT_MODEL_FORMAT_HUGGINGFACE_H
#define ATT_MODEL_FORMAT_HUGGINGFACE_H

#include "model/checkpoint.h"
#include "model/folder.h"

att_status att_huggingface_open(att_checkpoint *out, att_runtime *runtime,
                                const att_folder *folder);

#endif
