/* Writing a model as a Hugging Face folder: config.json, model.safetensors,
 * tokenizer.json. Names and orientation of tensors are those of the family's
 * arch_*.c; all tensors are in memory once. */
#include <stdio.h>
#include <string.h>

#include "attend/archive.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/folder.h"
#include "model/arch.h"
#include "model/export.h"
#include "model/folder.h"
#include "model/layer_name.h"
#include "model/pooling.h"

enum { NAME_BYTES = 96 };

/* ---- config.json ---- */

static const char *dtype_name(att_dtype dtype) {
  return dtype == ATT_F16 ? "float16" : dtype == ATT_BF16 ? "bfloat16" : "float32";
}

static void put_ends(att_config_writer *w, const att_export *e) {
  const att_checkpoint *source = e->source;
  if (source->n_end_ids == 1) att_put_size(w, "eos_token_id", source->end_ids[0]);
  if (source->n_end_ids == 0 && e->tokenizer && e->tokenizer->eos >= 0)
    att_put_size(w, "eos_token_id", e->tokenizer->eos);
  if (source->n_end_ids < 2) return;
  for (int i = 0; i < source->n_end_ids; i++)
    fprintf(w->file, "%s%d", i ? ", " : ",\n  \"eos_token_id\": [", (int)source->end_ids[i]);
  fputs("]", w->file);
}

static bool is_headless(const att_arch *arch, const att_config *c) {
  return arch->headless && !c->fill_head;
}

static void put_config(FILE *f, const att_export *e, const att_arch *arch, att_dtype dtype) {
  const att_config *c = &e->config;
  att_config_writer w = {f, e->runtime, e->source};
  fprintf(f, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"%s\"",
          is_headless(arch, c) ? arch->headless : arch->class_name, arch->name);
  att_put_size(&w, "vocab_size", c->vocab);
  arch->write(&w, c);
  att_put_bool(&w, "tie_word_embeddings", c->tied_output);
  if (e->tokenizer && e->tokenizer->bos >= 0) att_put_size(&w, "bos_token_id", e->tokenizer->bos);
  put_ends(&w, e);
  att_put_text(&w, "torch_dtype", dtype_name(dtype));
  fputs("\n}\n", f);
}

/* ---- model.safetensors ---- */

typedef struct hf_job {
  const att_export *export;
  const att_arch *arch;
  int64_t n, room, done, total;
  char (*names)[NAME_BYTES];
  const char **pointers;
  att_view *views;
} hf_job;

static att_status dtype_of(att_dtype *out, const att_export *e, att_dtype stored) {
  int dtype = e->dtype == ATT_KEEP_DTYPE ? (int)stored : e->dtype;
  if (e->dtype != ATT_KEEP_DTYPE && att_dtype_is_quantised((att_dtype)e->dtype))
    return att_fail(ATT_UNSUPPORTED, "%s: safetensors has no %s; f32, f16 and bf16 it has", e->path,
                    att_dtype_name((att_dtype)e->dtype));
  *out = dtype == ATT_F16 || dtype == ATT_BF16 ? (att_dtype)dtype : ATT_F32;
  return ATT_OK;
}

/* The tensor that holds the slot: a new one, unless it is fused with another. */
static att_status place(att_view *out, hf_job *job, att_slot slot, int64_t layer, att_dtype dtype) {
  const att_stored_name *stored = &job->arch->names[slot];
  const att_config *config = &job->export->config;
  bool plain = stored->other_if_plain && config->ffn == ATT_FFN_PLAIN;
  const char *pattern = plain ? stored->other : stored->name;
  char name[NAME_BYTES];
  if (pattern && is_headless(job->arch, config) &&
      !strncmp(pattern, job->arch->prefix, strlen(job->arch->prefix)))
    pattern += strlen(job->arch->prefix);
  if (!pattern || !att_layer_name_write(name, sizeof name, pattern, layer))
    return att_fail(ATT_UNSUPPORTED, "family %s has no %s in safetensors", job->arch->name,
                    att_slots[slot].name);
  int64_t at = 0, shape[3];
  while (at < job->n && strcmp(job->names[at], name) != 0) at++;
  if (at == job->n) {
    int ndim = att_stored_shape(shape, stored, config, slot);
    att_view whole = {.dtype = dtype, .ndim = ndim};
    memcpy(whole.shape, shape, (size_t)ndim * sizeof *shape);
    void *memory;
    ATT_TRY(att_alloc(&memory, job->export->runtime, att_view_count(&whole),
                      (size_t)att_dtype_bytes(dtype), "a tensor"));
    memcpy(job->names[at], name, sizeof name);
    job->pointers[at] = job->names[at];
    job->views[at] = att_view_of(memory, dtype, ndim, shape);
    job->n++;
  }
  *out = att_stored_part(job->views[at], stored, config, slot);
  return ATT_OK;
}

static att_status add_weight(hf_job *job, att_slot slot, int64_t layer) {
  const att_export *e = job->export;
  int64_t rows = att_config_size(&e->config, att_slots[slot].rows);
  int64_t columns = att_config_size(&e->config, att_slots[slot].columns);
  att_dtype stored = ATT_F32, dtype = ATT_F32;
  att_view view;
  float *numbers;
  ATT_TRY(att_alloc((void **)&numbers, e->runtime, rows * columns, sizeof *numbers, "a weight"));
  att_status status = att_export_weight(numbers, &stored, e->source, slot, layer, rows, columns);
  if (status == ATT_OK) status = dtype_of(&dtype, e, stored);
  if (status == ATT_OK) status = place(&view, job, slot, layer, dtype);
  if (job->arch->names[slot].lacks_one)
    for (int64_t i = 0; status == ATT_OK && i < rows * columns; i++) numbers[i] -= 1.0f;
  if (status == ATT_OK) {
    att_view from = att_view_of(numbers, ATT_F32, view.ndim, view.shape);
    status = att_view_copy(&view, &from);
  }
  att_release(e->runtime, numbers, rows * columns, sizeof *numbers);
  job->done += rows * columns;
  return status == ATT_OK ? att_export_report(e, job->done, job->total) : status;
}

typedef att_status slot_fn(hf_job *job, att_slot slot, int64_t layer);

/* Divisors stand in config.json. */
static bool in_config(att_slot slot) {
  return slot == ATT_SLOT_ROPE_SHORT || slot == ATT_SLOT_ROPE_LONG;
}

static att_status each_slot(hf_job *job, slot_fn *visit) {
  const att_config *c = &job->export->config;
  for (int64_t layer = -1; layer < att_export_layers(c); layer++)
    for (att_slot slot = 0; slot < ATT_SLOT_COUNT; slot++)
      if (att_export_has_in(c, slot, layer) && !in_config(slot)) ATT_TRY(visit(job, slot, layer));
  return ATT_OK;
}

static att_status count(hf_job *job, att_slot slot, int64_t layer) {
  (void)layer;
  const att_config *c = &job->export->config;
  job->total +=
      att_config_size(c, att_slots[slot].rows) * att_config_size(c, att_slots[slot].columns);
  job->room++;
  return ATT_OK;
}

static att_status gather(hf_job *job) {
  const att_runtime *r = job->export->runtime;
  ATT_TRY(each_slot(job, count));
  ATT_TRY(att_alloc((void **)&job->names, r, job->room, sizeof *job->names, "names"));
  ATT_TRY(att_alloc((void **)&job->pointers, r, job->room, sizeof *job->pointers, "names"));
  ATT_TRY(att_alloc((void **)&job->views, r, job->room, sizeof *job->views, "tensors"));
  return each_slot(job, add_weight);
}

static void release(hf_job *job) {
  const att_runtime *r = job->export->runtime;
  for (int64_t i = 0; i < job->n; i++)
    att_release(r, job->views[i].data, att_view_count(&job->views[i]),
                (size_t)att_dtype_bytes(job->views[i].dtype));
  att_release(r, job->names, job->room, sizeof *job->names);
  att_release(r, job->pointers, job->room, sizeof *job->pointers);
  att_release(r, job->views, job->room, sizeof *job->views);
}

/* ---- the folder ---- */

static att_status write_text(const hf_job *job, const att_folder_writer *folder, const char *name) {
  const att_export *e = job->export;
  char path[ATT_FOLDER_PATH];
  att_file_writer file;
  ATT_TRY(att_folder_file(path, folder, name));
  ATT_TRY(att_file_create(&file, e->runtime, path));
  if (strcmp(name, "config.json") == 0)
    put_config(file.stream, e, job->arch, job->views[0].dtype);
  else if (strcmp(name, "tokenizer.json") == 0)
    att_stored_write_json(file.stream, e->tokenizer);
  else
    fwrite(e->tokenizer->chat_template.bytes, 1, e->tokenizer->chat_template.n, file.stream);
  return att_file_commit(&file, e->runtime);
}

static att_status copy_file(const att_export *e, const char *from, const char *to) {
  att_file source;
  att_file_writer target;
  ATT_TRY(att_file_map(&source, from));
  att_status status = att_file_create(&target, e->runtime, to);
  if (status == ATT_OK) {
    if (source.bytes) fwrite(source.data, 1, source.bytes, target.stream);
    status = att_file_commit(&target, e->runtime);
  }
  att_file_unmap(&source);
  return status;
}

/* Files say more about a tokenizer than what is known of it once it is loaded. */
static att_status copy_tokenizer(const att_export *e, const att_folder_writer *folder) {
  static const char *const names[] = {"tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "chat_template.jinja",
                                      "words.txt",
                                      "vocab.json",
                                      "merges.txt"};
  const att_folder source = {.path = e->tokenizer_folder};
  char from[ATT_PATH_BYTES], to[ATT_FOLDER_PATH];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!att_folder_has(&source, names[i])) continue;
    ATT_TRY(att_folder_join(from, sizeof from, &source, names[i]));
    ATT_TRY(att_folder_file(to, folder, names[i]));
    ATT_TRY(copy_file(e, from, to));
  }
  return ATT_OK;
}

static att_status write_all(hf_job *job, const att_folder_writer *folder) {
  static const char *const metadata[] = {"format", "pt"};
  const att_export *e = job->export;
  char path[ATT_FOLDER_PATH];
  ATT_TRY(gather(job));
  ATT_TRY(att_folder_file(path, folder, "model.safetensors"));
  ATT_TRY(att_safetensors_write(e->runtime, path, job->n, job->pointers, job->views, 1, metadata));
  ATT_TRY(write_text(job, folder, "config.json"));
  if (e->tokenizer_folder) return copy_tokenizer(e, folder);
  if (!e->tokenizer) return ATT_OK;
  ATT_TRY(write_text(job, folder, "tokenizer.json"));
  return e->tokenizer->chat_template.bytes ? write_text(job, folder, "chat_template.jinja")
                                           : ATT_OK;
}

/* Programs scale the logits wherever output and embedding are one; so where they do
 * not want it, the two are written apart. */
static bool must_untie(const att_arch *arch, const att_config *c) {
  return arch && arch->tied_is_scaled && c->tied_output && c->logit_scale == 1;
}

att_status att_export_huggingface_files(const att_export *export, const att_folder_writer *folder) {
  att_export copy = *export;
  const att_export *e = &copy;
  hf_job job = {.export = e, .arch = att_arch_named(e->source->family)};
  if (must_untie(job.arch, &copy.config)) copy.config.tied_output = false;
  const char *lacks = job.arch ? job.arch->lacks(&e->config) : "a family without a config.json";
  if (lacks)
    return att_fail(ATT_UNSUPPORTED, "%s has %s, which config.json cannot say", e->source->path,
                    lacks);
  att_status status = write_all(&job, folder);
  release(&job);
  return status;
}

att_status att_export_huggingface(const att_export *e) {
  att_folder_writer folder;
  ATT_TRY(att_folder_create(&folder, e->path));
  att_status status = att_export_huggingface_files(e, &folder);
  if (status == ATT_OK) status = att_pooling_write(&e->config, e->runtime, folder.temporary);
  if (status == ATT_OK) return att_folder_commit(&folder);
  att_pooling_remove(folder.temporary);
  att_folder_abandon(&folder);
  return status;
}
