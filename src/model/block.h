/* One forward for all families: a block of a decoder, and what stands before
 * the first and behind the last one.
 *
 *   x    = embed(token) [+ embed(position)]
 *   x   += attention(norm1(x))          for each block
 *   x   += ffn(norm2(x))
 *   logits = W_out norm(x)
 *
 * A part that a model does not have costs nothing and leaves x as it is. */
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
  float *memory;
  int64_t floats;
} att_activations;

att_status att_activations_create(att_activations *out, const att_runtime *runtime,
                                  const att_config *config, int64_t rows);
void att_activations_release(att_activations *activations, const att_runtime *runtime);

/* The tokens' vectors into the residual stream; the first stands at `position`. */
void att_embed_forward(const att_model *model, att_activations *act, const int32_t *tokens,
                       int64_t rows, int64_t position, const att_tap *tap);

/* Block `pass->layer` on the residual stream. Forwards failures of attention. */
att_status att_block_forward(const att_model *model, att_activations *act,
                             const att_attention_pass *pass);

/* The final norm of rows first … rows-1, into act->normed from its start. */
void att_final_norm_forward(const att_model *model, att_activations *act, int64_t first,
                            int64_t rows, const att_tap *tap);

/* Logits [rows,V] of normed rows. */
void att_output_forward(const att_model *model, const float *normed, int64_t rows, float *logits);

#endif
