/* attend/convert.h — models from one file format to another, and new ones with
 * random weights.
 *
 * A target whose name ends in ".gguf" is a GGUF file that llama.cpp reads too;
 * any other is a Hugging Face folder (config.json, model.safetensors,
 * tokenizer.json). Either appears under its name only when it is complete.
 */
#ifndef ATTEND_CONVERT_H
#define ATTEND_CONVERT_H

#include "attend/runtime.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_convert_options {
  size_t struct_size;         /* set by att_convert_options_init */
  const char *dtype;          /* of the matrices: "f32", "f16", "bf16"; in GGUF also "q8_0", "q4_0",
                                 "q4_K" and "q6_K";
                                 NULL (default): as stored, q8_0 as f32 in a folder */
  const char *tokenizer_path; /* NULL: the one that belongs to the source */
  bool without_tokenizer;     /* writes none */
  bool without_heads;         /* leaves out what fills gaps and what pools in an encoder */
  /* Called with 0 … 1 along the way; returning false cancels. May be NULL. */
  bool (*progress)(double done, void *payload);
  void *payload;
} att_convert_options;

ATT_API void att_convert_options_init(att_convert_options *options);

/* Writes the model at `source` (whatever att_model_open reads) to `target`.
 * Widening and keeping a type is exact, so the model gives the same bits;
 * narrowing rounds to nearest even, q8_0 and q4_0 as llama.cpp does; q4_K and q6_K are
 * read by llama.cpp, their steps are attend's choice. In GGUF vectors and
 * learned positions stay f32, and rows that are no whole blocks of the type asked for
 * (of 32, of 256) are q8_0 if 32 divides them, else f16. `options` may be NULL. Memory: a few times
 * the largest weight, for a folder the whole model. NOT_FOUND (the source, or its tokenizer),
 * CORRUPT, UNSUPPORTED (what the target format cannot say: a family, a scale, a kind of tokenizer;
 * the message names it; and a target whose name ends as a file of a format that is not written,
 * such as .bin), BAD_ARGUMENT, IO (a target folder that is not empty), OUT_OF_MEMORY,
 * CANCELLED. */
ATT_API att_status att_convert(att_runtime *runtime, const char *source, const char *target,
                               const att_convert_options *options);

/* What a new model is to be. 0 stands for the usual: layers 4, width 128, heads
 * width/32, kv_heads heads, ffn_width 4·width (llama: 8/3·width, up to a
 * multiple of 32), context 256, vocab 257 or that of the tokenizer. */
typedef struct att_init_options {
  size_t struct_size; /* set by att_init_options_init */
  const char *family; /* "gpt2", "llama", "qwen2": llama with qkv_bias, "attention": llama
                         without a feed-forward network */
  int64_t layers, width, heads, kv_heads, ffn_width, vocab, context;
  bool untied;            /* the output matrix is not the embedding */
  bool qkv_bias;          /* of attention, which has none of its own; gpt2 and qwen2 always have */
  bool learned_positions; /* of attention, in place of a rotation; gpt2 always has them */
  double rope_theta;      /* base of the rotation; 0: 10000. Not of gpt2 */
  double look_back;       /* how strongly heads begin to look back; 0: not. Of models with a
                             rotation and biases of queries and keys */
  double deviation;       /* of matrices and tables; 0: 0.02 */
  const char *dtype;      /* NULL: f32 */
  const char *tokenizer_path; /* NULL: the 256 bytes and <|endoftext|> if the
                                 vocabulary has room for them, else none */
  uint64_t seed;
} att_init_options;

ATT_API void att_init_options_init(att_init_options *options);

/* Writes a model with random weights to `target`: matrices normal with deviation
 * 0.02 (gpt2: those that end a block 0.02/√(2·layers)), norms 1, biases 0. A
 * weight depends on the seed and its name alone, so both formats and every run
 * give the same numbers. With look_back = w > 0, the biases of the first half of the
 * first layer's heads and the first quarter of the second's are such that head h adds
 *   w/√head_dim Σ_i cos(θ_i (j - 1 - h)),   θ_i = rope_theta^(-2i/head_dim)
 * to the score of the key j positions back, the more the nearer j is to 1 + h. Errors as
 * att_convert; BAD_ARGUMENT (look_back without biases or rotation). */
ATT_API att_status att_init_model(att_runtime *runtime, const char *target,
                                  const att_init_options *options);

#ifdef __cplusplus
}
#endif
#endif
