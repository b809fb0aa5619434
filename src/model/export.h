/* Writing a checkpoint in another format: weights come in canonical layout from
 * wherever they are (checkpoint.h), settings from the configuration, the
 * tokenizer as arrays (text/load_gguf.h). */
#ifndef ATT_MODEL_EXPORT_H
#define ATT_MODEL_EXPORT_H

#include "base/folder.h"
#include "model/checkpoint.h"
#include "text/load_gguf.h"

#define ATT_KEEP_DTYPE (-1)

typedef struct att_export {
  att_runtime *runtime;
  const att_checkpoint *source;
  att_config config; /* what is written: the source's, but for what is left out */
  const att_stored_tokenizer *tokenizer; /* NULL: none */
  const char *tokenizer_folder;          /* whose files a folder gets as they are; or NULL */
  const char *path;                      /* of the file or folder to be */
  int dtype;                             /* of matrices; ATT_KEEP_DTYPE: as stored */
  att_progress_fn *progress;             /* may be NULL */
  void *payload;
} att_export;

/* A .gguf file; a folder with config.json, model.safetensors and tokenizer.json.
 * Either appears only when complete. UNSUPPORTED where the format cannot say
 * what the model is; else as att_convert. */
att_status att_export_gguf(const att_export *export);
att_status att_export_huggingface(const att_export *export);

/* The files of such a folder into one that is being made. */
att_status att_export_huggingface_files(const att_export *e, const att_folder_writer *folder);

/* One weight, canonical [rows, columns] f32, into out[rows * columns]; *stored is
 * the type it had. An output that the source ties is its embedding. */
att_status att_export_weight(float *out, att_dtype *stored, const att_checkpoint *source,
                             att_slot slot, int64_t layer, int64_t rows, int64_t columns);

/* True if the export stores the slot, in that layer (-1: the model's own): a tied
 * output is stored as the embedding. Layers are counted to the taller stack's. */
bool att_export_has(const att_config *config, att_slot slot);
bool att_export_has_in(const att_config *config, att_slot slot, int64_t layer);
int64_t att_export_layers(const att_config *config);

/* Reports done / total; CANCELLED if the caller wants no more. */
att_status att_export_report(const att_export *export, int64_t done, int64_t total);

#endif
