/* llama2.c .bin as a checkpoint: the Llama family with fixed settings (rotary
 * base 10000, epsilon 1e-5, no biases), rotary pairs side by side. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "io/llama2c.h"
#include "model/checkpoint.h"
#include "model/folder.h"

typedef struct llama2c_file {
  att_llama2c data;
  char *path;
} llama2c_file;

/* Files of this name are told what is wrong with them; others must look like one. */
static bool is_llama2c(const att_probe *probe) {
  size_t n = strlen(probe->path);
  bool named = n > 4 && !strcmp(probe->path + n - 4, ".bin");
  return !probe->folder &&
         (named || att_llama2c_is_likely(probe->head, probe->head_bytes, probe->file_bytes));
}

static int tensor_of(att_slot slot) {
  switch (slot) {
  case ATT_SLOT_TOKENS: return ATT_LLAMA2C_EMBEDDING;
  case ATT_SLOT_NORM1_W: return ATT_LLAMA2C_RMS_ATT;
  case ATT_SLOT_Q_W: return ATT_LLAMA2C_WQ;
  case ATT_SLOT_K_W: return ATT_LLAMA2C_WK;
  case ATT_SLOT_V_W: return ATT_LLAMA2C_WV;
  case ATT_SLOT_O_W: return ATT_LLAMA2C_WO;
  case ATT_SLOT_NORM2_W: return ATT_LLAMA2C_RMS_FFN;
  case ATT_SLOT_GATE_W: return ATT_LLAMA2C_W1;
  case ATT_SLOT_DOWN_W: return ATT_LLAMA2C_W2;
  case ATT_SLOT_UP_W: return ATT_LLAMA2C_W3;
  case ATT_SLOT_NORM_W: return ATT_LLAMA2C_RMS_FINAL;
  case ATT_SLOT_OUTPUT: return ATT_LLAMA2C_OUTPUT;
  default: return -1;
  }
}

static att_status find(att_view *out, const att_checkpoint *checkpoint, att_slot slot,
                       int64_t layer, int64_t rows, int64_t columns) {
  const llama2c_file *file = checkpoint->file;
  const att_config *config = &checkpoint->config;
  int tensor = tensor_of(slot);
  att_view view = tensor < 0 ? att_view_none() : att_llama2c_view(&file->data, tensor, layer);
  if (!view.data || att_view_count(&view) != rows * columns)
    return att_fail(ATT_INTERNAL, "%s: no %s in a llama2.c checkpoint", file->path,
                    att_slots[slot].name);
  if (slot == ATT_SLOT_Q_W) view = att_split_pairs(view, config->heads, config->head_dim);
  if (slot == ATT_SLOT_K_W) view = att_split_pairs(view, config->kv_heads, config->head_dim);
  *out = view;
  return ATT_OK;
}

/* tok<V>.bin beside the checkpoint, else tokenizer.bin. */
static att_status open_tokenizer(att_tokenizer **out, const att_checkpoint *checkpoint) {
  const char *path = ((const llama2c_file *)checkpoint->file)->path;
  const char *slash = strrchr(path, '/');
  int folder = slash ? (int)(slash + 1 - path) : 0;
  long long vocab = (long long)checkpoint->config.vocab;
  char own[ATT_PATH_BYTES], common[ATT_PATH_BYTES];
  int n = snprintf(own, sizeof own, "%.*stok%lld.bin", folder, path, vocab);
  int m = snprintf(common, sizeof common, "%.*stokenizer.bin", folder, path);
  if (n < 0 || m < 0 || (size_t)n >= sizeof own || (size_t)m >= sizeof common)
    return att_fail(ATT_TOO_LARGE, "the path %s is too long", path);
  const char *found = att_path_is_file(own) ? own : att_path_is_file(common) ? common : NULL;
  if (!found)
    return att_fail(ATT_NOT_FOUND,
                    "%s has no tokenizer beside it: neither tok%lld.bin nor "
                    "tokenizer.bin is there",
                    path, vocab);
  return att_tokenizer_open(out, checkpoint->runtime, found, checkpoint->config.vocab);
}

static void forget(const att_checkpoint *checkpoint) {
  att_file_forget(&((const llama2c_file *)checkpoint->file)->data.file);
}

static void close_file(att_checkpoint *checkpoint) {
  llama2c_file *file = checkpoint->file;
  att_llama2c_close(&file->data);
  att_release(checkpoint->runtime, file->path, (int64_t)strlen(file->path) + 1, 1);
  att_release(checkpoint->runtime, file, 1, sizeof *file);
}

static void read_config(att_config *c, const att_llama2c *f) {
  att_config_init(c);
  c->layers = f->layers;
  c->width = f->dim;
  c->heads = f->heads;
  c->kv_heads = f->kv_heads;
  c->head_dim = f->dim / f->heads;
  c->ffn_width = f->hidden;
  c->vocab = f->vocab;
  c->context = f->context;
  c->norm = ATT_NORM_RMS;
  c->norm_eps = 1e-5;
  c->position = ATT_POSITION_ROPE;
  c->rope.pairs = c->head_dim / 2;
  c->rope.theta = 10000;
  c->ffn = ATT_FFN_GATED;
  c->activation = ATT_SILU;
  c->tied_output = f->shared;
}

static att_status open_file(att_checkpoint *out, att_runtime *runtime, const char *path) {
  att_checkpoint checkpoint = {.format = "llama2.c",
                               .family = "llama",
                               .find = find,
                               .open_tokenizer = open_tokenizer,
                               .forget = forget,
                               .close = close_file,
                               .runtime = runtime};
  llama2c_file *file;
  ATT_TRY(att_alloc((void **)&file, runtime, 1, sizeof *file, "a checkpoint"));
  checkpoint.file = file;
  int64_t length = (int64_t)strlen(path) + 1;
  att_status status = att_alloc((void **)&file->path, runtime, length, 1, "a path");
  if (status == ATT_OK) {
    memcpy(file->path, path, (size_t)length);
    status = att_llama2c_open(&file->data, path);
    if (status != ATT_OK) att_release(runtime, file->path, length, 1);
  }
  if (status != ATT_OK) {
    att_release(runtime, file, 1, sizeof *file);
    return status;
  }
  checkpoint.path = file->path;
  read_config(&checkpoint.config, &file->data);
  *out = checkpoint;
  return ATT_OK;
}

const att_format att_format_llama2c = {"llama2.c", is_llama2c, open_file};
