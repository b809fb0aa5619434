/* A GGUF file as a checkpoint: keys for config.json, llama.cpp's names of
 * tensors, the tokenizer in the same file (gguf_tokens.c).
 *
 * As in a Hugging Face folder, every weight that the keys call for must be there
 * with exactly its shape, and every stored tensor must be one of them. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/line.h"
#include "base/log.h"
#include "model/arch.h"
#include "model/checkpoint.h"
#include "model/format_gguf.h"
#include "model/gguf_tokens.h"
#include "model/layer_name.h"

typedef struct gguf_model {
  att_gguf *file;
  const att_arch *arch;
  const att_gguf_family *family;
} gguf_model;

static bool is_gguf(const att_probe *probe) {
  return !probe->folder && probe->head_bytes >= 4 && !memcmp(probe->head, "GGUF", 4);
}

/* ---- weights ---- */

/* Rotary rows with neighbouring pairs, seen half-split. */
static att_view split_pairs(const att_checkpoint *checkpoint, att_slot slot, att_view view) {
  const att_config *c = &checkpoint->config;
  bool q = slot == ATT_SLOT_Q_W || slot == ATT_SLOT_Q_B;
  bool k = slot == ATT_SLOT_K_W || slot == ATT_SLOT_K_B;
  if (!((const gguf_model *)checkpoint->file)->family->pairs_adjacent || !(q || k)) return view;
  return att_split_pairs(view, q ? c->heads : c->kv_heads, c->head_dim);
}

static att_status check_type(const att_checkpoint *checkpoint, const att_gguf_tensor *t) {
  if (t->has_dtype) return ATT_OK;
  return att_fail(ATT_UNSUPPORTED,
                  "%s: tensor %s is %s; attend reads F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, "
                  "Q4_K, Q5_K and Q6_K",
                  checkpoint->path, t->name, t->type);
}

static att_status find(att_view *out, const att_checkpoint *checkpoint, att_slot slot,
                       int64_t layer, int64_t rows, int64_t columns) {
  (void)rows, (void)columns; /* stored.h computes them from the same configuration */
  const gguf_model *model = checkpoint->file;
  att_stored_name stored = att_gguf_stored(model->family, slot);
  char name[ATT_GGUF_NAME_BYTES], has[96], wants[96];
  if (!stored.name || !att_layer_name_write(name, sizeof name, stored.name, layer))
    return att_fail(ATT_UNSUPPORTED, "%s: GGUF has no %s", checkpoint->path, att_slots[slot].name);
  const att_gguf_tensor *t = att_gguf_tensor_find(model->file, name);
  if (!t) return att_fail(ATT_CORRUPT, "%s: tensor %s is missing", checkpoint->path, name);
  int64_t shape[3];
  int ndim = att_stored_shape(shape, &stored, &checkpoint->config, slot);
  bool fits = t->view.ndim == ndim && !memcmp(t->view.shape, shape, (size_t)ndim * sizeof *shape);
  if (!fits)
    return att_fail(ATT_CORRUPT, "%s: tensor %s is %s, but the keys imply %s", checkpoint->path,
                    name, att_shape_text(has, t->view.shape, t->view.ndim),
                    att_shape_text(wants, shape, ndim));
  ATT_TRY(check_type(checkpoint, t));
  att_view view = att_stored_part(t->view, &stored, &checkpoint->config, slot);
  *out = split_pairs(checkpoint, slot, view);
  return ATT_OK;
}

static bool is_expected(const att_checkpoint *checkpoint, const char *name) {
  const gguf_model *model = checkpoint->file;
  int64_t layer;
  for (att_slot slot = 0; slot < ATT_SLOT_COUNT; slot++) {
    const char *pattern = att_gguf_stored(model->family, slot).name;
    bool read = slot == ATT_SLOT_TOKENS || /* or taken for what its settings say */
                (slot == ATT_SLOT_ROPE && checkpoint->config.rope.scaling == ATT_ROPE_LLAMA3);
    bool used = pattern && (read || att_slot_exists(&checkpoint->config, slot));
    if (used && att_layer_name_matches(&layer, pattern, name) &&
        layer < (att_slots[slot].owner ? att_slot_layers(&checkpoint->config, slot) : 0))
      return true;
  }
  return false;
}

static att_status check_names(const att_checkpoint *checkpoint) {
  const att_gguf *file = ((const gguf_model *)checkpoint->file)->file;
  char label[96];
  for (int64_t i = 0; i < att_gguf_tensor_count(file); i++) {
    const char *name = att_gguf_tensor_at(file, i)->name;
    if (!is_expected(checkpoint, name))
      return att_fail(ATT_UNSUPPORTED, "%s: tensor %s is none of a model with these keys",
                      checkpoint->path, att_quote(label, sizeof label, name, strlen(name)));
  }
  return ATT_OK;
}

/* ---- keys ---- */

/* The vocabulary is as large as the embedding; whoever else counts it must agree. */
static att_status read_vocabulary(att_checkpoint *out) {
  const gguf_model *model = out->file;
  const att_gguf_tensor *embedding = att_gguf_tensor_find(model->file, "token_embd.weight");
  if (!embedding || embedding->view.ndim != 2)
    return att_fail(ATT_CORRUPT, "%s: tensor token_embd.weight is %s", out->path,
                    embedding ? "not two-dimensional" : "missing");
  out->config.vocab = embedding->view.shape[0];
  out->config.tied_output = !att_gguf_tensor_find(model->file, "output.weight");
  char key[64];
  snprintf(key, sizeof key, "%s.vocab_size", model->family->name);
  const att_gguf_value *stated = att_gguf_find(model->file, key);
  const att_gguf_value *tokens = att_gguf_find(model->file, "tokenizer.ggml.tokens");
  int64_t size;
  bool same = !stated || (att_gguf_integer(&size, stated, 0) && size == out->config.vocab);
  if (!same)
    return att_fail(ATT_CORRUPT, "%s: key \"%s\" differs from the %lld rows of token_embd.weight",
                    out->path, key, (long long)out->config.vocab);
  if (tokens && tokens->count > out->config.vocab)
    return att_fail(ATT_CORRUPT, "%s: %lld tokens, but token_embd.weight has only %lld rows",
                    out->path, (long long)tokens->count, (long long)out->config.vocab);
  return ATT_OK;
}

/* An id that the vocabulary lacks can never come, so it ends nothing. */
static void read_ends(att_checkpoint *out) {
  static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"};
  const gguf_model *model = out->file;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const att_gguf_value *value = att_gguf_find(model->file, keys[i]);
    int64_t id;
    if (!value || value->is_array || !att_gguf_integer(&id, value, 0)) continue;
    if (id >= 0 && id < out->config.vocab)
      out->end_ids[out->n_end_ids++] = (int32_t)id;
    else
      att_log(out->runtime, ATT_LOG_WARNING, "%s: key \"%s\" is %lld, outside the vocabulary",
              out->path, keys[i], (long long)id);
  }
}

static att_status check_split(const att_gguf *file) {
  const att_gguf_value *value = att_gguf_find(file, "split.count");
  int64_t count = 1;
  if (!value || (att_gguf_integer(&count, value, 0) && count <= 1)) return ATT_OK;
  return att_fail(ATT_UNSUPPORTED,
                  "%s: key \"split.count\" is %lld: one of several files of a "
                  "model, which attend does not put together",
                  att_gguf_name(file), (long long)count);
}

static att_status find_family(gguf_model *model, att_gguf_text name, const char *where) {
  char label[64], known[256] = "";
  model->arch = att_arch_of_gguf(name);
  if (model->arch) {
    model->family = model->arch->gguf;
    return ATT_OK;
  }
  const att_arch *arch;
  for (int i = 0; (arch = att_arch_at(i)); i++) {
    const char *other = arch->gguf ? arch->gguf->name : "";
    if (!*other || strstr(known, other)) continue;
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "",
             other);
  }
  return att_fail(ATT_UNSUPPORTED,
                  "%s: key \"general.architecture\" is %s; families that attend reads: %s", where,
                  att_quote(label, sizeof label, name.bytes, name.n), known);
}

/* Of families that share a name in GGUF the first whose folders can say the same:
 * a llama with a window is a mistral. */
static const char *family_of(const att_arch *arch, const att_config *config) {
  const att_arch *other;
  for (int i = 0; (other = att_arch_at(i)); i++)
    if (other->gguf == arch->gguf && !other->lacks(config)) return other->name;
  return arch->name;
}

/* Neighbouring pairs of a part of a head would lie in an order that nobody has. */
static att_status check_pairs(const att_checkpoint *checkpoint) {
  const att_config *c = &checkpoint->config;
  const gguf_model *model = checkpoint->file;
  if (!model->family->pairs_adjacent || 2 * c->rope.pairs == c->head_dim) return ATT_OK;
  return att_fail(ATT_UNSUPPORTED, "%s: key \"%s.rope.dimension_count\" is %lld, heads have %lld",
                  checkpoint->path, model->family->name, 2 * (long long)c->rope.pairs,
                  (long long)c->head_dim);
}

static att_status read_keys(att_checkpoint *out) {
  gguf_model *model = out->file;
  att_gguf_text name;
  att_gguf_keys keys;
  ATT_TRY(check_split(model->file));
  ATT_TRY(att_gguf_text_of(&name, model->file, "general.architecture", true));
  ATT_TRY(find_family(model, name, out->path));
  out->family = model->arch->name;
  att_config_init(&out->config);
  ATT_TRY(att_gguf_keys_open(&keys, out->runtime, model->file, model->family->name));
  att_status status = model->family->read(&out->config, &keys);
  if (status == ATT_OK) status = att_gguf_keys_finish(&keys);
  att_gguf_keys_close(&keys);
  ATT_TRY(status);
  ATT_TRY(read_vocabulary(out));
  ATT_TRY(att_config_check(&out->config, out->path));
  ATT_TRY(check_pairs(out));
  out->family = family_of(model->arch, &out->config);
  read_ends(out);
  return check_names(out);
}

/* ---- opening ---- */

static att_status open_tokenizer(att_tokenizer **out, const att_checkpoint *checkpoint) {
  return att_gguf_tokenizer(out, checkpoint->runtime, ((gguf_model *)checkpoint->file)->file);
}

static void forget(const att_checkpoint *checkpoint) {
  att_gguf_forget(((const gguf_model *)checkpoint->file)->file);
}

static void close_model(att_checkpoint *checkpoint) {
  gguf_model *model = checkpoint->file;
  att_gguf_close(model->file);
  att_release(checkpoint->runtime, model, 1, sizeof *model);
}

/* From a path, or from the bytes of a file that is compiled in. */
static att_status open_any(att_checkpoint *out, att_runtime *runtime, const char *path,
                           const att_builtin_file *builtin) {
  att_checkpoint checkpoint = {.format = builtin ? "built-in" : "gguf",
                               .find = find,
                               .open_tokenizer = open_tokenizer,
                               .forget = forget,
                               .close = close_model,
                               .runtime = runtime};
  gguf_model *model;
  ATT_TRY(att_alloc((void **)&model, runtime, 1, sizeof *model, "a checkpoint"));
  checkpoint.file = model;
  att_status status =
      builtin ? att_gguf_open_memory(&model->file, runtime, builtin->bytes, builtin->size, path)
              : att_gguf_open(&model->file, runtime, path);
  if (status == ATT_OK) {
    checkpoint.path = att_gguf_name(model->file);
    status = read_keys(&checkpoint);
  }
  if (status == ATT_OK)
    *out = checkpoint;
  else
    close_model(&checkpoint);
  return status;
}

att_status att_gguf_model_builtin(att_checkpoint *out, att_runtime *runtime,
                                  const att_builtin_model *model, const att_builtin_file *file) {
  return open_any(out, runtime, model->name, file);
}

static att_status open_path(att_checkpoint *out, att_runtime *runtime, const char *path) {
  return open_any(out, runtime, path, NULL);
}

const att_format att_format_gguf = {"gguf", is_gguf, open_path};
