/* attend/session.h — one timeline of tokens through a model.
 *
 * A session owns the KV cache, activations and captures. One thread at a time.
 * Prefill, chunked prefill and single steps are the same call, and give the
 * same bits however the tokens are cut.
 *
 *     att_session *session;
 *     att_session_create(&session, model, NULL);
 *     att_session_eval(session, ids, n);
 *     att_view logits = att_session_logits(session);   // of the last token
 */
#ifndef ATTEND_SESSION_H
#define ATTEND_SESSION_H

#include "attend/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_session att_session;

typedef struct att_session_options {
  size_t struct_size;     /* set by att_session_options_init */
  int64_t context;        /* positions it can hold; 0: the model's own limit */
  int64_t chunk;          /* most rows a single pass takes; default 128 */
  att_dtype cache_dtype;  /* f32 (default), f16, bf16 */
  int64_t encoder_tokens; /* most that att_session_encode takes; 0: the context */
  bool all_logits;        /* keep logits of every token of the last eval */
  int64_t logit_rows;     /* then most tokens of one eval; 0 (default): the context */
  int64_t block, span;    /* of attention; default 128 and 512; for tests */
} att_session_options;

ATT_API void att_session_options_init(att_session_options *options);

/* `options` NULL: defaults. The model is borrowed and must outlive the session.
 * BAD_ARGUMENT (context over the model's limit), OUT_OF_MEMORY, TOO_LARGE. */
ATT_API att_status att_session_create(att_session **out, const att_model *model,
                                      const att_session_options *options);
ATT_API void att_session_free(att_session *session);

/* Reads `n` >= 1 more tokens. CONTEXT_FULL (nothing is read, the message has
 * both numbers), BAD_ARGUMENT (an id outside the vocabulary, with its place),
 * WRONG_STATE (an encoder, or a decoder whose encoder has read nothing; encoder.h).
 * Allocates nothing. */
ATT_API att_status att_session_eval(att_session *session, const int32_t *tokens, int64_t n);

/* Logits after the last token, f32 [V]; with all_logits f32 [n,V] of the last
 * eval. Borrowed until the next call on the session; absent before any eval. */
ATT_API att_view att_session_logits(const att_session *session);

/* The model it runs, borrowed. */
ATT_API const att_model *att_session_model(const att_session *session);

/* Positions read so far, and the most there can be. */
ATT_API int64_t att_session_length(const att_session *session);
ATT_API int64_t att_session_context(const att_session *session);

/* Ids read so far, [length], borrowed. */
ATT_API const int32_t *att_session_tokens(const att_session *session);

/* Forgets every position from `length` on (0: starts anew), the captures'
 * rows included. Reading the same tokens again gives the same bits. */
ATT_API att_status att_session_truncate(att_session *session, int64_t length);

/* Reads one more token into each of `count` different sessions of one model, as
 * att_session_eval would into each, with the same bits. BAD_ARGUMENT (sessions of two
 * models, or one twice), CONTEXT_FULL and the like as there: then none has read
 * anything. Allocates nothing. */
ATT_API att_status att_session_step(att_session *const *sessions, const int32_t *tokens,
                                    int64_t count);

/* Makes `session` hold what the first `length` positions of `source` hold, without
 * reading them again: the same bits. What it held before is forgotten. Both are of
 * one model and one cache dtype. BAD_ARGUMENT (also where captures would miss the
 * rows), WRONG_STATE (the source was read under edits), CONTEXT_FULL, UNSUPPORTED (an
 * encoder; rotary positions that depend on the contexts, which differ). Cost: a copy of
 * the cache. */
ATT_API att_status att_session_copy(att_session *session, const att_session *source,
                                    int64_t length);

/* Forgets everything behind the longest beginning that the session shares with
 * `tokens`, but keeps at most n - 1: reading the others gives logits of the last
 * one. *out_kept is how many positions are left. BAD_ARGUMENT. */
ATT_API att_status att_session_keep_common(int64_t *out_kept, att_session *session,
                                           const int32_t *tokens, int64_t n);

/* Bytes of cache, activations and captures together. */
ATT_API int64_t att_session_bytes(const att_session *session);

#ifdef __cplusplus
}
#endif
#endif
