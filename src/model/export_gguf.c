/* Writing a model as GGUF, with the names, types and order of rows that
 * llama.cpp expects: vectors and learned positions stay f32, and a matrix whose
 * rows are no whole blocks is f16 where q8_0 is asked for. */
#include <stdio.h>
#include <string.h>

#include "attend/sdpa.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "model/export.h"
#include "model/gguf_family.h"
#include "model/layer_name.h"
#include "nn/rope.h"
#include "tensor/quantize.h"

/* ---- keys ---- */

enum { MOST_KEYS = 48, KEY_BYTES = 64 };

/* Entries and what they point to. */
typedef struct key_list {
  const char *family;
  int n;
  att_gguf_entry entries[MOST_KEYS];
  char names[MOST_KEYS][KEY_BYTES];
  union {
    uint32_t u32;
    float f32;
    bool truth;
    att_gguf_text text;
  } values[MOST_KEYS];
} key_list;

static void add(key_list *k, const char *name, att_gguf_type type, int64_t count,
                const void *data) {
  att_gguf_entry *e = &k->entries[k->n];
  snprintf(k->names[k->n], KEY_BYTES, "%s", name);
  *e = (att_gguf_entry){k->names[k->n], type, count >= 0, count >= 0 ? count : 1, data};
  if (!data) e->data = &k->values[k->n];
  k->n++;
}

static void add_u32(key_list *k, const char *name, int64_t value) {
  k->values[k->n].u32 = (uint32_t)value;
  add(k, name, ATT_GGUF_U32, -1, NULL);
}

static void add_f32(key_list *k, const char *name, double value) {
  k->values[k->n].f32 = (float)value;
  add(k, name, ATT_GGUF_F32, -1, NULL);
}

static void add_bool(key_list *k, const char *name, bool value) {
  k->values[k->n].truth = value;
  add(k, name, ATT_GGUF_BOOL, -1, NULL);
}

static void add_text(key_list *k, const char *name, att_gguf_text text) {
  k->values[k->n].text = text;
  add(k, name, ATT_GGUF_STRING, -1, NULL);
}

/* "family.name" */
static const char *own(key_list *k, char out[KEY_BYTES], const char *name) {
  snprintf(out, KEY_BYTES, "%s.%s", k->family, name);
  return out;
}

static void add_rope(key_list *k, const att_rope *rope) {
  char key[KEY_BYTES];
  add_u32(k, own(k, key, "rope.dimension_count"), 2 * rope->pairs);
  add_f32(k, own(k, key, "rope.freq_base"), rope->theta);
  if (rope->scaling != ATT_ROPE_LINEAR && rope->scaling != ATT_ROPE_YARN) return;
  bool linear = rope->scaling == ATT_ROPE_LINEAR;
  att_gguf_text type = linear ? (att_gguf_text){"linear", 6} : (att_gguf_text){"yarn", 4};
  add_text(k, own(k, key, "rope.scaling.type"), type);
  add_f32(k, own(k, key, "rope.scaling.factor"), rope->factor);
  if (linear) return;
  add_u32(k, own(k, key, "rope.scaling.original_context_length"), (int64_t)rope->original);
  add_f32(k, own(k, key, "rope.scaling.yarn_beta_fast"), rope->beta_fast);
  add_f32(k, own(k, key, "rope.scaling.yarn_beta_slow"), rope->beta_slow);
}

static void add_config(key_list *k, const att_config *c) {
  char key[KEY_BYTES];
  bool rms = c->norm == ATT_NORM_RMS;
  add_u32(k, own(k, key, "vocab_size"), c->vocab);
  add_u32(k, own(k, key, "context_length"), c->context);
  add_u32(k, own(k, key, "embedding_length"), c->width);
  add_u32(k, own(k, key, "block_count"), c->layers);
  add_u32(k, own(k, key, "feed_forward_length"), c->ffn_width);
  add_u32(k, own(k, key, "attention.head_count"), c->heads);
  add_u32(k, own(k, key, "attention.head_count_kv"), c->kv_heads);
  add_f32(k, own(k, key, rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon"),
          c->norm_eps);
  if (c->position != ATT_POSITION_ROPE) return;
  add_u32(k, own(k, key, "attention.key_length"), c->head_dim);
  add_u32(k, own(k, key, "attention.value_length"), c->head_dim);
  add_rope(k, &c->rope);
}

static void add_id(key_list *k, const char *name, int64_t id) {
  if (id >= 0) add_u32(k, name, id);
}

/* att_stored_text and att_gguf_text are the same two fields. */
_Static_assert(sizeof(att_stored_text) == sizeof(att_gguf_text), "texts are alike");

static void add_tokenizer(key_list *k, const att_stored_tokenizer *s) {
  if (!s) {
    add_text(k, "tokenizer.ggml.model", (att_gguf_text){"none", 4});
    return;
  }
  bool byte_level = s->model.n == 4;
  add_text(k, "tokenizer.ggml.model", (att_gguf_text){s->model.bytes, s->model.n});
  add_text(k, "tokenizer.ggml.pre", (att_gguf_text){s->pre.bytes, s->pre.n});
  add(k, "tokenizer.ggml.tokens", ATT_GGUF_STRING, s->n_tokens, s->tokens);
  if (s->scores && !byte_level)
    add(k, "tokenizer.ggml.scores", ATT_GGUF_F32, s->n_tokens, s->scores);
  if (s->types) add(k, "tokenizer.ggml.token_type", ATT_GGUF_I32, s->n_tokens, s->types);
  if (byte_level) {
    static const att_stored_text no_merges = {"", 0};
    add(k, "tokenizer.ggml.merges", ATT_GGUF_STRING, s->n_merges,
        s->n_merges ? s->merges : &no_merges);
  }
  if (s->chat_template.bytes)
    add_text(k, "tokenizer.chat_template",
             (att_gguf_text){s->chat_template.bytes, s->chat_template.n});
  add_id(k, "tokenizer.ggml.bos_token_id", s->bos);
  add_id(k, "tokenizer.ggml.eos_token_id", s->eos);
  add_id(k, "tokenizer.ggml.unknown_token_id", s->unknown);
  if (s->add_bos >= 0) add_bool(k, "tokenizer.ggml.add_bos_token", s->add_bos);
  if (s->add_eos >= 0) add_bool(k, "tokenizer.ggml.add_eos_token", s->add_eos);
  if (!byte_level) add_bool(k, "tokenizer.ggml.add_space_prefix", s->add_space != 0);
}

/* llama.cpp's number for what most tensors are. */
static int64_t file_type(int dtype) {
  return dtype == ATT_F16 ? 1 : dtype == ATT_Q8_0 ? 7 : dtype == ATT_BF16 ? 32 : 0;
}

/* ---- tensors ---- */

/* A tensor of the file: one slot, or three that are fused. */
typedef struct gguf_part {
  att_slot slot;
  int64_t layer, rows, columns; /* of one of the three */
  int parts;
  char name[ATT_GGUF_NAME_BYTES];
} gguf_part;

typedef struct gguf_job {
  const att_export *export;
  const att_gguf_family *family;
  gguf_part *parts;
  att_gguf_piece *pieces;
  int64_t n, room, largest, total; /* numbers of the largest weight, of all */
  float *rows, *turned;            /* [largest] */
} gguf_job;

/* A slot that is written as divisors even where they follow from settings. */
static bool has(const att_config *c, att_slot slot) {
  return att_export_has(c, slot) || (slot == ATT_SLOT_ROPE && c->position == ATT_POSITION_ROPE &&
                                     c->rope.scaling == ATT_ROPE_LLAMA3);
}

static att_status dtype_of(att_dtype *out, const gguf_job *job, const gguf_part *p) {
  *out = ATT_F32;
  if (att_slots[p->slot].kind == ATT_KIND_VECTOR || p->slot == ATT_SLOT_POSITIONS) return ATT_OK;
  int dtype = job->export->dtype;
  if (dtype == ATT_KEEP_DTYPE) {
    att_view view;
    const att_checkpoint *source = job->export->source;
    ATT_TRY(source->find(&view, source, p->slot, p->layer, p->rows, p->columns));
    dtype = view.dtype == ATT_F64 ? ATT_F32 : view.dtype;
  }
  *out = dtype == ATT_Q8_0 && p->columns % ATT_Q8_0_BLOCK ? ATT_F16 : (att_dtype)dtype;
  return ATT_OK;
}

static att_status plan_slot(gguf_job *job, att_slot slot, int64_t layer) {
  const att_config *c = &job->export->source->config;
  int part;
  const char *pattern = att_gguf_slot_name(&part, job->family, slot);
  if (!has(c, slot) || part > 0) return ATT_OK;
  gguf_part *p = &job->parts[job->n];
  if (!pattern || !att_layer_name_write(p->name, sizeof p->name, pattern, layer))
    return att_fail(ATT_UNSUPPORTED, "GGUF has no %s", att_slots[slot].name);
  p->slot = slot;
  p->layer = layer;
  p->rows = att_config_size(c, att_slots[slot].rows);
  p->columns = att_config_size(c, att_slots[slot].columns);
  p->parts = part < 0 ? 1 : 3;
  bool vector = att_slots[slot].kind == ATT_KIND_VECTOR;
  att_gguf_piece *piece = &job->pieces[job->n++];
  *piece = (att_gguf_piece){.name = p->name,
                            .ndim = vector ? 1 : 2,
                            .shape = {p->parts * p->rows, vector ? 0 : p->columns}};
  int64_t count = p->rows * p->columns;
  job->total += p->parts * count;
  if (count > job->largest) job->largest = count;
  return dtype_of(&piece->dtype, job, p);
}

static att_status plan(gguf_job *job) {
  const att_runtime *r = job->export->runtime;
  int64_t layers = job->export->source->config.layers;
  job->room = (layers + 1) * ATT_SLOT_COUNT;
  ATT_TRY(att_alloc((void **)&job->parts, r, job->room, sizeof *job->parts, "a plan"));
  ATT_TRY(att_alloc((void **)&job->pieces, r, job->room, sizeof *job->pieces, "a plan"));
  for (int64_t layer = -1; layer < layers; layer++)
    for (att_slot slot = 0; slot < ATT_SLOT_COUNT; slot++)
      if ((att_slots[slot].owner != ATT_OWNER_MODEL) == (layer >= 0))
        ATT_TRY(plan_slot(job, slot, layer));
  ATT_TRY(att_alloc((void **)&job->rows, r, job->largest, sizeof(float), "a weight"));
  return att_alloc((void **)&job->turned, r, job->largest, sizeof(float), "a weight");
}

static void put_as(att_gguf_writer *w, const float *x, int64_t n, att_dtype dtype) {
  enum { STRIP = 1024 };
  uint16_t half[STRIP];
  unsigned char blocks[STRIP / ATT_Q8_0_BLOCK * ATT_Q8_0_BYTES];
  if (dtype == ATT_F32) {
    att_gguf_put(w, x, n * (int64_t)sizeof *x);
    return;
  }
  for (int64_t at = 0; at < n; at += STRIP) {
    int64_t m = n - at < STRIP ? n - at : STRIP;
    if (dtype == ATT_Q8_0) {
      att_q8_0_from_f32(blocks, x + at, m);
      att_gguf_put(w, blocks, m / ATT_Q8_0_BLOCK * ATT_Q8_0_BYTES);
      continue;
    }
    for (int64_t i = 0; i < m; i++)
      half[i] = dtype == ATT_F16 ? att_f32_to_f16(x[at + i]) : att_f32_to_bf16(x[at + i]);
    att_gguf_put(w, half, m * (int64_t)sizeof *half);
  }
}

/* Rows in half-split order to rows whose rotary pairs are neighbours. */
static att_status turn(const gguf_job *job, const gguf_part *p, int64_t heads) {
  int64_t dim = job->export->source->config.head_dim, columns = p->columns;
  att_view from = att_view_of(job->rows, ATT_F32, 4, (int64_t[]){heads, 2, dim / 2, columns});
  from = att_view_transpose(from, 1, 2);
  att_view to = att_view_of(job->turned, ATT_F32, 4, from.shape);
  return att_view_copy(&to, &from);
}

static att_status put_weight(const gguf_job *job, att_gguf_writer *w, const gguf_part *p,
                             att_slot slot, att_dtype dtype) {
  const att_checkpoint *source = job->export->source;
  const att_config *c = &source->config;
  att_dtype stored;
  if (slot == ATT_SLOT_ROPE && c->rope.scaling == ATT_ROPE_LLAMA3)
    att_rope_divisors(job->rows, &c->rope);
  else
    ATT_TRY(att_export_weight(job->rows, &stored, source, slot, p->layer, p->rows, p->columns));
  bool q = slot == ATT_SLOT_Q_W || slot == ATT_SLOT_Q_B;
  bool k = slot == ATT_SLOT_K_W || slot == ATT_SLOT_K_B;
  bool turns = job->family->pairs_adjacent && (q || k);
  if (turns) ATT_TRY(turn(job, p, q ? c->heads : c->kv_heads));
  put_as(w, turns ? job->turned : job->rows, p->rows * p->columns, dtype);
  return ATT_OK;
}

static att_slot fused_slot(att_slot first, int part) {
  static const att_slot weights[] = {ATT_SLOT_Q_W, ATT_SLOT_K_W, ATT_SLOT_V_W};
  static const att_slot biases[] = {ATT_SLOT_Q_B, ATT_SLOT_K_B, ATT_SLOT_V_B};
  if (part == 0) return first;
  return first == ATT_SLOT_Q_W ? weights[part] : biases[part];
}

static att_status put_all(const gguf_job *job, att_gguf_writer *w) {
  int64_t done = 0;
  for (int64_t i = 0; i < job->n; i++) {
    const gguf_part *p = &job->parts[i];
    for (int part = 0; part < p->parts; part++)
      ATT_TRY(put_weight(job, w, p, fused_slot(p->slot, part), job->pieces[i].dtype));
    done += p->parts * p->rows * p->columns;
    ATT_TRY(att_export_report(job->export, done, job->total));
  }
  return ATT_OK;
}

/* ---- the file ---- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash && slash[1] ? slash + 1 : path;
}

static att_dtype most_used(const gguf_job *job) {
  int64_t counts[ATT_Q8_0 + 1] = {0};
  att_dtype most = ATT_F32;
  for (int64_t i = 0; i < job->n; i++) {
    const gguf_part *p = &job->parts[i];
    counts[job->pieces[i].dtype] += p->parts * p->rows * p->columns;
    if (counts[job->pieces[i].dtype] > counts[most]) most = job->pieces[i].dtype;
  }
  return most;
}

static void add_all(key_list *k, const gguf_job *job) {
  const att_checkpoint *source = job->export->source;
  const char *name = base_name(source->path);
  att_dtype most = most_used(job);
  *k = (key_list){.family = job->family->name};
  add_text(k, "general.architecture", (att_gguf_text){k->family, strlen(k->family)});
  add_text(k, "general.name", (att_gguf_text){name, strlen(name)});
  add_u32(k, "general.file_type", file_type(most));
  if (most == ATT_Q8_0) add_u32(k, "general.quantization_version", 2);
  add_config(k, &source->config);
  add_tokenizer(k, job->export->tokenizer);
}

static att_status write_file(gguf_job *job) {
  const att_export *e = job->export;
  key_list keys;
  ATT_TRY(plan(job));
  add_all(&keys, job);
  att_gguf_writer writer;
  ATT_TRY(att_gguf_create(&writer, e->runtime, e->path, keys.entries, keys.n, job->pieces, job->n));
  att_status status = put_all(job, &writer);
  if (status == ATT_OK) return att_gguf_commit(&writer, e->runtime);
  att_gguf_abandon(&writer, e->runtime);
  return status;
}

att_status att_export_gguf(const att_export *e) {
  gguf_job job = {.export = e};
  const char *family = e->source->family;
  ATT_TRY(att_gguf_family_find(&job.family, (att_gguf_text){family, strlen(family)}, e->path));
  const char *lacks = job.family->lacks(&e->source->config);
  if (lacks)
    return att_fail(ATT_UNSUPPORTED, "%s has %s, which GGUF has no key for", e->source->path,
                    lacks);
  att_status status = write_file(&job);
  att_release(e->runtime, job.parts, job.room, sizeof *job.parts);
  att_release(e->runtime, job.pieces, job.room, sizeof *job.pieces);
  att_release(e->runtime, job.rows, job.largest, sizeof(float));
  att_release(e->runtime, job.turned, job.largest, sizeof(float));
  return status;
}
