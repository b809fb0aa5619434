/* att_convert and att_init_model: a checkpoint from somewhere, a tokenizer from
 * somewhere, and the writer that the target's name asks for. */
#include "attend/convert.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "model/export.h"
#include "model/random_checkpoint.h"
#include "tensor/quantize.h"

static att_status read_dtype(int *out, const char *name) {
  att_dtype dtype;
  *out = ATT_KEEP_DTYPE;
  if (!name) return ATT_OK;
  ATT_TRY(att_dtype_from_name(&dtype, name));
  *out = (int)dtype;
  if (dtype == ATT_F32 || dtype == ATT_F16 || dtype == ATT_BF16 || att_dtype_is_written(dtype))
    return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT,
                  "weights cannot be written as %s; f32, f16, bf16, q8_0, q4_0, q4_K or q6_K",
                  name);
}

/* Who names a file of another format does not want a folder of that name. */
static att_status check_ending(const char *path) {
  static const char *const others[] = {".bin", ".safetensors", ".npz",  ".npy",
                                       ".pt",  ".pth",         ".onnx", ".ggml"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (att_path_ends_with(path, others[i]))
      return att_fail(ATT_UNSUPPORTED,
                      "%s: attend writes .gguf files and Hugging Face directories, not %s", path,
                      others[i]);
  return ATT_OK;
}

static att_status write_model(const att_export *e) {
  return att_path_ends_with(e->path, ".gguf") ? att_export_gguf(e) : att_export_huggingface(e);
}

/* ---- converting ---- */

void att_convert_options_init(att_convert_options *options) {
  if (options) *options = (att_convert_options){.struct_size = sizeof *options};
}

/* A model may come without a tokenizer; a given path must hold one. */
static att_status open_tokenizer(att_tokenizer **out, const att_checkpoint *source,
                                 const att_convert_options *options) {
  *out = NULL;
  if (options->without_tokenizer) return ATT_OK;
  if (options->tokenizer_path)
    return att_tokenizer_open(out, source->runtime, options->tokenizer_path, source->config.vocab);
  att_status status = source->open_tokenizer(out, source);
  if (status != ATT_NOT_FOUND) return status;
  att_log(source->runtime, ATT_LOG_WARNING, "%s; none is written", att_message());
  *out = NULL;
  return ATT_OK;
}

/* The folder whose tokenizer a folder is to have, or NULL. */
static const char *tokenizer_folder(const att_export *e, const att_convert_options *options) {
  const char *path = options->tokenizer_path ? options->tokenizer_path : e->source->path;
  return !att_path_ends_with(e->path, ".gguf") && att_path_is_folder(path) ? path : NULL;
}

static att_status convert(att_export *e, const att_convert_options *options) {
  att_tokenizer *tokenizer;
  att_tokenizer_copy copy;
  ATT_TRY(open_tokenizer(&tokenizer, e->source, options));
  if (!tokenizer) return write_model(e);
  e->tokenizer_folder = tokenizer_folder(e, options);
  att_status status = att_tokenizer_store(&copy, tokenizer, e->source->config.vocab);
  att_tokenizer_free(tokenizer);
  if (status == ATT_UNSUPPORTED && e->tokenizer_folder) return write_model(e);
  ATT_TRY(status);
  bool kept = copy.stored.add_eos > 0; /* a token behind each text stays what it is */
  if (e->source->n_end_ids > 0 && !kept) copy.stored.eos = e->source->end_ids[0];
  e->tokenizer = &copy.stored;
  status = write_model(e);
  att_tokenizer_copy_release(&copy);
  return status;
}

/* Without what fills gaps nothing reads an output. */
static void drop_heads(att_config *config) {
  if (config->fill_head) config->tied_output = true;
  config->fill_head = config->pooler = false;
}

att_status att_convert(att_runtime *runtime, const char *source, const char *target,
                       const att_convert_options *options) {
  att_convert_options usual;
  att_convert_options_init(&usual);
  if (!options) options = &usual;
  if (!runtime || !source || !target)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    !runtime  ? "runtime"
                    : !source ? "source"
                              : "target");
  if (options->struct_size != sizeof *options)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_convert_options_init");
  int dtype;
  att_checkpoint checkpoint;
  ATT_TRY(check_ending(target));
  ATT_TRY(read_dtype(&dtype, options->dtype));
  ATT_TRY(att_checkpoint_open(&checkpoint, runtime, source));
  att_export e = {.runtime = runtime,
                  .source = &checkpoint,
                  .config = checkpoint.config,
                  .path = target,
                  .dtype = dtype,
                  .progress = options->progress,
                  .payload = options->payload};
  if (options->without_heads) drop_heads(&e.config);
  att_status status = convert(&e, options);
  att_checkpoint_close(&checkpoint);
  return status;
}

/* ---- new models ---- */

void att_init_options_init(att_init_options *options) {
  if (options) *options = (att_init_options){.struct_size = sizeof *options};
}

enum { BYTES_AND_END = 257 };

/* The arrays to write, and the vocabulary where none was asked for; *has false if
 * there is no tokenizer, and nothing to release. */
static att_status choose_tokenizer(att_tokenizer_copy *copy, bool *has, int64_t *vocab,
                                   att_runtime *runtime, const char *path) {
  att_tokenizer *tokenizer;
  if (!path) {
    if (*vocab == 0) *vocab = BYTES_AND_END;
    *has = *vocab >= BYTES_AND_END && *vocab <= INT32_MAX;
    return *has ? att_tokenizer_store_bytes(copy, runtime, *vocab) : ATT_OK;
  }
  ATT_TRY(att_tokenizer_open(&tokenizer, runtime, path, *vocab));
  if (*vocab == 0) *vocab = att_tokenizer_size(tokenizer);
  att_status status = att_tokenizer_store(copy, tokenizer, *vocab);
  att_tokenizer_free(tokenizer);
  *has = status == ATT_OK;
  return status;
}

att_status att_init_model(att_runtime *runtime, const char *target,
                          const att_init_options *options) {
  if (!runtime || !target || !options)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    !runtime  ? "runtime"
                    : !target ? "target"
                              : "options");
  if (options->struct_size != sizeof *options)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_init_options_init");
  att_init_options o = *options;
  att_tokenizer_copy copy;
  att_checkpoint checkpoint;
  bool has;
  int dtype;
  ATT_TRY(check_ending(target));
  ATT_TRY(read_dtype(&dtype, o.dtype ? o.dtype : "f32"));
  ATT_TRY(choose_tokenizer(&copy, &has, &o.vocab, runtime, o.tokenizer_path));
  att_status status = att_random_checkpoint(&checkpoint, runtime, "random weights", &o);
  if (status == ATT_OK) {
    att_export e = {.runtime = runtime,
                    .source = &checkpoint,
                    .config = checkpoint.config,
                    .tokenizer = has ? &copy.stored : NULL,
                    .path = target,
                    .dtype = dtype};
    status = write_model(&e);
    att_checkpoint_close(&checkpoint);
  }
  if (has) att_tokenizer_copy_release(&copy);
  return status;
}
