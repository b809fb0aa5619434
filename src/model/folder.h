/* The files of a model folder, on disk or compiled in. */
#ifndef ATT_MODEL_FOLDER_H
#define ATT_MODEL_FOLDER_H

#include "attend/archive.h"
#include "base/file.h"
#include "base/json.h"
#include "model/builtin.h"

#define ATT_PATH_BYTES 4096

/* What to do with a PyTorch pickle. */
#define ATT_CONVERT_HINT                                                                           \
  "convert it where it comes from: model.save_pretrained(folder, safe_serialization=True)"

typedef struct att_folder {
  const char *path;                 /* for messages too; without a last slash */
  const att_builtin_model *builtin; /* NULL: on disk */
} att_folder;

bool att_folder_has(const att_folder *folder, const char *name);

/* Writes "path/name" into `out`. TOO_LARGE. */
att_status att_folder_join(char *out, size_t bytes, const att_folder *folder, const char *name);

/* Parses a JSON file of it. NOT_FOUND … */
att_status att_folder_json(att_json **out, const att_runtime *runtime, const att_folder *folder,
                           const char *name);

/* Opens its weights: model.safetensors, or the index of its shards. */
att_status att_folder_archive(att_archive **out, att_runtime *runtime, const att_folder *folder);

#endif
