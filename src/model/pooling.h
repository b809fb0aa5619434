/* How a model's files say that one vector is made of a text. */
#ifndef ATT_MODEL_POOLING_H
#define ATT_MODEL_POOLING_H

#include "model/config.h"
#include "model/folder.h"

/* From the files that sentence-transformers keeps beside a model: modules.json, which
 * lists what follows it, and <module>/config.json. What attend does not have (the
 * largest numbers, a dense layer) is ATT_POOL_OTHER, with a warning that names it: the
 * model itself is fine. CORRUPT, OUT_OF_MEMORY. */
att_status att_pooling_read(att_config *config, att_runtime *runtime, const att_folder *folder);

/* The same files into a folder that is being made at `path`, if the files said
 * something that attend has. IO, TOO_LARGE. */
att_status att_pooling_write(const att_config *config, const att_runtime *runtime,
                             const char *path);

/* Removes the folder that it may have made there. */
void att_pooling_remove(const char *path);

/* "pooling_type" of GGUF: 0 none, 1 mean, 2 the first token. */
int att_pooling_of_gguf(int64_t type);
int64_t att_pooling_to_gguf(int pooling); /* -1: nothing to say */

#endif
