/* attend/model.h — a transformer, opened and ready to run.
 *
 * A model is immutable after opening and may be shared by threads; each
 * timeline of tokens lives in a session (attend/session.h).
 */
#ifndef ATTEND_MODEL_H
#define ATTEND_MODEL_H

#include "attend/tokenizer.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_model att_model;

typedef struct att_open_options {
  size_t struct_size;         /* set by att_open_options_init */
  const char *tokenizer_path; /* NULL: found beside the model */
  bool without_tokenizer;     /* do not look for one */
  /* Called while loading with 0 … 1; returning false cancels. May be NULL. */
  bool (*progress)(double done, void *payload);
  void *payload;
  /* Matrices as f32 in memory, whatever the file holds. Without it f16, bf16 and q8_0
   * stay as wide as they are stored, with the same bits; q4_0, q4_K and q6_K too, and
   * their products round the other side to 8 bits (att_model_info.rounded). */
  bool f32_weights;
} att_open_options;

ATT_API void att_open_options_init(att_open_options *options);

/* Opens a model from a path: a llama2.c .bin, a Hugging Face directory or a
 * .gguf; where nothing is there, a built-in model of that name. `path` NULL opens the
 * default one, which is att_model_builtin_name(0). `options` may be NULL. The file
 * must not change while the model is open. NOT_FOUND, IO, CORRUPT,
 * UNSUPPORTED, OUT_OF_MEMORY, CANCELLED. */
ATT_API att_status att_model_open(att_model **out, att_runtime *runtime, const char *path,
                                  const att_open_options *options);

/* Opens a model that is compiled in, by name; NULL is the default one.
 * NOT_FOUND lists the names. */
ATT_API att_status att_model_open_builtin(att_model **out, att_runtime *runtime, const char *name);
/* The name of built-in model `index`, 0 … ; NULL past the last one. The first is the
 * default: "story", a small trained model, and "hand", which is set by hand, in
 * WebAssembly. "induction@80" is the model induction as it was after 80 steps of its
 * training. */
ATT_API const char *att_model_builtin_name(int64_t index);
ATT_API void att_model_close(att_model *model);

/* How a model reads. */
typedef enum att_model_kind {
  ATT_MODEL_DECODER,        /* token after token, each sees those before it */
  ATT_MODEL_ENCODER,        /* a whole text, each token sees all (encoder.h) */
  ATT_MODEL_ENCODER_DECODER /* a decoder that looks at an encoder's text */
} att_model_kind;

/* What a model is. Strings are borrowed and live as long as the model. */
typedef struct att_model_info {
  const char *name;   /* file or directory name, or the built-in's */
  const char *family; /* "llama", "gpt2" … */
  const char *format; /* "llama2.c", "gguf", "safetensors", "built-in" */
  const char *dtype;  /* of most weights, "f32" */
  int64_t layers, width, heads, kv_heads, head_dim, ffn_width, vocab, context;
  int64_t parameters;   /* stored numbers, tied ones once */
  int64_t weight_bytes; /* that they take in memory */
  int64_t rounded;      /* of the parameters, those that meet numbers rounded to 8 bits */
  bool tied_output;
  att_model_kind kind;
  bool norms_after_sums;  /* x = norm(x + part(x)), not x + part(norm(x)) */
  int64_t encoder_layers; /* beside the decoder's `layers` */
  int64_t token_types;    /* 0: tokens have no type */
  bool fills_gaps;        /* att_session_predict */
  bool pooling_head;      /* ATT_POOL_HEAD */
  int pooling;            /* att_pooling that the files ask for, or as encoder.h says */
  bool unit_length;       /* and vectors of length 1 */
  int32_t start_token;    /* that the decoder of an encoder-decoder begins with */
  bool output_bias;       /* attention adds one behind its heads */
  bool caps_logits;       /* cap * tanh(x / cap) of the last product */
} att_model_info;

ATT_API const att_model_info *att_model_describe(const att_model *model);

/* The model's tokenizer, borrowed; NULL if it was opened without. */
ATT_API const att_tokenizer *att_model_tokenizer(const att_model *model);

/* True if `id` ends a text, by the model's settings or its tokenizer. */
ATT_API bool att_model_is_end(const att_model *model, int32_t id);

ATT_API att_runtime *att_model_runtime(const att_model *model);

#ifdef __cplusplus
}
#endif
#endif
