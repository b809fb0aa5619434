/* A family of models, as it appears in files: how its settings read and are
 * written, what its tensors are called, and the same for GGUF. What differs
 * between families when they run is in att_config alone. archs.inc has one row
 * per family. */
#ifndef ATT_MODEL_ARCH_H
#define ATT_MODEL_ARCH_H

#include "model/config_write.h"
#include "model/gguf_family.h"
#include "model/settings.h"
#include "model/stored.h"

typedef bool att_has_slot_fn(const void *file, att_slot slot);

typedef struct att_arch {
  const char *name;                      /* "model_type" of config.json */
  const char *class_name;                /* the entry of "architectures" that we run */
  const char *const *others;             /* further entries; NULL-ended, or NULL */
  const char *headless;                  /* the entry of an encoder without a head, whose names
                                            lack the prefix; NULL: there is none */
  const char *prefix;                    /* that names may also lack */
  const char *const *ignored;            /* stored buffers that carry nothing; NULL-ended */
  att_stored_name names[ATT_SLOT_COUNT]; /* in Hugging Face files */
  /* Fills an initialised configuration. */
  att_status (*read)(att_config *config, att_settings *settings);
  /* Adds the parts that only the weights tell: `has` one of that slot. May be NULL. */
  void (*complete)(att_config *config, att_has_slot_fn *has, const void *file);
  /* The settings that read takes, but for vocabulary, ids and a tied output. */
  void (*write)(att_config_writer *writer, const att_config *config);
  /* What of a configuration config.json cannot say of this family; NULL if nothing. */
  const char *(*lacks)(const att_config *config);
  bool tied_is_scaled;         /* logits of a tied output are times 1/sqrt(width), of others not */
  const att_gguf_family *gguf; /* NULL: GGUF has none of it */
} att_arch;

/* The family of a config.json's root object. CORRUPT (none named), UNSUPPORTED
 * (one that we do not know; the message lists those we do). */
att_status att_arch_of_settings(const att_arch **out, const att_json_node *root, const char *where);

/* The family of that name, or NULL; the first of a GGUF name; the one of that
 * number, or NULL behind the last. */
const att_arch *att_arch_named(const char *name);
const att_arch *att_arch_of_gguf(att_gguf_text name);
const att_arch *att_arch_at(int index);

#endif
