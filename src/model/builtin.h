/* Models that are compiled in: the files of a model folder as bytes, in memory
 * of the program itself. models/builtin.cmake says which, models/embed.cmake
 * turns them into C. */
#ifndef ATT_MODEL_BUILTIN_H
#define ATT_MODEL_BUILTIN_H

#include <stddef.h>

#include "attend/tokenizer.h"

typedef struct att_builtin_file {
  const char *name; /* "config.json" */
  const unsigned char *bytes;
  size_t size;
} att_builtin_file;

typedef struct att_builtin_model {
  const char *name;
  int n_files;
  const att_builtin_file *files;
} att_builtin_model;

/* The first is the default. */
extern const att_builtin_model att_builtin_models[];
extern const int att_builtin_count;

/* A file of a model by name, or NULL. */
const att_builtin_file *att_builtin_find(const att_builtin_model *model, const char *name);

/* By its name, the default one for NULL; NULL if there is none. */
const att_builtin_model *att_builtin_model_find(const char *name);

/* The one that a path means: the default for NULL, else of that name where no file or
 * folder is; NULL otherwise. */
const att_builtin_model *att_builtin_meant(const char *path);

/* "story, hand, …" for whoever wanted another name; those of checkpoints ("induction@7")
 * only if that one is of a checkpoint, too. */
enum { ATT_BUILTIN_NAMES = 1024 };
void att_builtin_names(char out[ATT_BUILTIN_NAMES], const char *wanted);

/* The tokenizer in its tokenizer.json or words.txt. */
att_status att_builtin_tokenizer(att_tokenizer **out, att_runtime *runtime,
                                 const att_builtin_model *model);

#endif
