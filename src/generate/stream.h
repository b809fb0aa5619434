/* The text of a generation: token ids in, final text out, stop strings found.
 *
 * Two things hold text back: a character whose bytes have not all come (the
 * tokenizer's decoder), and an end that may be the beginning of a stop string. */
#ifndef ATT_GENERATE_STREAM_H
#define ATT_GENERATE_STREAM_H

#include "attend/generate.h"

typedef struct att_stream {
  const att_runtime *runtime;
  att_decoder *decoder;
  const char *const *stop;
  int64_t n_stop;
  char *held; /* an end that could begin a stop string */
  size_t n_held, room;
  att_text_fn *on_text; /* or NULL */
  void *payload;
  bool found;   /* a stop string */
  bool refused; /* on_text answered false */
} att_stream;

att_status att_stream_create(att_stream *out, const att_runtime *runtime,
                             const att_tokenizer *tokenizer, const att_generate_options *options);
void att_stream_release(att_stream *stream);

/* What stands before the first id, so that spaces and characters that reach
 * over the border come out right. */
att_status att_stream_prime(att_stream *stream, const int32_t *ids, int64_t n);

/* Takes the next id; afterwards `found` and `refused` may be set. */
att_status att_stream_push(att_stream *stream, int32_t id);

/* Hands out what was held back, unless a stop string was found. */
att_status att_stream_finish(att_stream *stream);

#endif
