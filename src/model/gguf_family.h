/* A family of models as GGUF files have it: its "general.architecture", how the
 * keys of that name read, and where its tensors differ from the common names
 * of gguf_names.inc. */
#ifndef ATT_MODEL_GGUF_FAMILY_H
#define ATT_MODEL_GGUF_FAMILY_H

#include "model/config.h"
#include "model/gguf_keys.h"
#include "model/weights.h"

typedef struct att_gguf_family {
  const char *name;
  bool pairs_adjacent; /* the numbers of a rotary pair are neighbours in Wq and Wk */
  bool fused;          /* attn_qkv instead of attn_q, attn_k and attn_v */
  /* Fills all of an initialised configuration but vocab and tied_output. */
  att_status (*read)(att_config *config, att_gguf_keys *keys);
  /* What of a configuration GGUF cannot say of this family; NULL if nothing. */
  const char *(*lacks)(const att_config *config);
} att_gguf_family;

/* UNSUPPORTED, with the families there are. `where` begins the message. */
att_status att_gguf_family_find(const att_gguf_family **out, att_gguf_text name, const char *where);

/* The pattern of a weight's name, {l} for the layer. If fused, *part (0 … 2) of
 * three is meant; else *part is -1. */
const char *att_gguf_slot_name(int *part, const att_gguf_family *family, att_slot slot);

#endif
