/* Writing a model as a Hugging Face folder: config.json, model.safetensors,
 * tokenizer.json. Names and orientation of tensors are those of the family's
 * arch_*.c; all tensors are in memory once. */
#include <stdio.h>
#include <string.h>

#include "attend/archive.h"
#include "attend/sdpa.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "model/arch.h"
#include "model/export.h"
#include "model/layer_name.h"

enum { NAME_BYTES = 96 };

/* ---- config.json ---- */

/* A decimal with a point, whatever the locale of the program. */
static void spell(char text[40], int digits, double value) {
  snprintf(text, 40, "%.*g", digits, value);
  for (char *c = text; *c; c++)
    if (*c == ',') *c = '.';
}

/* The shortest of at most 9 digits that reads back as the same f32. */
static void put_number(FILE *f, const att_runtime *runtime, const char *key, double value) {
  char text[40];
  bool same = false;
  for (int digits = 1; digits <= 9 && !same; digits++) {
    att_json *json;
    spell(text, digits, value);
    if (att_json_parse(&json, runtime, text, strlen(text), key) != ATT_OK) continue;
    same = (float)att_json_root(json)->number == (float)value;
    att_json_free(json);
  }
  fprintf(f, ",\n  \"%s\": %s", key, text);
}

static void put_size(FILE *f, const char *key, int64_t value) {
  fprintf(f, ",\n  \"%s\": %lld", key, (long long)value);
}

static void put_bool(FILE *f, const char *key, bool value) {
  fprintf(f, ",\n  \"%s\": %s", key, value ? "true" : "false");
}

static void put_gpt2(FILE *f, const att_runtime *r, const att_config *c) {
  put_size(f, "n_embd", c->width);
  put_size(f, "n_layer", c->layers);
  put_size(f, "n_head", c->heads);
  put_size(f, "n_inner", c->ffn_width);
  put_size(f, "n_positions", c->context);
  put_number(f, r, "layer_norm_epsilon", c->norm_eps);
  fprintf(f, ",\n  \"activation_function\": \"%s\"",
          c->activation == ATT_GELU ? "gelu" : "gelu_new");
  put_bool(f, "scale_attn_weights", c->scale != 1);
  put_bool(f, "scale_attn_by_inverse_layer_idx", c->scale_by_layer);
}

static void put_scaling(FILE *f, const att_runtime *r, const att_rope *rope) {
  static const char *const names[] = {"default", "linear", "llama3", "yarn"};
  if (rope->scaling == ATT_ROPE_PLAIN) return;
  fprintf(f, ",\n  \"rope_scaling\": {\n  \"rope_type\": \"%s\"", names[rope->scaling]);
  put_number(f, r, "factor", rope->factor);
  if (rope->scaling != ATT_ROPE_LINEAR)
    put_size(f, "original_max_position_embeddings", (int64_t)rope->original);
  if (rope->scaling == ATT_ROPE_LLAMA3) {
    put_number(f, r, "low_freq_factor", rope->low);
    put_number(f, r, "high_freq_factor", rope->high);
  } else if (rope->scaling == ATT_ROPE_YARN) {
    put_number(f, r, "beta_fast", rope->beta_fast);
    put_number(f, r, "beta_slow", rope->beta_slow);
    if (!rope->truncate) put_bool(f, "truncate", false);
    if (rope->magnitude != att_rope_yarn_magnitude(rope->factor))
      put_number(f, r, "attention_factor", rope->magnitude);
  }
  fputs("}", f);
}

static void put_llama(FILE *f, const att_runtime *r, const att_config *c) {
  put_size(f, "hidden_size", c->width);
  put_size(f, "intermediate_size", c->ffn_width);
  put_size(f, "num_hidden_layers", c->layers);
  put_size(f, "num_attention_heads", c->heads);
  put_size(f, "num_key_value_heads", c->kv_heads);
  put_size(f, "head_dim", c->head_dim);
  put_size(f, "max_position_embeddings", c->context);
  put_number(f, r, "rms_norm_eps", c->norm_eps);
  put_number(f, r, "rope_theta", c->rope.theta);
  put_scaling(f, r, &c->rope);
  fputs(",\n  \"hidden_act\": \"silu\"", f);
  put_bool(f, "attention_bias", c->qkv_bias);
  put_bool(f, "mlp_bias", c->ffn_bias);
}

static const char *dtype_name(att_dtype dtype) {
  return dtype == ATT_F16 ? "float16" : dtype == ATT_BF16 ? "bfloat16" : "float32";
}

static void put_config(FILE *f, const att_export *e, const att_arch *arch, att_dtype dtype) {
  const att_config *c = &e->source->config;
  fprintf(f, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"%s\"", arch->class_name,
          arch->name);
  put_size(f, "vocab_size", c->vocab);
  (strcmp(arch->name, "gpt2") == 0 ? put_gpt2 : put_llama)(f, e->runtime, c);
  put_bool(f, "tie_word_embeddings", c->tied_output);
  if (e->tokenizer && e->tokenizer->bos >= 0) put_size(f, "bos_token_id", e->tokenizer->bos);
  if (e->source->n_end_ids > 1) {
    for (int i = 0; i < e->source->n_end_ids; i++)
      fprintf(f, "%s%d", i ? ", " : ",\n  \"eos_token_id\": [", (int)e->source->end_ids[i]);
    fputs("]", f);
  } else if (e->source->n_end_ids == 1) {
    put_size(f, "eos_token_id", e->source->end_ids[0]);
  } else if (e->tokenizer && e->tokenizer->eos >= 0) {
    put_size(f, "eos_token_id", e->tokenizer->eos);
  }
  fprintf(f, ",\n  \"torch_dtype\": \"%s\"\n}\n", dtype_name(dtype));
}

static const char *config_lacks(const att_arch *arch, const att_config *c) {
  bool gpt2 = strcmp(arch->name, "gpt2") == 0;
  if (!gpt2 && strcmp(arch->name, "llama") != 0) return "a family of its own";
  if (gpt2) return c->scale != ATT_SCALE_DEFAULT && c->scale != 1 ? "a scale of its own" : NULL;
  if (c->rope.scaling == ATT_ROPE_TABLE) return "a table of rotary divisors";
  if (c->qkv_bias != c->out_bias) return "biases in a part of its attention only";
  return c->scale != ATT_SCALE_DEFAULT ? "a scale of its own" : NULL;
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
  if (e->dtype == ATT_Q8_0)
    return att_fail(ATT_UNSUPPORTED, "%s: safetensors has no q8_0; f32, f16 and bf16 it has",
                    e->path);
  *out = dtype == ATT_F16 || dtype == ATT_BF16 ? (att_dtype)dtype : ATT_F32;
  return ATT_OK;
}

/* The tensor that holds the slot: a new one, unless it is fused with the last. */
static att_status place(att_view *out, hf_job *job, att_slot slot, int64_t layer, int64_t rows,
                        int64_t columns, att_dtype dtype) {
  const att_stored_name *stored = &job->arch->names[slot];
  int64_t parts = stored->parts ? stored->parts : 1;
  bool vector = att_slots[slot].kind == ATT_KIND_VECTOR;
  char name[NAME_BYTES];
  if (!stored->name || !att_layer_name_write(name, sizeof name, stored->name, layer))
    return att_fail(ATT_UNSUPPORTED, "family %s has no %s in safetensors", job->arch->name,
                    att_slots[slot].name);
  int64_t at = 0;
  while (at < job->n && strcmp(job->names[at], name) != 0) at++;
  if (at == job->n) {
    int64_t shape[2] = {parts * rows, columns};
    if (stored->transposed) shape[0] = columns, shape[1] = parts * rows;
    void *memory;
    ATT_TRY(att_alloc(&memory, job->export->runtime, parts * rows * columns,
                      (size_t)att_dtype_bytes(dtype), "a tensor"));
    memcpy(job->names[at], name, sizeof name);
    job->pointers[at] = job->names[at];
    job->views[at] = att_view_of(memory, dtype, vector ? 1 : 2, shape);
    job->n++;
  }
  att_view view = job->views[at];
  if (stored->parts) view = att_view_slice(view, stored->transposed, stored->part * rows, rows);
  *out = stored->transposed ? att_view_transpose(view, 0, 1) : view;
  return ATT_OK;
}

static att_status add_weight(hf_job *job, att_slot slot, int64_t layer) {
  const att_export *e = job->export;
  int64_t rows = att_config_size(&e->source->config, att_slots[slot].rows);
  int64_t columns = att_config_size(&e->source->config, att_slots[slot].columns);
  att_dtype stored = ATT_F32, dtype = ATT_F32;
  att_view view;
  float *numbers;
  ATT_TRY(att_alloc((void **)&numbers, e->runtime, rows * columns, sizeof *numbers, "a weight"));
  att_status status = att_export_weight(numbers, &stored, e->source, slot, layer, rows, columns);
  if (status == ATT_OK) status = dtype_of(&dtype, e, stored);
  if (status == ATT_OK) status = place(&view, job, slot, layer, rows, columns, dtype);
  if (status == ATT_OK) {
    att_view from = att_view_of(numbers, ATT_F32, view.ndim, view.shape);
    status = att_view_copy(&view, &from);
  }
  att_release(e->runtime, numbers, rows * columns, sizeof *numbers);
  job->done += rows * columns;
  return status == ATT_OK ? att_export_report(e, job->done, job->total) : status;
}

typedef att_status slot_fn(hf_job *job, att_slot slot, int64_t layer);

static att_status each_slot(hf_job *job, slot_fn *visit) {
  const att_config *c = &job->export->source->config;
  for (int64_t layer = -1; layer < c->layers; layer++)
    for (att_slot slot = 0; slot < ATT_SLOT_COUNT; slot++)
      if ((att_slots[slot].owner != ATT_OWNER_MODEL) == (layer >= 0) && att_export_has(c, slot))
        ATT_TRY(visit(job, slot, layer));
  return ATT_OK;
}

static att_status count(hf_job *job, att_slot slot, int64_t layer) {
  (void)layer;
  const att_config *c = &job->export->source->config;
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

static att_status write_all(hf_job *job, const att_folder_writer *folder) {
  static const char *const metadata[] = {"format", "pt"};
  const att_export *e = job->export;
  char path[ATT_FOLDER_PATH];
  ATT_TRY(gather(job));
  ATT_TRY(att_folder_file(path, folder, "model.safetensors"));
  ATT_TRY(att_safetensors_write(e->runtime, path, job->n, job->pointers, job->views, 1, metadata));
  ATT_TRY(write_text(job, folder, "config.json"));
  if (!e->tokenizer) return ATT_OK;
  ATT_TRY(write_text(job, folder, "tokenizer.json"));
  return e->tokenizer->chat_template.bytes ? write_text(job, folder, "chat_template.jinja")
                                           : ATT_OK;
}

att_status att_export_huggingface_files(const att_export *e, const att_folder_writer *folder) {
  hf_job job = {.export = e, .arch = att_arch_named(e->source->family)};
  const char *lacks =
      job.arch ? config_lacks(job.arch, &e->source->config) : "a family without a config.json";
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
  if (status == ATT_OK) return att_folder_commit(&folder);
  att_folder_abandon(&folder);
  return status;
}
