/* The keys of a GGUF file to be written, gathered one by one. */
#ifndef ATT_MODEL_GGUF_LIST_H
#define ATT_MODEL_GGUF_LIST_H

#include "io/gguf.h"
#include "model/config.h"

enum { ATT_GGUF_MOST_KEYS = 64, ATT_GGUF_KEY_BYTES = 64 };

/* Entries and what they point to. */
typedef struct att_gguf_list {
  const char *family; /* begins the names of the family's own keys */
  int n;
  att_gguf_entry entries[ATT_GGUF_MOST_KEYS];
  char names[ATT_GGUF_MOST_KEYS][ATT_GGUF_KEY_BYTES];
  union {
    uint32_t u32;
    float f32;
    bool truth;
    att_gguf_text text;
  } values[ATT_GGUF_MOST_KEYS];
  bool flags[ATT_MOST_LAYERS]; /* of att_gguf_add_flags, once in a list */
} att_gguf_list;

/* "family.key" */
void att_gguf_add_size(att_gguf_list *list, const char *key, int64_t value);
void att_gguf_add_number(att_gguf_list *list, const char *key, double value);
void att_gguf_add_bool(att_gguf_list *list, const char *key, bool value);
void att_gguf_add_name(att_gguf_list *list, const char *key, const char *value);
/* For each layer whether it is in the set. */
void att_gguf_add_flags(att_gguf_list *list, const char *key, const att_layer_set *set,
                        int64_t layers);

/* A key by its whole name; count -1: one value, no array. */
void att_gguf_add(att_gguf_list *list, const char *name, att_gguf_type type, int64_t count,
                  const void *data);
void att_gguf_add_u32(att_gguf_list *list, const char *name, int64_t value);
void att_gguf_add_truth(att_gguf_list *list, const char *name, bool value);
void att_gguf_add_text(att_gguf_list *list, const char *name, att_gguf_text text);

#endif
