/* One forward for all families: a block of a decoder or encoder, and what stands
 * before the first and behind the last one.
 *
 *   x    = scale embed(token) [+ embed(position)] [+ embed(type)]     [x = norm(x)]
 *   x   += post1(attention(norm1(x)))   for each block
 *  [x   += cross_attention(norm(x))]
 *   x   += post2(ffn(norm2(x)))
 *   logits = cap(W_out norm([act(W x + b)]))
 *
 * or, where norms stand behind the sums, x = norm1(x + attention(x)) and so on.
 * With parallel parts norm2 reads the same x as norm1. A part that a model does
 * not have costs nothing and leaves x as it is. */
#ifndef ATT_MODEL_BLOCK_H
#define ATT_MODEL_BLOCK_H

#include "model/model.h"

/* Scratch of a pass of at most `rows` tokens; one piece of memory. */
typedef struct att_activations {
  int64_t rows;
  float *resid;            /* [rows,C] the residual stream */
  float *normed, *branch;  /* [rows,C] input and output of a part */
  float *q, *k, *v, *z;    /* [rows,H D] or [rows,G D] */
  float *ffn_pre, *hidden; /* [rows,F] */
  att_experts_scratch experts;
  float *memory;
  int64_t floats;
} att_activations;

att_status att_activations_create(att_activations *out, const att_runtime *runtime,
                                  const att_config *config, int64_t rows);
void att_activations_release(att_activations *activations, const att_runtime *runtime);

/* Tokens as a model reads them. Their places in the text are position, position + 1
 * and so on unless `positions` lists them; all have type 0 unless `types` does. */
typedef struct att_token_rows {
  const int32_t *tokens, *types;
  const int64_t *positions;
  int64_t rows, position;
} att_token_rows;

/* The tokens' vectors into the residual stream. */
void att_embed_forward(const att_model *model, att_activations *act, const att_token_rows *tokens,
                       const att_tap *tap);

/* Block `pass->layer` of a stack, whose weights `layer` are, on the residual stream.
 * Forwards failures of attention. */
att_status att_block_forward(const att_model *model, const att_layer_weights *layer,
                             att_activations *act, const att_attention_pass *pass);

/* What comes between the last block and the output matrix, the final norm and, in
 * a model that fills gaps, its head's layer before it, of rows first … rows-1, into act->normed
 * from its start. */
void att_final_norm_forward(const att_model *model, att_activations *act, int64_t first,
                            int64_t rows, const att_tap *tap);

/* Logits [rows,V] of normed rows. */
void att_output_forward(const att_model *model, const float *normed, int64_t rows, float *logits);

/* The same, each row to its own place, in one pass over the matrix. */
void att_output_forward_rows(const att_model *model, const float *normed, int64_t rows,
                             float *const *logits);

#endif
