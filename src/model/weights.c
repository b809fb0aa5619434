/* Loading weights: from the views of a checkpoint into canonical memory. */
#include "model/weights.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "model/checkpoint.h"
#include "tensor/quantize.h"

typedef att_layer_weights owner_layer, owner_encoder;
typedef att_model_weights owner_model;

#define of_model ATT_OWNER_MODEL
#define of_layer ATT_OWNER_LAYER
#define of_encoder ATT_OWNER_ENCODER

const att_slot_info att_slots[ATT_SLOT_COUNT] = {
#define ATT_SLOT(name, text, owner, field, kind, rows, columns, parts)                             \
  {text,                                                                                           \
   of_##owner,                                                                                     \
   offsetof(owner_##owner, field),                                                                 \
   ATT_KIND_##kind,                                                                                \
   ATT_SIZE_##rows,                                                                                \
   ATT_SIZE_##columns,                                                                             \
   parts},
#include "model/slots.inc"
#undef ATT_SLOT
};

bool att_slot_exists(const att_config *config, att_slot slot) {
  return (att_config_parts(config) & att_slots[slot].parts) == att_slots[slot].parts;
}

int64_t att_slot_layers(const att_config *config, att_slot slot) {
  switch (att_slots[slot].owner) {
  case ATT_OWNER_LAYER: return config->layers;
  case ATT_OWNER_ENCODER: return config->encoder_layers;
  default: return 0;
  }
}

/* One weight of a model. */
typedef struct weight {
  att_slot slot;
  int64_t layer, rows, columns;
} weight;

typedef att_status visit_fn(const weight *w, void *context);

/* Calls `visit` for every weight that the model has. */
static att_status visit_all(const att_config *config, visit_fn *visit, void *context) {
  int64_t most = config->layers > config->encoder_layers ? config->layers : config->encoder_layers;
  for (int64_t layer = -1; layer < most; layer++)
    for (att_slot slot = 0; slot < ATT_SLOT_COUNT; slot++) {
      bool in_layer = att_slots[slot].owner != ATT_OWNER_MODEL;
      if (in_layer != (layer >= 0) || !att_slot_exists(config, slot)) continue;
      if (in_layer && layer >= att_slot_layers(config, slot)) continue;
      weight w = {slot, layer, att_config_size(config, att_slots[slot].rows),
                  att_config_size(config, att_slots[slot].columns)};
      ATT_TRY(visit(&w, context));
    }
  return ATT_OK;
}

typedef struct loader {
  const att_runtime *runtime;
  const att_checkpoint *checkpoint;
  att_model_weights *weights;
  att_progress_fn *progress;
  void *payload;
  bool widen;                    /* matrices as f32, whatever they are stored as */
  int64_t copied;                /* stored numbers, of summary.parameters */
  int64_t stored[ATT_DTYPE_END]; /* numbers of each type */
  att_weights_summary summary;
} loader;

static att_status find(att_view *out, const loader *load, const weight *w) {
  /* A tied output matrix is stored once, as the token embedding. */
  bool tied = w->slot == ATT_SLOT_OUTPUT && load->checkpoint->config.tied_output;
  return load->checkpoint->find(out, load->checkpoint, tied ? ATT_SLOT_TOKENS : w->slot, w->layer,
                                w->rows, w->columns);
}

/* Matrices that a slot is packed as. */
static int64_t pieces_of(const att_config *config, att_slot slot) {
  return att_slots[slot].kind == ATT_KIND_EXPERTS ? config->experts : 1;
}

/* The type that a matrix is packed in. */
static att_dtype packed_dtype(const loader *load, const weight *w, const att_view *view) {
  bool keeps = !load->widen && att_packed_keeps(view, w->columns);
  return keeps ? view->dtype : ATT_F32;
}

/* In memory, a matrix packed as `dtype`. */
static int64_t bytes_of(const att_config *config, const weight *w, att_dtype dtype) {
  int64_t pieces = pieces_of(config, w->slot);
  if (att_slots[w->slot].kind < ATT_KIND_MATRIX)
    return w->rows * w->columns * (int64_t)sizeof(float);
  return pieces * att_packed_bytes(dtype, w->rows / pieces, w->columns);
}

/* First pass: everything there, of the right shape and type, and how much. */
static att_status survey(const weight *w, void *context) {
  loader *load = context;
  att_view view;
  ATT_TRY(find(&view, load, w));
  if (!att_dtype_is_float(view.dtype) && !att_dtype_is_quantised(view.dtype))
    return att_fail(ATT_UNSUPPORTED, "weight %s is %s, neither floats nor quantised",
                    att_slots[w->slot].name, att_dtype_name(view.dtype));
  int64_t count = w->rows * w->columns;
  bool packed = att_slots[w->slot].kind >= ATT_KIND_MATRIX;
  load->stored[view.dtype] += count;
  load->summary.parameters += count;
  if (packed && att_packed_rounds(packed_dtype(load, w, &view))) load->summary.rounded += count;
  load->summary.bytes += bytes_of(&load->checkpoint->config, w, packed_dtype(load, w, &view));
  if (load->stored[view.dtype] > load->stored[load->summary.dtype])
    load->summary.dtype = view.dtype;
  return ATT_OK;
}

att_status att_weights_survey(att_weights_summary *out, const att_checkpoint *checkpoint) {
  loader load = {.checkpoint = checkpoint};
  ATT_TRY(visit_all(&checkpoint->config, survey, &load));
  *out = load.summary;
  return ATT_OK;
}

typedef struct sizing {
  const att_config *config;
  int64_t bytes;
} sizing;

static att_status add_f32(const weight *w, void *context) {
  sizing *s = context;
  s->bytes += bytes_of(s->config, w, ATT_F32);
  return ATT_OK;
}

int64_t att_weights_f32_bytes(const att_config *config) {
  sizing s = {.config = config};
  (void)visit_all(config, add_f32, &s); /* cannot fail */
  return s.bytes;
}

/* New memory, f32 [rows, columns], with the elements of a view of any shape. */
static att_status copy_f32(float **out, const loader *load, const weight *w, const att_view *view) {
  int64_t count = w->rows * w->columns;
  float *copy;
  ATT_TRY(att_alloc((void **)&copy, load->runtime, count, sizeof *copy, att_slots[w->slot].name));
  att_status status = att_slot_read(copy, load->checkpoint, w->slot, view);
  if (status == ATT_OK)
    *out = copy;
  else
    att_release(load->runtime, copy, count, sizeof *copy);
  return status;
}

/* Panels that are packed between two times of giving the file's pages back. */
static int64_t panels_at_once(int64_t columns) {
  int64_t panels = (4 << 20) / (ATT_PANEL * (int64_t)sizeof(float) * columns);
  return panels ? panels : 1;
}

/* rows [w->columns] of the view from `first` on, as wide as they are stored; the
 * file leaves memory as fast as the panels enter it. */
static att_status keep(att_packed *out, const loader *load, const weight *w, const att_view *view,
                       int64_t first, int64_t rows) {
  att_packed packed;
  ATT_TRY(att_packed_allocate(&packed, load->runtime, view->dtype, rows, w->columns));
  int64_t panels = (rows + ATT_PANEL - 1) / ATT_PANEL, step = panels_at_once(w->columns);
  for (int64_t begin = 0; begin < panels; begin += step) {
    int64_t end = begin + step < panels ? begin + step : panels;
    att_packed_keep(&packed, load->runtime, view, first, begin, end);
    if (load->checkpoint->forget) load->checkpoint->forget(load->checkpoint);
  }
  *out = packed;
  return ATT_OK;
}

static att_status pack_f32(att_packed *out, const loader *load, const float *numbers, int64_t rows,
                           int64_t columns) {
  att_view view = att_view_of((void *)numbers, ATT_F32, 2, (int64_t[]){rows, columns});
  return att_packed_create(out, load->runtime, &view);
}

/* A matrix, or the matrices of as many experts, one after the other. */
static att_status pack(att_packed *out, int64_t pieces, const loader *load, const weight *w,
                       const att_view *view) {
  int64_t rows = w->rows / pieces;
  att_status status = ATT_OK;
  if (packed_dtype(load, w, view) == view->dtype && att_packed_keeps(view, w->columns)) {
    for (int64_t i = 0; i < pieces && status == ATT_OK; i++)
      status = keep(&out[i], load, w, view, i * rows, rows);
    return status;
  }
  float *copy;
  ATT_TRY(copy_f32(&copy, load, w, view));
  for (int64_t i = 0; i < pieces && status == ATT_OK; i++)
    status = pack_f32(&out[i], load, copy + i * rows * w->columns, rows, w->columns);
  att_release(load->runtime, copy, w->rows * w->columns, sizeof *copy);
  return status;
}

static att_status pack_experts(att_packed **out, const loader *load, const weight *w,
                               const att_view *view) {
  int64_t n = load->checkpoint->config.experts;
  ATT_TRY(att_alloc((void **)out, load->runtime, n, sizeof **out, "experts"));
  return pack(*out, n, load, w, view);
}

/* Where a weight lives: a float pointer, an att_packed or a pointer to several. */
static void *place(att_model_weights *weights, const weight *w) {
  char *owner = (char *)weights;
  if (att_slots[w->slot].owner == ATT_OWNER_LAYER) owner = (char *)&weights->layer[w->layer];
  if (att_slots[w->slot].owner == ATT_OWNER_ENCODER) owner = (char *)&weights->encoder[w->layer];
  return owner + att_slots[w->slot].offset;
}

/* Second pass: into memory. */
static att_status copy(const weight *w, void *context) {
  loader *load = context;
  att_view view;
  ATT_TRY(find(&view, load, w));
  void *target = place(load->weights, w);
  switch (att_slots[w->slot].kind) {
  case ATT_KIND_MATRIX: ATT_TRY(pack(target, 1, load, w, &view)); break;
  case ATT_KIND_EXPERTS: ATT_TRY(pack_experts(target, load, w, &view)); break;
  default: ATT_TRY(copy_f32(target, load, w, &view));
  }
  if (load->checkpoint->forget) load->checkpoint->forget(load->checkpoint);
  load->copied += w->rows * w->columns;
  double done = (double)load->copied / (double)load->summary.parameters;
  if (load->progress && !load->progress(done, load->payload))
    return att_fail(ATT_CANCELLED, "loading was cancelled");
  return ATT_OK;
}

static att_self_attention attention_of(const att_config *config, int64_t layer) {
  bool windowed = att_layer_set_has(&config->windowed, layer);
  bool turns =
      config->position == ATT_POSITION_ROPE && !att_layer_set_has(&config->unrotated, layer);
  att_norm norm = {.kind = config->qk_norm ? ATT_NORM_RMS : ATT_NORM_NONE,
                   .eps = (float)config->norm_eps};
  att_self_attention a = {.heads = config->heads,
                          .kv_heads = config->kv_heads,
                          .head_dim = config->head_dim,
                          .q_norm = norm,
                          .k_norm = norm,
                          .rope = !turns ? ATT_NO_ROPE : windowed && config->has_local_rope,
                          .window = windowed ? config->window : 0,
                          .scale = att_config_scale(config, layer),
                          .softcap = config->softcap};
  a.q_norm.width = att_config_size(config, ATT_SIZE_QN);
  a.k_norm.width = att_config_size(config, ATT_SIZE_KN);
  return a;
}

/* A norm of the width, or none. */
static att_norm norm_of(const att_config *config, bool there) {
  return (att_norm){.kind = there ? config->norm : ATT_NORM_NONE,
                    .eps = (float)config->norm_eps,
                    .width = config->width};
}

static void configure_stack(att_layer_weights *stack, int64_t layers, const att_config *config) {
  unsigned parts = att_config_parts(config);
  for (int64_t l = 0; l < layers; l++) {
    att_layer_weights *layer = &stack[l];
    layer->norm1 = layer->norm2 = norm_of(config, parts & ATT_PART_NORM_BEFORE);
    layer->post1 = layer->post2 = norm_of(config, parts & ATT_PART_NORM_AFTER);
    layer->cross_norm = norm_of(config, true);
    layer->attention = attention_of(config, l);
    layer->cross = (att_cross_attention){.heads = config->heads,
                                         .kv_heads = config->kv_heads,
                                         .head_dim = config->head_dim,
                                         .scale = att_config_scale(config, l)};
    layer->ffn = (att_ffn){.kind = config->ffn, .activation = config->activation};
    layer->experts = (att_experts){
        .n = config->experts, .used = config->experts_used, .limit = (float)config->swiglu_limit};
  }
}

/* The numbers that say how each part computes. */
static void configure(att_model_weights *weights, const att_config *config) {
  int64_t c = config->width;
  weights->tokens = (att_embedding){.count = config->vocab, .width = c};
  weights->positions = (att_embedding){.count = att_config_size(config, ATT_SIZE_N), .width = c};
  weights->types = (att_embedding){.count = config->token_types, .width = c};
  if (config->tied_output) weights->tokens.packed = &weights->output.weight;
  weights->embed_norm = weights->encoder_norm = weights->norm = norm_of(config, true);
  if (!config->embed_norm) weights->embed_norm.kind = ATT_NORM_NONE;
  if (!att_slot_exists(config, ATT_SLOT_NORM_W)) weights->norm.kind = ATT_NORM_NONE;
  weights->distance = weights->encoder_distance =
      (att_distance){.heads = config->heads,
                     .buckets = config->relative_buckets,
                     .reach = config->relative_reach,
                     .both_sides = config->bidirectional};
  weights->encoder_distance.both_sides = true;
  configure_stack(weights->layer, config->layers, config);
  configure_stack(weights->encoder, config->encoder_layers, config);
}

static att_status fill(const loader *load) {
  const att_config *config = &load->checkpoint->config;
  att_model_weights *weights = load->weights;
  int64_t layers = config->layers + config->encoder_layers;
  ATT_TRY(
      att_alloc((void **)&weights->layer, load->runtime, layers, sizeof *weights->layer, "layers"));
  weights->encoder = weights->layer + config->layers;
  configure(weights, config);
  return visit_all(config, copy, (void *)load);
}

att_status att_weights_load(att_model_weights *out, att_weights_summary *summary,
                            const att_runtime *runtime, const att_checkpoint *checkpoint,
                            const att_open_options *options) {
  loader load = {.runtime = runtime,
                 .checkpoint = checkpoint,
                 .weights = out,
                 .progress = options->progress,
                 .payload = options->payload,
                 .widen = options->f32_weights};
  *out = (att_model_weights){0};
  ATT_TRY(visit_all(&checkpoint->config, survey, &load));
  att_status status = fill(&load);
  if (status == ATT_OK)
    *summary = load.summary;
  else
    att_weights_release(out, &checkpoint->config, runtime);
  return status;
}

att_status att_weights_rope(att_rope_table *out, const att_model_weights *weights,
                            const att_runtime *runtime, const att_rope *rope, int64_t positions) {
  att_rope fixed = att_rope_at_length(rope, positions);
  const float *table = weights->rope_divisors;
  if (rope->scaling == ATT_ROPE_LONGROPE)
    table = (double)positions > rope->original ? weights->rope_long : weights->rope_short;
  if (rope->scaling == ATT_ROPE_LONGROPE || rope->scaling == ATT_ROPE_TABLE)
    return att_rope_table_create(out, runtime, &fixed, table, positions);
  float *divisors;
  ATT_TRY(att_alloc((void **)&divisors, runtime, rope->pairs, sizeof *divisors, "divisors"));
  att_rope_divisors(divisors, &fixed);
  att_status status = att_rope_table_create(out, runtime, &fixed, divisors, positions);
  att_release(runtime, divisors, rope->pairs, sizeof *divisors);
  return status;
}

void att_weights_set(att_model_weights *weights, const att_config *config,
                     const att_runtime *runtime, att_slot slot, int64_t layer,
                     const float *values) {
  weight w = {slot, layer, att_config_size(config, att_slots[slot].rows),
              att_config_size(config, att_slots[slot].columns)};
  att_view view = att_view_of((void *)values, ATT_F32, 2, (int64_t[]){w.rows, w.columns});
  void *target = place(weights, &w);
  if (att_slots[slot].kind == ATT_KIND_MATRIX)
    (void)att_packed_fill(target, runtime, &view); /* shape and type agree */
  else
    memcpy(*(float **)target, values, (size_t)(w.rows * w.columns) * sizeof *values);
}

typedef struct releasing {
  att_model_weights *weights;
  const att_config *config;
  const att_runtime *runtime;
} releasing;

static att_status release(const weight *w, void *context) {
  releasing *with = context;
  void *target = place(with->weights, w);
  int64_t pieces = pieces_of(with->config, w->slot);
  att_packed *experts;
  switch (att_slots[w->slot].kind) {
  case ATT_KIND_MATRIX: att_packed_release(target, with->runtime); break;
  case ATT_KIND_EXPERTS:
    experts = *(att_packed **)target;
    for (int64_t e = 0; experts && e < pieces; e++) att_packed_release(&experts[e], with->runtime);
    att_release(with->runtime, experts, pieces, sizeof *experts);
    break;
  default: att_release(with->runtime, *(float **)target, w->rows * w->columns, sizeof(float));
  }
  return ATT_OK;
}

void att_weights_release(att_model_weights *weights, const att_config *config,
                         const att_runtime *runtime) {
  if (!weights->layer) return;
  releasing with = {weights, config, runtime};
  visit_all(config, release, &with);
  att_release(runtime, weights->layer, config->layers + config->encoder_layers,
              sizeof *weights->layer);
  *weights = (att_model_weights){0};
}
