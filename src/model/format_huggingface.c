/* A Hugging Face folder as a checkpoint: config.json, safetensors (one file, or
 * shards and their index) and a tokenizer.
 *
 * Every weight that the configuration calls for must be there with exactly its
 * shape, and every stored tensor must be one of them or a known buffer: a
 * checkpoint that holds something unknown is of another model than its
 * configuration says. */
#include "model/format_huggingface.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "io/archive.h"
#include "model/arch.h"
#include "model/layer_name.h"
#include "model/pooling.h"

#define NAME_BYTES 256

typedef struct hf_model {
  att_folder folder;
  char *path; /* the folder's, owned */
  att_archive *archive;
  const att_arch *arch;
} hf_model;

static bool is_huggingface(const att_probe *probe) { return probe->folder; }

/* ---- weights ---- */

/* `name` without the family's prefix, or NULL if it has none. */
static const char *without_prefix(const att_arch *arch, const char *name) {
  size_t n = strlen(arch->prefix);
  return strncmp(name, arch->prefix, n) ? NULL : name + n;
}

static att_status get(att_view *out, const hf_model *model, const char *name) {
  const char *bare = without_prefix(model->arch, name);
  if (bare && att_archive_get(out, model->archive, bare) == ATT_OK) return ATT_OK;
  return att_archive_get(out, model->archive, name);
}

/* By either of its names; a failure tells of the first. */
static att_status get_stored(att_view *out, char name[NAME_BYTES], const hf_model *model,
                             const att_stored_name *stored, int64_t layer) {
  if (stored->other && att_layer_name_write(name, NAME_BYTES, stored->other, layer) &&
      get(out, model, name) == ATT_OK)
    return ATT_OK;
  if (!att_layer_name_write(name, NAME_BYTES, stored->name, layer))
    return att_fail(ATT_TOO_LARGE, "%s: the name %s is too long", model->path, stored->name);
  return get(out, model, name);
}

static bool has_slot(const void *file, att_slot slot) {
  const hf_model *model = file;
  char name[NAME_BYTES];
  att_view view;
  const att_stored_name *stored = &model->arch->names[slot];
  return stored->name && get_stored(&view, name, model, stored, 0) == ATT_OK;
}

/* Divisors that a config.json brings. */
static att_view divisors_of(const att_checkpoint *checkpoint, att_slot slot) {
  const float *table = checkpoint->config.long_divisors[slot == ATT_SLOT_ROPE_LONG];
  return att_view_of((void *)(uintptr_t)table, ATT_F32, 1, &checkpoint->config.rope.pairs);
}

static att_status find(att_view *out, const att_checkpoint *checkpoint, att_slot slot,
                       int64_t layer, int64_t rows, int64_t columns) {
  (void)rows, (void)columns; /* stored.h computes them from the same configuration */
  const hf_model *model = checkpoint->file;
  const att_stored_name *stored = &model->arch->names[slot];
  char name[NAME_BYTES], has[96], wants[96];
  if (slot == ATT_SLOT_ROPE_SHORT || slot == ATT_SLOT_ROPE_LONG) {
    *out = divisors_of(checkpoint, slot);
    return ATT_OK;
  }
  if (!stored->name)
    return att_fail(ATT_UNSUPPORTED, "%s: family %s has no %s", model->path, model->arch->name,
                    att_slots[slot].name);
  att_view view;
  ATT_TRY(get_stored(&view, name, model, stored, layer));
  int64_t shape[3];
  int ndim = att_stored_shape(shape, stored, &checkpoint->config, slot);
  bool fits = view.ndim == ndim && !memcmp(view.shape, shape, (size_t)ndim * sizeof *shape);
  if (!fits)
    return att_fail(ATT_CORRUPT, "%s: tensor %s is %s, but config.json implies %s", model->path,
                    name, att_shape_text(has, view.shape, view.ndim),
                    att_shape_text(wants, shape, ndim));
  *out = att_stored_part(view, stored, &checkpoint->config, slot);
  return ATT_OK;
}

static bool lacks_one(const att_checkpoint *checkpoint, att_slot slot) {
  return ((const hf_model *)checkpoint->file)->arch->names[slot].lacks_one;
}

/* True if `name` is what the pattern says, with or without the family's prefix. */
static bool is_called(int64_t *layer, const att_arch *arch, const char *pattern, const char *name) {
  if (!pattern) return false;
  const char *bare = without_prefix(arch, pattern);
  return att_layer_name_matches(layer, pattern, name) ||
         (bare && att_layer_name_matches(layer, bare, name));
}

/* True if the stored name is a weight of this model or a buffer to ignore. */
static bool is_expected(const att_checkpoint *checkpoint, const char *name) {
  const att_arch *arch = ((const hf_model *)checkpoint->file)->arch;
  const att_config *config = &checkpoint->config;
  int64_t layer;
  for (att_slot slot = 0; slot < ATT_SLOT_COUNT; slot++) {
    const att_stored_name *stored = &arch->names[slot];
    bool used = att_slot_exists(config, slot) ||
                slot == ATT_SLOT_TOKENS; /* stored also where it is the output */
    if (used &&
        (is_called(&layer, arch, stored->name, name) ||
         is_called(&layer, arch, stored->other, name)) &&
        layer < (att_slots[slot].owner ? att_slot_layers(config, slot) : 0))
      return true;
  }
  for (const char *const *pattern = arch->ignored; *pattern; pattern++)
    if (is_called(&layer, arch, *pattern, name)) return true;
  return false;
}

static att_status check_names(const att_checkpoint *checkpoint) {
  const hf_model *model = checkpoint->file;
  const char *first = NULL;
  int64_t n = 0;
  for (int64_t i = 0; i < att_archive_count(model->archive); i++) {
    const char *name = att_archive_name(model->archive, i);
    if (is_expected(checkpoint, name)) continue;
    if (!first) first = name;
    n++;
  }
  if (!n) return ATT_OK;
  return att_fail(ATT_UNSUPPORTED,
                  "%s: tensor %s%s not part of the model that config.json describes", model->path,
                  first, n > 1 ? " and others are" : " is");
}

/* A tied output that is stored all the same must be the embedding. */
static att_status check_tie(const att_checkpoint *checkpoint) {
  const hf_model *model = checkpoint->file;
  const char *const name = model->arch->names[ATT_SLOT_OUTPUT].name;
  att_view output, tokens;
  if (!name || !checkpoint->config.tied_output ||
      att_archive_get(&output, model->archive, name) != ATT_OK)
    return ATT_OK;
  ATT_TRY(get(&tokens, model, model->arch->names[ATT_SLOT_TOKENS].name));
  int64_t count = att_view_count(&output);
  bool same = output.dtype == tokens.dtype && count == att_view_count(&tokens) &&
              !memcmp(output.data, tokens.data, (size_t)(count * att_dtype_bytes(output.dtype)));
  if (same) return ATT_OK;
  return att_fail(ATT_CORRUPT, "%s: tie_word_embeddings is true, but %s differs from the embedding",
                  model->path, name);
}

/* ---- settings ---- */

/* An id that the vocabulary lacks can never come, so it ends nothing. */
static att_status add_end(att_checkpoint *out, const att_json_node *node, const char *where) {
  if (node->type != ATT_JSON_NUMBER || !node->is_integer)
    return att_fail(ATT_CORRUPT, "%s: \"eos_token_id\" is neither an id nor a list of ids", where);
  if (node->integer < 0 || node->integer >= out->config.vocab) {
    att_log(out->runtime, ATT_LOG_WARNING, "%s: eos_token_id %lld is outside the vocabulary", where,
            (long long)node->integer);
    return ATT_OK;
  }
  for (int i = 0; i < out->n_end_ids; i++)
    if (out->end_ids[i] == (int32_t)node->integer) return ATT_OK;
  if (out->n_end_ids == ATT_MAX_END_IDS)
    return att_fail(ATT_TOO_LARGE, "%s: more than %d ids end a text", where, ATT_MAX_END_IDS);
  out->end_ids[out->n_end_ids++] = (int32_t)node->integer;
  return ATT_OK;
}

/* "eos_token_id": an id or a list of them. */
static att_status read_ends(att_checkpoint *out, const att_json_node *root, const char *where) {
  const att_json_node *eos = att_json_member(root, "eos_token_id");
  if (!eos || eos->type == ATT_JSON_NULL) return ATT_OK;
  if (eos->type != ATT_JSON_ARRAY) return add_end(out, eos, where);
  for (const att_json_node *id = eos->child; id; id = id->next) ATT_TRY(add_end(out, id, where));
  return ATT_OK;
}

static att_status read_root(att_checkpoint *out, const att_json_node *root, const char *where) {
  hf_model *model = out->file;
  ATT_TRY(att_arch_of_settings(&model->arch, root, where));
  out->family = model->arch->name;
  att_settings settings;
  ATT_TRY(att_settings_open(&settings, out->runtime, where, root));
  att_status status = model->arch->read(&out->config, &settings);
  if (status == ATT_OK) status = att_settings_finish(&settings);
  att_settings_close(&settings);
  if (status == ATT_OK) status = att_config_check(&out->config, where);
  return status == ATT_OK ? read_ends(out, root, where) : status;
}

static att_status read_config(att_checkpoint *out) {
  hf_model *model = out->file;
  char where[ATT_PATH_BYTES];
  ATT_TRY(att_folder_join(where, sizeof where, &model->folder, "config.json"));
  att_json *json;
  ATT_TRY(att_folder_json(&json, out->runtime, &model->folder, "config.json"));
  att_config_init(&out->config);
  att_status status = read_root(out, att_json_root(json), where);
  att_json_free(json);
  return status;
}

/* generation_config.json may name further ids that end a text. */
static att_status read_generation_config(att_checkpoint *out) {
  hf_model *model = out->file;
  static const char name[] = "generation_config.json";
  char where[ATT_PATH_BYTES];
  if (!att_folder_has(&model->folder, name)) return ATT_OK;
  ATT_TRY(att_folder_join(where, sizeof where, &model->folder, name));
  att_json *json;
  ATT_TRY(att_folder_json(&json, out->runtime, &model->folder, name));
  att_status status = read_ends(out, att_json_root(json), where);
  att_json_free(json);
  return status;
}

/* ---- opening ---- */

static att_status open_tokenizer(att_tokenizer **out, const att_checkpoint *checkpoint) {
  const hf_model *model = checkpoint->file;
  if (model->folder.builtin)
    return att_builtin_tokenizer(out, checkpoint->runtime, model->folder.builtin);
  return att_tokenizer_open(out, checkpoint->runtime, model->path, checkpoint->config.vocab);
}

static void forget(const att_checkpoint *checkpoint) {
  att_archive_forget(((const hf_model *)checkpoint->file)->archive);
}

static void close_model(att_checkpoint *checkpoint) {
  hf_model *model = checkpoint->file;
  if (!model) return;
  att_archive_close(model->archive);
  if (model->path)
    att_release(checkpoint->runtime, model->path, (int64_t)strlen(model->path) + 1, 1);
  att_release(checkpoint->runtime, model, 1, sizeof *model);
}

static att_status open_all(att_checkpoint *out, const att_folder *folder) {
  hf_model *model;
  ATT_TRY(att_alloc((void **)&model, out->runtime, 1, sizeof *model, "a checkpoint"));
  out->file = model;
  size_t length = strlen(folder->path);
  while (length > 1 && folder->path[length - 1] == '/') length--;
  ATT_TRY(att_alloc((void **)&model->path, out->runtime, (int64_t)length + 1, 1, "a path"));
  memcpy(model->path, folder->path, length);
  model->folder = (att_folder){model->path, folder->builtin};
  out->path = model->path;
  ATT_TRY(read_config(out));
  ATT_TRY(read_generation_config(out));
  ATT_TRY(att_folder_archive(&model->archive, out->runtime, &model->folder));
  if (model->arch->complete) model->arch->complete(&out->config, has_slot, model);
  if (out->config.bidirectional || out->config.encoder_layers)
    ATT_TRY(att_pooling_read(&out->config, out->runtime, &model->folder));
  ATT_TRY(check_names(out));
  return check_tie(out);
}

att_status att_huggingface_open(att_checkpoint *out, att_runtime *runtime,
                                const att_folder *folder) {
  att_checkpoint checkpoint = {.format = folder->builtin ? "built-in" : "safetensors",
                               .find = find,
                               .lacks_one = lacks_one,
                               .open_tokenizer = open_tokenizer,
                               .forget = forget,
                               .close = close_model,
                               .runtime = runtime};
  att_status status = open_all(&checkpoint, folder);
  if (status == ATT_OK)
    *out = checkpoint;
  else
    close_model(&checkpoint);
  return status;
}

static att_status open_path(att_checkpoint *out, att_runtime *runtime, const char *path) {
  return att_huggingface_open(out, runtime, &(att_folder){.path = path});
}

const att_format att_format_huggingface = {"safetensors", is_huggingface, open_path};
