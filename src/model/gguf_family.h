/* A family of models as GGUF files have it: its "general.architecture", how the
 * keys of that name read, and where its tensors differ from the common names
 * of gguf_names.inc. */
#ifndef ATT_MODEL_GGUF_FAMILY_H
#define ATT_MODEL_GGUF_FAMILY_H

#include "model/config.h"
#include "model/gguf_keys.h"
#include "model/weights.h"

/* A tensor that is called otherwise than usual. */
typedef struct att_gguf_other {
  att_slot slot;
  struct {
    const char *name;
  } stored;
} att_gguf_other;

#define ATT_GGUF_MOST_OTHERS 12

typedef struct att_gguf_family {
  const char *name;
  bool pairs_adjacent; /* the numbers of a rotary pair are neighbours in Wq and Wk */
  bool fused;          /* attn_qkv instead of attn_q, attn_k and attn_v */
  att_gguf_other others[ATT_GGUF_MOST_OTHERS]; /* up to the first without a name */
  /* Fills all of an initialised configuration but vocab and tied_output. */
  att_status (*read)(att_config *config, att_gguf_keys *keys);
  /* What of a configuration GGUF cannot say of this family; NULL if nothing. */
  const char *(*lacks)(const att_config *config);
} att_gguf_family;

/* Sizes that every family states. */
att_status att_gguf_sizes(att_config *config, att_gguf_keys *keys);

extern const att_gguf_family att_gguf_bert, att_gguf_t5;

/* UNSUPPORTED, with the families there are. `where` begins the message. */
att_status att_gguf_family_find(const att_gguf_family **out, att_gguf_text name, const char *where);

/* The pattern of a weight's name, {l} for the layer. If fused, *part (0 … 2) of
 * three is meant; else *part is -1. */
const char *att_gguf_slot_name(int *part, const att_gguf_family *family, att_slot slot);

#endif
