/* Writing the settings of a config.json, each on a line of its own. */
#ifndef ATT_MODEL_CONFIG_WRITE_H
#define ATT_MODEL_CONFIG_WRITE_H

#include <stdio.h>

#include "base/runtime.h"
#include "model/config.h"

struct att_checkpoint;

typedef struct att_config_writer {
  FILE *file;
  const att_runtime *runtime;
  const struct att_checkpoint *source; /* for what a configuration does not hold itself */
} att_config_writer;

void att_put_size(att_config_writer *w, const char *key, int64_t value);
/* The shortest decimal that reads back as the same f32, whatever the locale. */
void att_put_number(att_config_writer *w, const char *key, double value);
void att_put_bool(att_config_writer *w, const char *key, bool value);
void att_put_text(att_config_writer *w, const char *key, const char *value);
void att_put_null(att_config_writer *w, const char *key);

/* "rope_scaling" of every kind that a config.json can say. */
void att_put_rope_scaling(att_config_writer *w, const att_rope *rope);

/* A list of 0 and 1, a layer's being `member` if it is in the set. */
void att_put_flags(att_config_writer *w, const char *key, const att_layer_set *set, int64_t layers,
                   bool member);

/* "layer_types", by which layers slide. */
void att_put_layer_types(att_config_writer *w, const att_config *config);

#endif
