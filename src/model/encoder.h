/* The part of a session that reads whole texts: an encoder's, or that beside a
 * decoder with the keys and values which the decoder looks at. */
#ifndef ATT_MODEL_ENCODER_H
#define ATT_MODEL_ENCODER_H

#include "attend/encoder.h"
#include "model/block.h"

typedef struct att_encoder {
  int64_t room; /* tokens that one call may take */
  att_activations act;
  att_sdpa_plan *plan;
  att_distance_rows distance; /* of relative positions */
  int64_t rows, n_texts;      /* of the last call; act.resid holds its vectors */
  int32_t *text_begin;        /* [room+1] */
  int32_t *tokens, *types;    /* [room], texts one after the other */
  int64_t *positions;         /* [room] */
  att_memory memory;          /* for a decoder's cross attention */
} att_encoder;

/* Everything for `room` tokens at a time; block and span are attention's. */
att_status att_encoder_create(att_encoder *out, const att_model *model, int64_t room, int64_t block,
                              int64_t span);
void att_encoder_release(att_encoder *encoder, const att_model *model);
int64_t att_encoder_bytes(const att_encoder *encoder);

/* The pass of the texts last gathered through `layer`. */
att_attention_pass att_encoder_pass(const att_encoder *encoder, const att_model *model,
                                    int64_t layer, int64_t block, int64_t span);

/* Copies checked texts one behind the other. */
void att_encoder_gather(att_encoder *encoder, const att_text *texts, int64_t n_texts);

#endif
