/* A family of models as GGUF files have it: its "general.architecture", how the
 * keys of that name read and are written, and where its tensors differ from the
 * common names of gguf_names.inc. Belongs to an att_arch. */
#ifndef ATT_MODEL_GGUF_FAMILY_H
#define ATT_MODEL_GGUF_FAMILY_H

#include "model/config.h"
#include "model/gguf_keys.h"
#include "model/gguf_list.h"
#include "model/stored.h"

/* A tensor that is called or fused otherwise than usual. */
typedef struct att_gguf_other {
  att_slot slot;
  att_stored_name stored;
} att_gguf_other;

#define ATT_GGUF_MOST_OTHERS 12

typedef struct att_gguf_family {
  const char *name;
  bool pairs_adjacent;       /* the numbers of a rotary pair are neighbours in Wq and Wk */
  att_activation activation; /* of decoders that have a gated network: no key says it */
  att_gguf_other others[ATT_GGUF_MOST_OTHERS]; /* up to the first without a name */
  /* What the query weights in the file are multiplied by, since no key says the scale
   * of scores; NULL: 1. */
  double (*query_factor)(const att_config *config);
  double scale; /* of the scores; 0: the usual 1/sqrt(head_dim) */
  /* Fills all of an initialised configuration but vocab and tied_output. */
  att_status (*read)(att_config *config, att_gguf_keys *keys);
  void (*write)(att_gguf_list *list, const att_config *config);
  /* What of a configuration GGUF cannot say of this family; NULL if nothing. */
  const char *(*lacks)(const att_config *config);
} att_gguf_family;

/* attn_qkv instead of attn_q, attn_k and attn_v. */
#define ATT_GGUF_QKV(end, n)                                                                       \
  { .name = "blk.{l}.attn_qkv." end, .fusion = ATT_FUSED_ENDS, .part = n, .parts = 3 }
#define ATT_GGUF_FUSED_QKV                                                                         \
  {ATT_SLOT_Q_W, ATT_GGUF_QKV("weight", 0)}, {ATT_SLOT_K_W, ATT_GGUF_QKV("weight", 1)}, {          \
    ATT_SLOT_V_W, ATT_GGUF_QKV("weight", 2)                                                        \
  }
#define ATT_GGUF_FUSED_QKV_BIAS                                                                    \
  {ATT_SLOT_Q_B, ATT_GGUF_QKV("bias", 0)}, {ATT_SLOT_K_B, ATT_GGUF_QKV("bias", 1)}, {              \
    ATT_SLOT_V_B, ATT_GGUF_QKV("bias", 2)                                                          \
  }

/* How the family's files keep a slot; its name is NULL if GGUF has no such tensor. */
att_stored_name att_gguf_stored(const att_gguf_family *family, att_slot slot);

/* llama's, which mistral's files are of too. */
extern const att_gguf_family att_gguf_llama;

/* bert's, which those of its likes are of too. */
extern const att_gguf_family att_gguf_bert;

#endif
