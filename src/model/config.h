/* What a model is, in numbers: everything the one forward needs to know.
 *
 * A file's own settings (config.json, a llama2.c header, GGUF keys) are read
 * into this once; from here on nobody asks which family a model belongs to. */
#ifndef ATT_MODEL_CONFIG_H
#define ATT_MODEL_CONFIG_H

#include <stdbool.h>

#include "nn/ffn.h"
#include "nn/norm.h"
#include "nn/rope.h"

typedef enum att_position_kind {
  ATT_POSITION_NONE,
  ATT_POSITION_LEARNED, /* a vector added to the token's */
  ATT_POSITION_ROPE,    /* queries and keys are turned */
  ATT_POSITION_RELATIVE /* the distance of query and key is a bias of the score */
} att_position_kind;

/* Where a block normalises; x is the residual stream, f one of its parts. */
typedef enum att_norm_place {
  ATT_NORM_BEFORE,   /* x + f(norm(x)) */
  ATT_NORM_AFTER,    /* x + norm(f(x)) */
  ATT_NORM_AROUND,   /* x + norm'(f(norm(x))) */
  ATT_NORM_AFTER_SUM /* norm(x + f(x)): the first transformers, BERT */
} att_norm_place;

/* Norms of queries and keys, before they are turned. */
typedef enum att_qk_norm {
  ATT_QK_NORM_NONE,
  ATT_QK_NORM_HEAD, /* each head by itself, all with the same weight [D] */
  ATT_QK_NORM_ROW   /* all heads of a row together, weight [H D] or [G D] */
} att_qk_norm;

#define ATT_MOST_LAYERS 1024
#define ATT_MOST_PAIRS 256 /* of a table of divisors in a config.json */

/* Some of a model's layers. */
typedef struct att_layer_set {
  uint64_t bits[ATT_MOST_LAYERS / 64];
} att_layer_set;
bool att_layer_set_has(const att_layer_set *set, int64_t layer);
/* A layer above the most is none that att_config_check lets pass. */
void att_layer_set_add(att_layer_set *set, int64_t layer);

typedef struct att_config {
  int64_t layers, width, heads, kv_heads, head_dim, ffn_width, vocab, context;
  att_norm_kind norm; /* in the blocks, where norm_place says, and at the end */
  att_norm_place norm_place;
  double norm_eps;
  att_qk_norm qk_norm; /* RMS norms, with norm_eps */
  bool parallel;       /* both parts of a block read its input: x + f(x) + g(x) */
  att_position_kind position;
  att_rope rope;                          /* with ATT_POSITION_ROPE */
  float long_divisors[2][ATT_MOST_PAIRS]; /* of longrope, short and long, from a config.json */
  att_layer_set unrotated;                /* layers that turn nothing all the same */
  int64_t window; /* keys that a query of these layers sees, its own included: */
  att_layer_set windowed;
  bool has_local_rope; /* these layers turn by another rotation */
  att_rope local_rope; /* with as many pairs as `rope` */
  att_ffn_kind ffn;
  att_activation activation;
  int64_t experts, experts_used; /* with ATT_FFN_EXPERTS */
  double swiglu_limit;           /* with ATT_SWIGLU_CLAMPED */
  bool qkv_bias, out_bias, ffn_bias;
  bool tied_output;
  double embed_scale;            /* of the tokens' vectors; 1 */
  double scale;                  /* of the scores; ATT_SCALE_DEFAULT is 1/sqrt(head_dim) */
  bool scale_by_layer;           /* and divided by layer + 1 */
  double softcap, final_softcap; /* of scores and logits; ATT_SOFTCAP_NONE */
  bool sinks;                    /* one more logit a head in the softmax's denominator */
  double logit_scale;            /* of the logits; 1 */

  /* A model that reads a whole text at once: an encoder (layers) or, with
   * encoder_layers, an encoder with a decoder (layers) that looks at it. */
  bool bidirectional; /* every token sees every other: `layers` are an encoder */
  int64_t encoder_layers;
  int64_t token_types;    /* kinds of tokens with a vector of their own; 0: none */
  int64_t first_position; /* row of the position table where a text begins */
  bool embed_norm;        /* a norm of the sum of embeddings */
  bool pooler;            /* tanh(W x + b) of the first token */
  int pooling;            /* how files say that a text becomes a vector (att_pooling) … */
  bool unit_length;       /* … which is made 1 long */
  bool fill_head;         /* predicts tokens: W act(norm(dense x)) + b */
  int64_t relative_buckets, relative_reach; /* of ATT_POSITION_RELATIVE */
  int32_t start_token;                      /* that a decoder begins with */
} att_config;

/* All fields 0 or false; scales, caps and magnitudes such that they do nothing. */
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
  ATT_PART_GATE_BIAS = 1 << 11,
  ATT_PART_NORM_LAST = 1 << 22,  /* a norm behind the last block */
  ATT_PART_NORM_EMBED = 1 << 23, /* and one before the first */
  ATT_PART_TYPES = 1 << 24,      /* vectors of token types */
  ATT_PART_POOLER = 1 << 25,
  ATT_PART_FILL_HEAD = 1 << 26,
  ATT_PART_RELATIVE = 1 << 27,    /* a table of biases by distance */
  ATT_PART_ENCODER = 1 << 28,     /* a stack of its own, and cross attention to it */
  ATT_PART_NORM_BEFORE = 1 << 12, /* in blocks, of the stream or of sums */
  ATT_PART_NORM_AFTER = 1 << 13,  /* and of the parts' outputs */
  ATT_PART_QK_NORM = 1 << 14,
  ATT_PART_SINKS = 1 << 15,
  ATT_PART_EXPERTS = 1 << 16,
  ATT_PART_LONGROPE = 1 << 17,
  ATT_PART_EXPERT_BIAS = 1 << 18,
  ATT_PART_ANY_FFN = 1 << 19 /* with or without experts */
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
  ATT_SIZE_R,  /* rotated pairs of a head */
  ATT_SIZE_Y,  /* token types */
  ATT_SIZE_H,  /* query heads */
  ATT_SIZE_B,  /* buckets of distances */
  ATT_SIZE_QN, /* norms of queries, of keys */
  ATT_SIZE_KN,
  ATT_SIZE_E,  /* experts */
  ATT_SIZE_EF, /* experts * feed-forward width, * width */
  ATT_SIZE_EC
} att_size;
int64_t att_config_size(const att_config *config, att_size size);

#endif
