/* A checkpoint is named tensors and a configuration: the one interface through
 * which every file format reaches a model.
 *
 * A format (formats.inc) recognises its files by content, reads the settings
 * into an att_config and finds weights by slot. What it hands out is in
 * canonical layout; a view makes that cheap, since transposing a GPT-2 matrix,
 * taking a third of a fused one or splitting interleaved rotary rows are only
 * strides. */
#ifndef ATT_MODEL_CHECKPOINT_H
#define ATT_MODEL_CHECKPOINT_H

#include "attend/model.h"
#include "model/config.h"
#include "model/weights.h"

#define ATT_MAX_END_IDS 16

typedef struct att_checkpoint {
  const char *format; /* "llama2.c" … */
  const char *family; /* "llama" … */
  const char *path;   /* or the name of a built-in */
  att_config config;
  int n_end_ids; /* ids that end a text by the model's own settings */
  int32_t end_ids[ATT_MAX_END_IDS];

  /* The weight of `slot` in `layer`: a view whose elements in row-major order
   * are [rows, columns] in canonical layout (its own shape may have more
   * dimensions). Borrowed from the checkpoint. NOT_FOUND, BAD_SHAPE and so on
   * with the tensor's own name in the message. */
  att_status (*find)(att_view *out, const struct att_checkpoint *checkpoint, att_slot slot,
                     int64_t layer, int64_t rows, int64_t columns);

  /* Whether the file keeps w where 1 + w is meant, as Gemma's norms; NULL: never. */
  bool (*lacks_one)(const struct att_checkpoint *checkpoint, att_slot slot);

  /* Opens the tokenizer that belongs to it. */
  att_status (*open_tokenizer)(att_tokenizer **out, const struct att_checkpoint *checkpoint);

  /* Gives the memory of the file's pages back; they are read again when needed. NULL:
   * there is no file behind it. */
  void (*forget)(const struct att_checkpoint *checkpoint);

  void (*close)(struct att_checkpoint *checkpoint);
  att_runtime *runtime;
  void *file; /* the format's own */
} att_checkpoint;

/* The elements of a found view, in canonical layout, as f32. */
att_status att_slot_read(float *out, const att_checkpoint *checkpoint, att_slot slot,
                         const att_view *view);

/* What a format is told to recognise its files by. */
typedef struct att_probe {
  const char *path;
  bool folder;
  const unsigned char *head; /* the first bytes of a file */
  size_t head_bytes;         /* at most 64 */
  size_t file_bytes;
} att_probe;

typedef struct att_format {
  const char *name;
  bool (*is)(const att_probe *probe);
  att_status (*open)(att_checkpoint *out, att_runtime *runtime, const char *path);
} att_format;

/* Finds the format of `path` by content and opens it; where nothing is there, a built-in
 * model of that name. The caller closes with att_checkpoint_close. */
att_status att_checkpoint_open(att_checkpoint *out, att_runtime *runtime, const char *path);
/* The same for a model that is compiled in; NULL is the first. NOT_FOUND with
 * the names there are. */
att_status att_checkpoint_open_builtin(att_checkpoint *out, att_runtime *runtime, const char *name);
void att_checkpoint_close(att_checkpoint *checkpoint);

/* Rows [heads * dim, columns] in which the two numbers of a rotary pair are
 * neighbours, seen in half-split order: [heads, 2, dim/2, columns]. */
att_view att_split_pairs(att_view rows, int64_t heads, int64_t dim);

#endif
