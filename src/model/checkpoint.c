/* Recognising checkpoint files by their content. */
#include "model/checkpoint.h"

#include <string.h>

#include "base/dtype.h"
#include "base/file.h"
#include "model/builtin.h"
#include "model/folder.h"
#include "tensor/quantize.h"

#define ATT_FORMAT(name, doc) extern const att_format att_format_##name;
#include "model/formats.inc"
#undef ATT_FORMAT

static const att_format *const formats[] = {
#define ATT_FORMAT(name, doc) &att_format_##name,
#include "model/formats.inc"
#undef ATT_FORMAT
};

/* Files that people try and that hold no model by themselves, or not safely. */
static att_status refuse_known(const att_probe *probe) {
  const unsigned char *head = probe->head;
  bool zip = probe->head_bytes >= 4 && !memcmp(head, "PK\3\4", 4);
  bool pickle = probe->head_bytes >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
  if (zip || pickle)
    return att_fail(ATT_UNSUPPORTED,
                    "%s is a PyTorch pickle, which can run code when opened; " ATT_CONVERT_HINT,
                    probe->path);
  bool safetensors =
      probe->head_bytes >= 10 && head[8] == '{' && (head[9] == '"' || head[9] == ' ');
  if (safetensors)
    return att_fail(ATT_UNSUPPORTED,
                    "%s is a safetensors file without the config.json that belongs to it; "
                    "give the folder that holds both",
                    probe->path);
  return ATT_OK;
}

static att_status probe_file(att_probe *out, unsigned char *head, size_t bytes, const char *path) {
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  size_t n = file.bytes < bytes ? file.bytes : bytes;
  if (n) memcpy(head, file.data, n);
  size_t size = file.bytes;
  att_file_unmap(&file);
  *out = (att_probe){.path = path, .head = head, .head_bytes = n, .file_bytes = size};
  return ATT_OK;
}

/* No file has that name. A name without a path may have been meant as a built-in model's. */
static att_status refuse_name(const char *path) {
  char known[ATT_BUILTIN_NAMES];
  att_builtin_names(known, path);
  return att_fail(ATT_NOT_FOUND, "%s: cannot open: no such file or folder; built-in models are %s",
                  path, known);
}

att_status att_checkpoint_open(att_checkpoint *out, att_runtime *runtime, const char *path) {
  unsigned char head[64] = {0};
  att_probe probe = {.path = path, .folder = true, .head = head};
  if (att_builtin_meant(path)) return att_checkpoint_open_builtin(out, runtime, path);
  if (!att_path_is_folder(path)) {
    att_status status = probe_file(&probe, head, sizeof head, path);
    if (status == ATT_NOT_FOUND && !strpbrk(path, "/.")) return refuse_name(path);
    ATT_TRY(status);
  }
  ATT_TRY(refuse_known(&probe));
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
    if (formats[f]->is(&probe)) return formats[f]->open(out, runtime, path);
  return att_fail(
      ATT_UNSUPPORTED,
      "%s: unknown format; attend reads folders with config.json and safetensors, .gguf "
      "and llama2.c .bin",
      path);
}

att_status att_slot_read(float *out, const att_checkpoint *checkpoint, att_slot slot,
                         const att_view *view) {
  att_view target = att_view_of(out, ATT_F32, view->ndim, view->shape);
  if (att_dtype_is_quantised(view->dtype))
    ATT_TRY(att_dequantize(out, view));
  else
    ATT_TRY(att_view_copy(&target, view));
  if (!checkpoint->lacks_one || !checkpoint->lacks_one(checkpoint, slot)) return ATT_OK;
  int64_t n = att_view_count(view);
  for (int64_t i = 0; i < n; i++) out[i] += 1.0f;
  return ATT_OK;
}

void att_checkpoint_close(att_checkpoint *checkpoint) { checkpoint->close(checkpoint); }

att_view att_split_pairs(att_view rows, int64_t heads, int64_t dim) {
  int64_t columns = rows.ndim > 1 ? rows.shape[1] : 1;
  int64_t step = rows.stride[0], column_step = rows.ndim > 1 ? rows.stride[1] : 1;
  return (att_view){.data = rows.data,
                    .dtype = rows.dtype,
                    .ndim = 4,
                    .shape = {heads, 2, dim / 2, columns},
                    .stride = {dim * step, step, 2 * step, column_step}};
}
