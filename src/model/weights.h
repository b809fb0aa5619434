/* The weights of a model in memory, in one canonical layout.
 *
 * Matrices are packed [out, in] for the product, whatever way a file stores
 * them; rotary queries and keys are in half-split order (pairs i and i+D/2).
 * So a checkpoint gives the same bits from each format, and nothing after this
 * file knows formats. slots.inc lists all weights and says where each lives. */
#ifndef ATT_MODEL_WEIGHTS_H
#define ATT_MODEL_WEIGHTS_H

#include "attend/model.h"
#include "model/config.h"
#include "nn/cross_attention.h"
#include "nn/distance.h"
#include "nn/embedding.h"
#include "nn/experts.h"
#include "nn/self_attention.h"

typedef struct att_layer_weights {
  att_norm norm1; /* of attention's input, of its output; kind NONE: not normed */
  att_norm post1;
  att_self_attention attention;
  att_norm cross_norm;
  att_cross_attention cross; /* of a decoder with an encoder */
  att_norm norm2;
  att_norm post2;
  att_ffn ffn;
  att_experts experts; /* instead of the one network */
} att_layer_weights;

typedef struct att_model_weights {
  att_embedding tokens;    /* [V,C] */
  att_embedding positions; /* [N,C] if learned */
  att_embedding types;     /* [Y,C] if there are token types */
  att_norm embed_norm;
  att_distance distance; /* of relative positions */
  float *rope_divisors;  /* [R] where the checkpoint brings them; for longrope */
  float *rope_short, *rope_long;
  int64_t layers;
  att_layer_weights *layer;   /* [layers] */
  att_layer_weights *encoder; /* [encoder_layers], behind those in the same memory */
  att_distance encoder_distance;
  att_norm encoder_norm;
  att_linear pooler;
  att_linear head; /* before the norm, of a model that fills gaps */
  att_norm norm;
  att_linear output; /* [V,C]; with a tied output `tokens` reads rows from it */
} att_model_weights;

typedef enum att_slot {
#define ATT_SLOT(name, text, owner, field, kind, rows, columns, parts) ATT_SLOT_##name,
#include "model/slots.inc"
#undef ATT_SLOT
  ATT_SLOT_COUNT
} att_slot;

typedef enum att_slot_kind {
  ATT_KIND_VECTOR,
  ATT_KIND_TABLE,
  ATT_KIND_MATRIX,
  ATT_KIND_EXPERTS
} att_slot_kind;

/* The model, or a layer of a stack. */
typedef enum att_owner { ATT_OWNER_MODEL, ATT_OWNER_LAYER, ATT_OWNER_ENCODER } att_owner;

/* A row of slots.inc. */
typedef struct att_slot_info {
  const char *name;
  att_owner owner;
  size_t offset; /* of the float pointer, att_packed or pointer to such, in its owner */
  att_slot_kind kind;
  att_size rows, columns;
  unsigned parts;
} att_slot_info;
extern const att_slot_info att_slots[ATT_SLOT_COUNT];

/* True if a model of this configuration has the weight. */
bool att_slot_exists(const att_config *config, att_slot slot);

/* Layers in which a slot lies: 0 of a model's own, which has the layer -1. */
int64_t att_slot_layers(const att_config *config, att_slot slot);

struct att_checkpoint;

/* What loading found out. */
typedef struct att_weights_summary {
  int64_t parameters; /* stored numbers */
  int64_t bytes;      /* in memory */
  int64_t rounded;    /* numbers whose products round x to 8 bits */
  att_dtype dtype;    /* of most stored numbers */
} att_weights_summary;

/* Called with 0 … 1; false cancels. */
typedef bool att_progress_fn(double done, void *payload);

/* Finds every weight and checks it, without reading one. */
att_status att_weights_survey(att_weights_summary *out, const struct att_checkpoint *checkpoint);

/* Bytes in memory of a model of this configuration that is opened with f32_weights. */
int64_t att_weights_f32_bytes(const att_config *config);

/* Takes all weights from a checkpoint: first finds every one and checks its
 * shape, then copies. Matrices keep the width they are stored in where the product
 * can read it, unless the options want f32. The checkpoint is not needed afterwards.
 * Parts of `out` point to each other, so it stays where it is. */
att_status att_weights_load(att_model_weights *out, att_weights_summary *summary,
                            const att_runtime *runtime, const struct att_checkpoint *checkpoint,
                            const att_open_options *options);

/* Replaces one weight by values [rows, columns] in canonical layout, in the
 * memory it has. For training, which owns its model, opened with f32_weights: between
 * its steps only. */
void att_weights_set(att_model_weights *weights, const att_config *config,
                     const att_runtime *runtime, att_slot slot, int64_t layer, const float *values);

/* The rotation of a text of `positions`: what a rotation makes of the length is
 * decided here. The caller releases the table. */
att_status att_weights_rope(att_rope_table *out, const att_model_weights *weights,
                            const att_runtime *runtime, const att_rope *rope, int64_t positions);

void att_weights_release(att_model_weights *weights, const att_config *config,
                         const att_runtime *runtime);

#endif
