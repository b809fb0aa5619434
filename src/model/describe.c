/* Describing files: the checkpoint that opening would read, or what of it can be
 * read at all, and its table of tensors. */
#include "attend/describe.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/float_mode.h"
#include "io/gguf.h"
#include "model/folder.h"
#include "model/gguf_keys.h"
#include "model/model.h"

struct att_description {
  att_runtime *runtime;
  const char *format;
  char family[64], refusal[512], name[128];
  bool accepted;
  att_checkpoint checkpoint; /* if accepted */
  att_model_info info;
  att_tokenizer *tokenizer;
  att_gguf *gguf; /* one of the two lists tensors; neither: slots of the checkpoint */
  att_archive *archive;
};

/* ---- tables of tensors ---- */

static void name_family(att_description *d, const att_folder *folder) {
  att_json *json;
  if (att_folder_json(&json, d->runtime, folder, "config.json") != ATT_OK) return;
  const att_json_node *type = att_json_member(att_json_root(json), "model_type");
  if (type && type->type == ATT_JSON_STRING)
    snprintf(d->family, sizeof d->family, "%s", type->text);
  att_json_free(json);
}

/* Without its weights, or a shard of them, a folder still says what it is of. */
static att_status list_folder(att_description *d, const char *path) {
  att_folder folder = {.path = path};
  d->format = "safetensors";
  name_family(d, &folder);
  att_status status = att_folder_archive(&d->archive, d->runtime, &folder);
  return status == ATT_NOT_FOUND && *d->family ? ATT_OK : status;
}

static att_status list_gguf(att_description *d, const char *path) {
  att_gguf_text family = {"", 0};
  d->format = "gguf";
  ATT_TRY(att_gguf_open(&d->gguf, d->runtime, path));
  if (att_gguf_text_of(&family, d->gguf, "general.architecture", false) == ATT_OK)
    snprintf(d->family, sizeof d->family, "%.*s", (int)family.n, family.bytes);
  return ATT_OK;
}

static bool is_called_safetensors(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot && !strcmp(dot, ".safetensors");
}

/* What begins like a GGUF is listed as one; all else is an archive or nothing. The
 * format is set once it is certain, before a fault is found. */
static att_status list_file(att_description *d, const char *path) {
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  bool gguf = file.bytes >= 4 && !memcmp(file.data, "GGUF", 4);
  bool npy = file.bytes >= 6 && !memcmp(file.data, "\x93NUMPY", 6);
  bool safetensors = (file.bytes > 8 && file.data[8] == '{') || is_called_safetensors(path);
  att_file_unmap(&file);
  if (gguf) return list_gguf(d, path);
  if (npy || safetensors) d->format = npy ? "npy" : "safetensors";
  ATT_TRY(att_archive_open(&d->archive, d->runtime, path));
  d->format = npy ? "npy" : "safetensors";
  return ATT_OK;
}

/* ---- opening ---- */

static void refuse(att_description *d) {
  snprintf(d->refusal, sizeof d->refusal, "%s", att_message());
}

static void name_after(char *name, size_t bytes, const char *path) {
  size_t end = strlen(path);
  while (end > 1 && path[end - 1] == '/') end--;
  size_t begin = end;
  while (begin && path[begin - 1] != '/') begin--;
  snprintf(name, bytes, "%.*s", (int)(end - begin), path + begin);
}

/* Everything that opening the model would check, short of copying weights. */
static att_status accept(att_description *d, const char *path) {
  att_weights_summary summary;
  ATT_TRY(path ? att_checkpoint_open(&d->checkpoint, d->runtime, path)
               : att_checkpoint_open_builtin(&d->checkpoint, d->runtime, NULL));
  d->accepted = true;
  d->format = d->checkpoint.format;
  snprintf(d->family, sizeof d->family, "%s", d->checkpoint.family);
  name_after(d->name, sizeof d->name, d->checkpoint.path);
  ATT_TRY(att_weights_survey(&summary, &d->checkpoint));
  d->info = att_checkpoint_info(&d->checkpoint, d->name, &summary);
  att_status status = d->checkpoint.open_tokenizer(&d->tokenizer, &d->checkpoint);
  if (status != ATT_OK) d->tokenizer = NULL;
  return status == ATT_NOT_FOUND ? ATT_OK : status;
}

static att_status describe(att_description *d, const char *path) {
  att_status status = accept(d, path);
  bool folder = path && att_path_is_folder(path);
  if (status == ATT_OUT_OF_MEMORY || status == ATT_IO) return status;
  if (status == ATT_NOT_FOUND && !folder) return status; /* in a folder a part may be missing */
  if (status != ATT_OK) refuse(d);
  if (att_builtin_meant(path) || (d->accepted && !strcmp(d->format, "llama2.c"))) return ATT_OK;
  att_status listed = folder ? list_folder(d, path) : list_file(d, path);
  if (listed == ATT_OK || status == ATT_OK) return ATT_OK;
  if (d->format && !folder) return listed;   /* the parser knows best what is wrong */
  return att_fail(status, "%s", d->refusal); /* nothing to tell but that */
}

att_status att_describe(att_description **out, att_runtime *runtime, const char *path) {
  if (!out || !runtime) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", out ? "runtime" : "out");
  att_description *d;
  ATT_TRY(att_alloc((void **)&d, runtime, 1, sizeof *d, "a description"));
  d->runtime = runtime;
  uint64_t mode = att_float_mode_enter();
  att_status status = describe(d, path);
  att_float_mode_leave(mode);
  if (status == ATT_OK)
    *out = d;
  else
    att_description_free(d);
  return status;
}

void att_description_free(att_description *d) {
  if (!d) return;
  att_tokenizer_free(d->tokenizer);
  att_gguf_close(d->gguf);
  att_archive_close(d->archive);
  if (d->accepted) att_checkpoint_close(&d->checkpoint);
  att_release(d->runtime, d, 1, sizeof *d);
}

/* ---- what it says ---- */

const char *att_description_format(const att_description *d) { return d ? d->format : NULL; }

const char *att_description_family(const att_description *d) {
  return d && *d->family ? d->family : NULL;
}

const char *att_description_refusal(const att_description *d) {
  return d && *d->refusal ? d->refusal : NULL;
}

const att_model_info *att_description_model(const att_description *d) {
  return d && !*d->refusal ? &d->info : NULL;
}

const att_tokenizer *att_description_tokenizer(const att_description *d) {
  return d && !*d->refusal ? d->tokenizer : NULL;
}

static bool of_gguf(att_stored_tensor *out, const att_gguf *gguf, int64_t index) {
  const att_gguf_tensor *t = att_gguf_tensor_at(gguf, index);
  *out = (att_stored_tensor){.name = t->name, .type = t->type, .ndim = t->view.ndim, .numbers = 1};
  for (int i = 0; i < t->view.ndim; i++) {
    out->shape[i] = t->view.shape[i];
    out->numbers *= t->view.shape[i];
  }
  out->bytes = t->bytes;
  return true;
}

static void take_view(att_stored_tensor *out, const char *name, const att_view *view) {
  *out = (att_stored_tensor){.name = name,
                             .type = att_dtype_name(view->dtype),
                             .ndim = view->ndim,
                             .numbers = att_view_count(view)};
  memcpy(out->shape, view->shape, sizeof out->shape);
  out->bytes = out->numbers / att_dtype_block(view->dtype) * att_dtype_bytes(view->dtype);
}

static bool of_archive(att_stored_tensor *out, const att_archive *archive, int64_t index) {
  att_view view;
  const char *name = att_archive_name(archive, index);
  if (att_archive_get(&view, archive, name) == ATT_OK)
    take_view(out, name, &view);
  else
    *out = (att_stored_tensor){.name = name, .type = "unknown"};
  return true;
}

/* A file without a table: what the model has, layer by layer as a file would. */
static bool of_slots(att_stored_tensor *out, const att_description *d, int64_t index) {
  const att_config *c = &d->checkpoint.config;
  for (int64_t layer = -1; layer < c->layers; layer++)
    for (att_slot slot = 0; slot < ATT_SLOT_COUNT; slot++) {
      bool here = (att_slots[slot].owner != ATT_OWNER_MODEL) == (layer >= 0);
      bool stored = slot == ATT_SLOT_TOKENS ||
                    (att_slot_exists(c, slot) && !(slot == ATT_SLOT_OUTPUT && c->tied_output));
      if (!here || !stored || index-- > 0) continue;
      att_view view;
      int64_t rows = att_config_size(c, att_slots[slot].rows);
      int64_t columns = att_config_size(c, att_slots[slot].columns);
      if (d->checkpoint.find(&view, &d->checkpoint, slot, layer, rows, columns) != ATT_OK)
        return false;
      int64_t shape[2] = {rows, columns};
      att_view plain = att_view_of(view.data, view.dtype, columns > 1 ? 2 : 1, shape);
      take_view(out, att_slots[slot].name, &plain);
      return true;
    }
  return false;
}

int64_t att_description_tensor_count(const att_description *d) {
  if (!d) return 0;
  if (d->gguf) return att_gguf_tensor_count(d->gguf);
  if (d->archive) return att_archive_count(d->archive);
  att_stored_tensor tensor;
  int64_t n = 0;
  while (d->accepted && of_slots(&tensor, d, n)) n++;
  return n;
}

bool att_description_tensor(att_stored_tensor *out, const att_description *d, int64_t index) {
  if (!out || !d || index < 0) return false;
  if (d->gguf) return index < att_gguf_tensor_count(d->gguf) && of_gguf(out, d->gguf, index);
  if (d->archive)
    return index < att_archive_count(d->archive) && of_archive(out, d->archive, index);
  return d->accepted && of_slots(out, d, index);
}

int64_t att_description_cache_bytes(const att_description *d, int64_t context, att_dtype dtype) {
  const att_model_info *info = att_description_model(d);
  if (!info || context < 0 || info->kind == ATT_MODEL_ENCODER) return 0;
  int64_t positions = context ? context : info->context, bytes;
  bool fits = att_mul_checked(&bytes, positions, 2 * info->layers) &&
              att_mul_checked(&bytes, bytes, info->kv_heads * info->head_dim) &&
              att_mul_checked(&bytes, bytes, info->encoder_layers ? 2 : 1) &&
              att_mul_checked(&bytes, bytes, att_dtype_bytes(dtype));
  return fits ? bytes : INT64_MAX;
}
