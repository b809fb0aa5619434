/* A family of models, as it appears in files: how its settings read and what
 * its tensors are called. What differs between families when they run is in
 * att_config alone. archs.inc has one row per family. */
#ifndef ATT_MODEL_ARCH_H
#define ATT_MODEL_ARCH_H

#include "model/settings.h"
#include "model/weights.h"

/* What a weight is called in Hugging Face files; {l} is the layer. A fused
 * tensor holds `parts` weights one after the other, of which this is `part`. */
typedef struct att_stored_name {
  const char *name;  /* NULL: this family has no such weight */
  const char *other; /* or called so, in older files or in a variant of the family */
  bool transposed;   /* stored [in, out] */
  int part, parts;   /* parts 0: not fused */
} att_stored_name;

typedef bool att_has_slot_fn(const void *file, att_slot slot);

typedef struct att_arch {
  const char *name;           /* "model_type" of config.json */
  const char *class_name;     /* the entry of "architectures" that we run */
  const char *const *others;  /* further entries; NULL-ended, or NULL */
  const char *prefix;         /* that names may also lack */
  const char *const *ignored; /* stored buffers that carry nothing; NULL-ended */
  att_stored_name names[ATT_SLOT_COUNT];
  /* Fills an initialised configuration. */
  att_status (*read)(att_config *config, att_settings *settings);
  /* Adds the parts that only the weights tell: `has` one of that slot. May be NULL. */
  void (*complete)(att_config *config, att_has_slot_fn *has, const void *file);
} att_arch;

/* The family of a config.json's root object. CORRUPT (none named), UNSUPPORTED
 * (one that we do not know; the message lists those we do). */
att_status att_arch_of_settings(const att_arch **out, const att_json_node *root, const char *where);

/* The family of that name, or NULL. */
const att_arch *att_arch_named(const char *name);

#endif
