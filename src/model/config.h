/* What a model is, in numbers: everything the one forward needs to know.
 *
 * A file's own settings (config.json, a llama2.c header, GGUF keys) are read
 * into this once; from here on nobody asks which family a model belongs to. */
#ifndef ATT_MODEL_CONFIG_H
#define ATT_MODEL_CONFIG_H

#include "nn/ffn.h"
#include "nn/norm.h"
#include "nn/rope.h"

typedef enum att_position_kind {
  ATT_POSITION_NONE,
  ATT_POSITION_LEARNED, /* a vector added to the token's */
  ATT_POSITION_ROPE     /* queries and keys are turned */
} att_position_kind;

typedef struct att_config {
  int64_t layers, width, heads, kv_heads, head_dim, ffn_width, vocab, context;
  att_norm_kind norm; /* before attention, before the feed-forward network, at the end */
  double norm_eps;
  att_position_kind position;
  att_rope rope; /* with ATT_POSITION_ROPE */
  att_ffn_kind ffn;
  att_activation activation;
  bool qkv_bias, out_bias, ffn_bias;
  bool tied_output;
  double scale;        /* of the scores; ATT_SCALE_DEFAULT is 1/sqrt(head_dim) */
  bool scale_by_layer; /* and divided by layer + 1 */
} att_config;

/* All fields 0 or false, scale the default. */
void att_config_init(att_config *config);

/* Refuses numbers that contradict each other or that no model has, by the
 * field's name. `where` (a file) begins the message. CORRUPT, UNSUPPORTED. */
att_status att_config_check(const att_config *config, const char *where);

/* Scale of a layer's scores. */
double att_config_scale(const att_config *config, int64_t layer);

/* Parts that a model may or may not have, as bits. */
typedef enum att_part {
  ATT_PART_ALWAYS = 0,
  ATT_PART_NORM = 1 << 0,
  ATT_PART_NORM_BIAS = 1 << 1,
  ATT_PART_QKV_BIAS = 1 << 2,
  ATT_PART_OUT_BIAS = 1 << 3,
  ATT_PART_FFN = 1 << 4,
  ATT_PART_GATE = 1 << 5,
  ATT_PART_FFN_BIAS = 1 << 6,
  ATT_PART_POSITIONS = 1 << 7,   /* a learned table of them */
  ATT_PART_ROPE = 1 << 8,        /* rotation */
  ATT_PART_ROPE_TABLE = 1 << 9,  /* the checkpoint brings divisors */
  ATT_PART_OWN_OUTPUT = 1 << 10, /* the output matrix is not the embedding */
  ATT_PART_GATE_BIAS = 1 << 11
} att_part;
unsigned att_config_parts(const att_config *config);

/* Sizes that shapes are made of, by the letter of the notation. */
typedef enum att_size {
  ATT_SIZE_1,
  ATT_SIZE_V,  /* vocabulary */
  ATT_SIZE_N,  /* positions */
  ATT_SIZE_C,  /* width */
  ATT_SIZE_F,  /* feed-forward width */
  ATT_SIZE_HD, /* query heads * head dim */
  ATT_SIZE_GD, /* key/value heads * head dim */
  ATT_SIZE_R   /* rotated pairs of a head */
} att_size;
int64_t att_config_size(const att_config *config, att_size size);

#endif
