/* Reading the keys of a GGUF file without guessing, as settings.h does for
 * config.json: a wrong type is refused with file and key, and so is, at the
 * end, every key "<family>.…" that nobody asked for and that is switched on. */
#ifndef ATT_MODEL_GGUF_KEYS_H
#define ATT_MODEL_GGUF_KEYS_H

#include "io/gguf.h"
#include "model/config.h"

typedef struct att_gguf_keys {
  const att_gguf *file;
  const att_runtime *runtime;
  const char *family; /* begins the keys below, with a dot behind it */
  bool *asked;        /* [att_gguf_count(file)] */
} att_gguf_keys;

att_status att_gguf_keys_open(att_gguf_keys *out, const att_runtime *runtime, const att_gguf *file,
                              const char *family);
void att_gguf_keys_close(att_gguf_keys *keys);
/* UNSUPPORTED, with the first key of the family that is left. */
att_status att_gguf_keys_finish(const att_gguf_keys *keys);

/* Each writes *out only if the key is there; CORRUPT if it is not though
 * `needed`, or is of another type. A size is from 1 to 2^31-1. */
att_status att_gguf_key_size(int64_t *out, att_gguf_keys *keys, const char *key, bool needed);
att_status att_gguf_key_id(int64_t *out, att_gguf_keys *keys, const char *key); /* from 0 on */
/* A size that may be 0. */
att_status att_gguf_key_count(int64_t *out, att_gguf_keys *keys, const char *key);
att_status att_gguf_key_number(double *out, att_gguf_keys *keys, const char *key, bool needed);
att_status att_gguf_key_bool(bool *out, att_gguf_keys *keys, const char *key);
att_status att_gguf_key_text(att_gguf_text *out, att_gguf_keys *keys, const char *key);

/* Layers that slide: a list of truths, one a layer, or a period p of which every p-th
 * layer does not (0: all do); as it was if there is no such key. */
att_status att_gguf_key_layers(att_layer_set *out, att_gguf_keys *keys, const char *key,
                               int64_t layers);

/* Marks a key as known without reading it. */
void att_gguf_key_skip(att_gguf_keys *keys, const char *key);

/* A string of any key of the file, by its whole name. */
att_status att_gguf_text_of(att_gguf_text *out, const att_gguf *file, const char *key, bool needed);

bool att_gguf_text_is(att_gguf_text text, const char *other);

#endif
