/* attend/describe.h — what a file is, without loading its weights.
 *
 * A description opens whatever att_model_open or att_archive_open read, looks at
 * headers, settings and the table of tensors, and tells what a model of it would
 * be, or why it would be refused. It touches no weight, so it is quick and small
 * for files of any size.
 */
#ifndef ATTEND_DESCRIBE_H
#define ATTEND_DESCRIBE_H

#include "attend/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_description att_description;

/* A stored tensor; `type` is its element type by the name of its format ("Q4_K" of
 * a GGUF may be one that attend does not read). Sizes in the file's own order. */
typedef struct att_stored_tensor {
  const char *name, *type;
  int ndim;
  int64_t shape[ATT_MAX_NDIM];
  int64_t numbers, bytes;
} att_stored_tensor;

/* Describes the file or folder at `path`; NULL is the default built-in model. A model that
 * would be refused is described all the same if its format is one that attend
 * knows, a folder even without its weights. NOT_FOUND, IO, UNSUPPORTED (of an unknown
 * format), CORRUPT (so that not even its tensors can be listed), OUT_OF_MEMORY. */
ATT_API att_status att_describe(att_description **out, att_runtime *runtime, const char *path);
ATT_API void att_description_free(att_description *description);

/* "gguf", "safetensors", "llama2.c", "built-in", "npy". */
ATT_API const char *att_description_format(const att_description *description);

/* The family that the file names: "llama", or "mamba", of which attend has none; NULL if it names
 * none. Borrowed. */
ATT_API const char *att_description_family(const att_description *description);

/* The model that opening would give, weight_bytes those it would take; NULL if it
 * would be refused, for the reason, one line, that refusal has (else NULL). */
ATT_API const att_model_info *att_description_model(const att_description *description);
ATT_API const char *att_description_refusal(const att_description *description);

/* The model's tokenizer, borrowed; NULL if there is none or the model is refused. */
ATT_API const att_tokenizer *att_description_tokenizer(const att_description *description);

/* Stored tensors, in the order of the file. */
ATT_API int64_t att_description_tensor_count(const att_description *description);
ATT_API bool att_description_tensor(att_stored_tensor *out, const att_description *description,
                                    int64_t index);

/* Bytes of keys and values of a session of `context` positions (0: the model's own
 * limit) whose cache holds `cache_dtype`, with as many of the text that a decoder looks
 * at; 0 of an encoder, which keeps none, or if the model is refused. */
ATT_API int64_t att_description_cache_bytes(const att_description *description, int64_t context,
                                            att_dtype cache_dtype);

#ifdef __cplusplus
}
#endif
#endif
