/* attend/generate.h — choose the next token, and go on.
 *
 * What happens to the logits, in this order:
 *   1. repetition   each of the last tokens' logits, once: divided if positive,
 *                   multiplied if negative
 *   2. temperature  logits / t; at 0 the largest one is the answer
 *   3. softmax      probabilities, float32
 *   4. top-k        the k largest are kept
 *   5. top-p        of those, the fewest whose share reaches p, the one that
 *                   crosses it included
 *   6. min-p        of those, the ones with at least p times the largest
 *   7. draw         one of those, by their shares
 * Tokens are ordered by logit, equal ones by ascending id. A setting that is
 * off changes nothing at all. The draw is Philox4x32-10 keyed by the seed with
 * the position as counter, so it depends on neither threads nor batch.
 */
#ifndef ATTEND_GENERATE_H
#define ATTEND_GENERATE_H

#include "attend/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_sampler_options {
  size_t struct_size; /* set by att_sampler_options_init */
  double temperature; /* 0: the largest logit (lowest id on a tie); default 1 */
  int64_t top_k;      /* 0 (default): off */
  double top_p;       /* (0,1]; default 1: off */
  double min_p;       /* [0,1); default 0: off */
  double repetition;  /* >= 1; default 1: off. Divides positive and multiplies negative logits */
  int64_t repetition_last; /* of how many last tokens; default 64 */
  uint64_t seed;           /* default 0 */
} att_sampler_options;

typedef struct att_sampler att_sampler;
ATT_API void att_sampler_options_init(att_sampler_options *options);

/* `options` NULL: defaults. BAD_ARGUMENT (a setting out of its range, NaN
 * included; the message names it), OUT_OF_MEMORY. One thread at a time. */
ATT_API att_status att_sampler_create(att_sampler **out, att_runtime *runtime,
                                      const att_sampler_options *options, int64_t vocab);
ATT_API void att_sampler_free(att_sampler *sampler);

/* Picks an id from logits f32 [V] given the tokens read so far (for the
 * penalty; the position is n). Allocates nothing. BAD_ARGUMENT for a logit that
 * is NaN or +inf and when none is above -inf; BAD_SHAPE, BAD_DTYPE. */
ATT_API att_status att_sampler_pick(int32_t *out, att_sampler *sampler, att_view logits,
                                    const int32_t *tokens, int64_t n);

typedef enum att_finish {
  ATT_FINISH_LENGTH = 0,     /* max_new tokens */
  ATT_FINISH_END = 1,        /* an end-of-text id, which is not handed out */
  ATT_FINISH_CONTEXT = 2,    /* the session is full */
  ATT_FINISH_STOP = 3,       /* the callback returned false */
  ATT_FINISH_STOP_STRING = 4 /* one of the stop strings appeared */
} att_finish;
ATT_API const char *att_finish_name(att_finish finish);

/* A new token. Return false to stop after it. */
typedef bool att_token_fn(int32_t id, void *payload);

/* New text, as soon as it is final: whole characters, and nothing that could
 * still become a stop string. Return false to stop. */
typedef bool att_text_fn(const char *text, size_t bytes, void *payload);

typedef struct att_generate_options {
  size_t struct_size;      /* set by att_generate_options_init */
  int64_t max_new;         /* at most so many new tokens; default 256 */
  const char *const *stop; /* strings, borrowed, or NULL; none is empty */
  int64_t n_stop;
  att_token_fn *on_token; /* may be NULL */
  att_text_fn *on_text;   /* may be NULL; the text ends before a stop string */
  void *payload;
  const int32_t *ends; /* ids that end the text beside the model's own, borrowed */
  int64_t n_ends;      /* default none */
  /* Called while the prompt is read, last with 1; false cancels. May be NULL. */
  bool (*on_read)(double done, void *payload);
} att_generate_options;

typedef struct att_generate_result {
  int64_t n_new; /* tokens handed out */
  att_finish finish;
  double prefill_seconds; /* reading the prompt */
  double decode_seconds;  /* everything after */
} att_generate_result;

ATT_API void att_generate_options_init(att_generate_options *options);

/* "length", "end", "context", "stop", "stop_string" are the finishes' names.
 *
 * Reads `prompt` (n >= 1 tokens) and goes on one token at a time. All tokens
 * handed out but the last have been read by the session. Stop strings and
 * on_text need the model's tokenizer and take a little memory before anything
 * is read. CONTEXT_FULL if the prompt does not fit; BAD_ARGUMENT, CANCELLED,
 * OUT_OF_MEMORY, and what reading and picking answer. */
ATT_API att_status att_generate(att_generate_result *out, att_session *session,
                                att_sampler *sampler, const int32_t *prompt, int64_t n,
                                const att_generate_options *options);

/* One of several generations that go on together. */
typedef struct att_generate_job {
  att_session *session; /* one of its own; all of one model */
  att_sampler *sampler; /* one of its own */
  const int32_t *prompt;
  int64_t n;
  const att_generate_options *options; /* NULL: defaults */
  att_generate_result result;          /* written on success; decode_seconds are shared */
} att_generate_job;

/* Reads all prompts, then goes on with all of them a token at a time, in one pass
 * over the weights for each step. Every job gets the tokens and bits that
 * att_generate alone would give it. What one answers, all answer. */
ATT_API att_status att_generate_batch(att_generate_job *jobs, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
