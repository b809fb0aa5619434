/* Writing a model as GGUF, with the names, types and order of rows that
 * llama.cpp expects: vectors and learned positions stay f32, and a matrix whose
 * rows are no whole blocks of the type asked for is q8_0, or f16. */
#include <math.h>
#include <string.h>

#include "attend/sdpa.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "model/arch.h"
#include "model/export.h"
#include "model/layer_name.h"
#include "nn/rope.h"
#include "tensor/quantize.h"

/* ---- keys ---- */

static void add_id(att_gguf_list *k, const char *name, int64_t id) {
  if (id >= 0) att_gguf_add_u32(k, name, id);
}

/* att_stored_text and att_gguf_text are the same two fields. */
_Static_assert(sizeof(att_stored_text) == sizeof(att_gguf_text), "texts are alike");

static void add_tokenizer(att_gguf_list *k, const att_stored_tokenizer *s) {
  if (!s) {
    att_gguf_add_text(k, "tokenizer.ggml.model", (att_gguf_text){"none", 4});
    return;
  }
  bool byte_level = att_stored_is(s, "gpt2"), words = att_stored_is(s, "bert");
  att_gguf_add_text(k, "tokenizer.ggml.model", (att_gguf_text){s->model.bytes, s->model.n});
  att_gguf_add_text(k, "tokenizer.ggml.pre", (att_gguf_text){s->pre.bytes, s->pre.n});
  att_gguf_add(k, "tokenizer.ggml.tokens", ATT_GGUF_STRING, s->n_tokens, s->tokens);
  if (s->scores && !byte_level)
    att_gguf_add(k, "tokenizer.ggml.scores", ATT_GGUF_F32, s->n_tokens, s->scores);
  if (s->types) att_gguf_add(k, "tokenizer.ggml.token_type", ATT_GGUF_I32, s->n_tokens, s->types);
  if (byte_level) {
    static const att_stored_text no_merges = {"", 0};
    att_gguf_add(k, "tokenizer.ggml.merges", ATT_GGUF_STRING, s->n_merges,
                 s->n_merges ? s->merges : &no_merges);
  }
  if (s->charsmap.bytes)
    att_gguf_add(k, "tokenizer.ggml.precompiled_charsmap", ATT_GGUF_U8, (int64_t)s->charsmap.n,
                 s->charsmap.bytes);
  if (s->chat_template.bytes)
    att_gguf_add_text(k, "tokenizer.chat_template",
                      (att_gguf_text){s->chat_template.bytes, s->chat_template.n});
  add_id(k, "tokenizer.ggml.bos_token_id", s->bos);
  add_id(k, "tokenizer.ggml.eos_token_id", s->eos);
  add_id(k, "tokenizer.ggml.unknown_token_id", s->unknown);
  add_id(k, "tokenizer.ggml.cls_token_id", s->cls);
  add_id(k, "tokenizer.ggml.seperator_token_id", s->sep); /* the format's own spelling */
  if (s->add_bos >= 0) att_gguf_add_truth(k, "tokenizer.ggml.add_bos_token", s->add_bos);
  if (s->add_eos >= 0) att_gguf_add_truth(k, "tokenizer.ggml.add_eos_token", s->add_eos);
  if (!byte_level && !words)
    att_gguf_add_truth(k, "tokenizer.ggml.add_space_prefix", s->add_space != 0);
}

/* llama.cpp's number for what most tensors are. */
static int64_t file_type(int dtype) {
  return dtype == ATT_F16    ? 1
         : dtype == ATT_Q4_0 ? 2
         : dtype == ATT_Q8_0 ? 7
         : dtype == ATT_Q4_K ? 15 /* "mostly, medium" */
         : dtype == ATT_Q6_K ? 18
         : dtype == ATT_BF16 ? 32
                             : 0;
}

/* ---- tensors ---- */

/* A tensor of the file: one slot, or three that are fused. */
typedef struct gguf_part {
  att_slot slot;
  int64_t layer;
  int parts; /* slots in it, two apart */
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
static bool has(const att_config *c, att_slot slot, int64_t layer) {
  bool divisors = slot == ATT_SLOT_ROPE && layer < 0 && c->position == ATT_POSITION_ROPE &&
                  c->rope.scaling == ATT_ROPE_LLAMA3;
  return divisors || att_export_has_in(c, slot, layer);
}

static int64_t rows_of(const att_config *c, att_slot slot) {
  return att_config_size(c, att_slots[slot].rows);
}

static int64_t columns_of(const att_config *c, att_slot slot) {
  return att_config_size(c, att_slots[slot].columns);
}

/* Rows that are no whole blocks of 256 may be blocks of 32; else nothing is lost to
 * blocks. */
static att_dtype fitting(att_dtype dtype, int64_t columns) {
  if (columns % att_dtype_block(dtype) == 0) return dtype;
  return columns % att_dtype_block(ATT_Q8_0) ? ATT_F16 : ATT_Q8_0;
}

/* Vectors and learned positions stay f32. What attend reads and does not write comes
 * out as f32, which loses nothing. */
static att_status dtype_of(att_dtype *out, const gguf_job *job, const gguf_part *p) {
  const att_export *e = job->export;
  int64_t rows = rows_of(&e->config, p->slot), columns = columns_of(&e->config, p->slot);
  int dtype = e->dtype;
  *out = ATT_F32;
  if (att_slots[p->slot].kind < ATT_KIND_MATRIX && p->slot != ATT_SLOT_TOKENS) return ATT_OK;
  if (dtype == ATT_KEEP_DTYPE) {
    att_view view;
    ATT_TRY(e->source->find(&view, e->source, p->slot, p->layer, rows, columns));
    bool written =
        view.dtype == ATT_F16 || view.dtype == ATT_BF16 || att_dtype_is_written(view.dtype);
    dtype = written ? view.dtype : ATT_F32;
  }
  *out = fitting((att_dtype)dtype, columns);
  return ATT_OK;
}

static att_status plan_slot(gguf_job *job, att_slot slot, int64_t layer) {
  const att_config *c = &job->export->config;
  att_stored_name stored = att_gguf_stored(job->family, slot);
  if (stored.part > 0) return ATT_OK;
  gguf_part *p = &job->parts[job->n];
  if (!stored.name || !att_layer_name_write(p->name, sizeof p->name, stored.name, layer))
    return att_fail(ATT_UNSUPPORTED, "GGUF has no %s", att_slots[slot].name);
  p->slot = slot;
  p->layer = layer;
  p->parts = stored.parts ? stored.parts : 1;
  att_gguf_piece *piece = &job->pieces[job->n++];
  *piece = (att_gguf_piece){.name = p->name};
  piece->ndim = att_stored_shape(piece->shape, &stored, c, slot);
  for (int i = 0; i < p->parts; i++) {
    att_slot each = (att_slot)((int)slot + 2 * i);
    int64_t count = rows_of(c, each) * columns_of(c, each);
    job->total += count;
    if (slot == ATT_SLOT_POSITIONS) count = rows_of(&job->export->source->config, slot) * c->width;
    if (count > job->largest) job->largest = count;
  }
  return dtype_of(&piece->dtype, job, p);
}

static att_status plan(gguf_job *job) {
  const att_runtime *r = job->export->runtime;
  int64_t layers = att_export_layers(&job->export->config);
  job->room = (layers + 1) * ATT_SLOT_COUNT;
  ATT_TRY(att_alloc((void **)&job->parts, r, job->room, sizeof *job->parts, "a plan"));
  ATT_TRY(att_alloc((void **)&job->pieces, r, job->room, sizeof *job->pieces, "a plan"));
  for (int64_t layer = -1; layer < layers; layer++)
    for (att_slot slot = 0; slot < ATT_SLOT_COUNT; slot++)
      if (has(&job->export->config, slot, layer)) ATT_TRY(plan_slot(job, slot, layer));
  ATT_TRY(att_alloc((void **)&job->rows, r, job->largest, sizeof(float), "a weight"));
  return att_alloc((void **)&job->turned, r, job->largest, sizeof(float), "a weight");
}

static void put_as(att_gguf_writer *w, const float *x, int64_t n, att_dtype dtype) {
  enum { STRIP = 1024 };
  uint16_t half[STRIP];
  unsigned char blocks[STRIP / ATT_BLOCK_32 * ATT_Q8_0_BYTES]; /* none is larger a number */
  if (dtype == ATT_F32) {
    att_gguf_put(w, x, n * (int64_t)sizeof *x);
    return;
  }
  for (int64_t at = 0; at < n; at += STRIP) {
    int64_t m = n - at < STRIP ? n - at : STRIP;
    if (att_dtype_is_quantised(dtype)) {
      att_blocks_from_f32(blocks, dtype, x + at, m);
      att_gguf_put(w, blocks, m / att_dtype_block(dtype) * att_dtype_bytes(dtype));
      continue;
    }
    for (int64_t i = 0; i < m; i++)
      half[i] = dtype == ATT_F16 ? att_f32_to_f16(x[at + i]) : att_f32_to_bf16(x[at + i]);
    att_gguf_put(w, half, m * (int64_t)sizeof *half);
  }
}

/* Rows in half-split order to rows whose rotary pairs are neighbours. */
static att_status turn(const gguf_job *job, int64_t heads, int64_t columns) {
  int64_t dim = job->export->config.head_dim;
  att_view from = att_view_of(job->rows, ATT_F32, 4, (int64_t[]){heads, 2, dim / 2, columns});
  from = att_view_transpose(from, 1, 2);
  att_view to = att_view_of(job->turned, ATT_F32, 4, from.shape);
  return att_view_copy(&to, &from);
}

/* No key says the factor of tied logits: files have it in the norm before them. */
static void scale_logits(const gguf_job *job, att_slot slot, int64_t n) {
  float factor = (float)job->export->config.logit_scale;
  if (slot != ATT_SLOT_NORM_W || factor == 1) return;
  for (int64_t i = 0; i < n; i++) job->rows[i] *= factor;
}

/* Queries, or the norm that they go through, times what stands for their scale. */
static void scale_queries(const gguf_job *job, att_slot slot, int64_t n) {
  const att_config *c = &job->export->config;
  bool normed = c->qk_norm != ATT_QK_NORM_NONE;
  bool queries = normed ? slot == ATT_SLOT_Q_NORM : slot == ATT_SLOT_Q_W || slot == ATT_SLOT_Q_B;
  if (!queries || !job->family->query_factor) return;
  float factor = (float)job->family->query_factor(c);
  for (int64_t i = 0; i < n; i++) job->rows[i] *= factor;
}

static att_status put_weight(const gguf_job *job, att_gguf_writer *w, const gguf_part *p,
                             att_slot slot, att_dtype dtype) {
  const att_checkpoint *source = job->export->source;
  const att_config *c = &job->export->config;
  int64_t rows = rows_of(c, slot), columns = columns_of(c, slot), skipped = 0;
  att_dtype stored;
  if (slot == ATT_SLOT_ROPE && c->rope.scaling == ATT_ROPE_LLAMA3)
    att_rope_divisors(job->rows, &c->rope);
  else
    ATT_TRY(att_export_weight(job->rows, &stored, source, slot, p->layer, rows, columns));
  scale_queries(job, slot, rows * columns);
  scale_logits(job, slot, rows * columns);
  if (slot == ATT_SLOT_POSITIONS) skipped = source->config.first_position * columns;
  bool q = slot == ATT_SLOT_Q_W || slot == ATT_SLOT_Q_B;
  bool k = slot == ATT_SLOT_K_W || slot == ATT_SLOT_K_B;
  bool turns = job->family->pairs_adjacent && (q || k);
  if (turns) ATT_TRY(turn(job, q ? c->heads : c->kv_heads, columns));
  put_as(w, turns ? job->turned : job->rows + skipped, rows * columns, dtype);
  return ATT_OK;
}

static att_status put_all(const gguf_job *job, att_gguf_writer *w) {
  const att_config *c = &job->export->config;
  int64_t done = 0;
  for (int64_t i = 0; i < job->n; i++) {
    const gguf_part *p = &job->parts[i];
    for (int part = 0; part < p->parts; part++) {
      att_slot slot = (att_slot)((int)p->slot + 2 * part);
      ATT_TRY(put_weight(job, w, p, slot, job->pieces[i].dtype));
      done += rows_of(c, slot) * columns_of(c, slot);
    }
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
  int64_t counts[ATT_DTYPE_END] = {0};
  att_dtype most = ATT_F32;
  for (int64_t i = 0; i < job->n; i++) {
    int64_t count = 1;
    for (int d = 0; d < job->pieces[i].ndim; d++) count *= job->pieces[i].shape[d];
    counts[job->pieces[i].dtype] += count;
    if (counts[job->pieces[i].dtype] > counts[most]) most = job->pieces[i].dtype;
  }
  return most;
}

static void add_all(att_gguf_list *k, const gguf_job *job) {
  const att_checkpoint *source = job->export->source;
  const char *name = base_name(source->path);
  att_dtype most = most_used(job);
  *k = (att_gguf_list){.family = job->family->name};
  att_gguf_add_text(k, "general.architecture", (att_gguf_text){k->family, strlen(k->family)});
  att_gguf_add_text(k, "general.name", (att_gguf_text){name, strlen(name)});
  att_gguf_add_u32(k, "general.file_type", file_type(most));
  if (att_dtype_is_quantised(most)) att_gguf_add_u32(k, "general.quantization_version", 2);
  job->family->write(k, &job->export->config);
  add_tokenizer(k, job->export->tokenizer);
}

static att_status write_file(gguf_job *job) {
  const att_export *e = job->export;
  att_gguf_list keys;
  ATT_TRY(plan(job));
  add_all(&keys, job);
  att_gguf_writer writer;
  ATT_TRY(att_gguf_create(&writer, e->runtime, e->path, keys.entries, keys.n, job->pieces, job->n));
  att_status status = put_all(job, &writer);
  if (status == ATT_OK) return att_gguf_commit(&writer, e->runtime);
  att_gguf_abandon(&writer, e->runtime);
  return status;
}

/* Multiplying by it rounds nothing. */
static bool exact_power(double factor) {
  int exponent;
  return frexp(factor, &exponent) == 0.5;
}

/* What GGUF cannot say of this model; NULL if nothing. */
static const char *gguf_lacks(const att_gguf_family *family, const att_config *c) {
  if (c->ffn == ATT_FFN_GATED && c->activation != family->activation)
    return "an activation of its own";
  double factor = family->query_factor ? family->query_factor(c) : 1;
  if (family->query_factor && !exact_power(factor))
    return "a scale that is no power of two times the usual";
  double usual = family->scale > 0 ? family->scale : ATT_SCALE_DEFAULT;
  if (!family->query_factor && c->scale != usual) return "a scale of its own";
  return family->lacks(c);
}

att_status att_export_gguf(const att_export *export) {
  att_export copy = *export;
  const att_export *e = &copy;
  const att_arch *arch = att_arch_named(e->source->family);
  if (!arch || !arch->gguf)
    return att_fail(ATT_UNSUPPORTED, "%s is of the family %s, which GGUF has not", e->source->path,
                    e->source->family);
  gguf_job job = {.export = e, .family = arch->gguf};
  copy.config.first_position = 0; /* rows that no text uses are not written */
  const char *lacks = gguf_lacks(job.family, &e->config);
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
