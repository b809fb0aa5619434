/* attend/encoder.h — models that read whole texts at once.
 *
 * In an encoder (BERT, RoBERTa, DistilBERT) every token sees every other of its
 * text. What comes out is a vector for each token, one for the text, and for a
 * gap the tokens that may fill it. Several texts may go in together: they are laid
 * one after the other, never padded, so what stands beside a text changes no bit
 * of its results.
 *
 *     att_session_create(&session, model, NULL);
 *     att_text text = {.tokens = ids, .n = n};
 *     att_session_encode(session, &text, 1);
 *     att_session_pool(session, vector, ATT_POOL_MEAN);       // [1,C]
 *     att_session_predict(session, logits, &gap, 1);          // [1,V]
 *
 * In an encoder-decoder (T5) the same call reads the text that the decoder then
 * looks at, once for all its steps:
 *
 *     att_session_encode(session, &text, 1);
 *     int32_t start = att_model_describe(model)->start_token;
 *     att_session_eval(session, &start, 1);                   // or att_generate
 */
#ifndef ATTEND_ENCODER_H
#define ATTEND_ENCODER_H

#include "attend/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_text {
  const int32_t *tokens; /* [n] */
  int64_t n;
  const int32_t *types;     /* [n] which part of the text a token is of; NULL: all 0 */
  const int64_t *positions; /* [n] from 0; NULL: 0, 1, 2 … (where padding was cut out) */
} att_text;

/* Reads `n_texts` >= 1 texts of at least one token each; all that the session has
 * read before is forgotten. If there is a decoder, one text.
 * WRONG_STATE (the model has no encoder), CONTEXT_FULL (a text longer than the
 * context, or all together more than the session's encoder_tokens), BAD_ARGUMENT
 * (an id, type or position outside, with its place). Allocates nothing. */
ATT_API att_status att_session_encode(att_session *session, const att_text *texts, int64_t n_texts);

/* The last layer's vectors, f32 [n,C], texts one after the other (of an
 * encoder-decoder, the encoder's, as its decoder sees them). Borrowed until the
 * next call on the session; absent before att_session_encode. */
ATT_API att_view att_session_hidden(const att_session *session);

typedef enum att_pooling {
  ATT_POOL_CLS = 0,  /* the first token's vector */
  ATT_POOL_MEAN = 1, /* the mean of all tokens' vectors */
  ATT_POOL_HEAD = 2  /* tanh(W x + b) of the first token, where a model has it */
} att_pooling;

/* What att_model_info.pooling may be instead: the model's files say nothing of it, or
 * ask for something that is none of the above. */
enum { ATT_POOL_NOT_SAID = -1, ATT_POOL_OTHER = -2 };

/* One vector a text into `out` f32 [n_texts,C], of any strides. WRONG_STATE (nothing
 * was encoded), UNSUPPORTED (no pooling head), BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE. */
ATT_API att_status att_session_pool(att_session *session, att_view out, att_pooling pooling);

/* What may stand in some places: logits f32 [n,V], adjacent, of rows rows[0 … n-1] of
 * att_session_hidden; `rows` NULL: of the first n. UNSUPPORTED (the model does not
 * fill gaps), WRONG_STATE, BAD_ARGUMENT (a row outside), BAD_SHAPE, BAD_DTYPE. */
ATT_API att_status att_session_predict(att_session *session, att_view logits, const int64_t *rows,
                                       int64_t n);

#ifdef __cplusplus
}
#endif
#endif
