/* Names that hold a layer: "blocks.{l}.attn.hook_q" stands for one per layer. */
#ifndef ATT_MODEL_LAYER_NAME_H
#define ATT_MODEL_LAYER_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes a pattern with its layer into `out`; false if it does not fit. */
bool att_layer_name_write(char *out, size_t bytes, const char *pattern, int64_t layer);

/* True if `name` is the pattern with some layer, then written to *layer (-1 if
 * the pattern has none). */
bool att_layer_name_matches(int64_t *layer, const char *pattern, const char *name);

#endif
