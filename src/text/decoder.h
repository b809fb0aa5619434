/* The inside of att_decoder: a chain of steps. Pieces enter at its head as the
 * file spells them, one call of `push` each; every step changes what it gets
 * and hands it on with att_decode_pass. Behind the last one waits att_output,
 * which lets whole characters out.
 *
 * A step may hold something back and must hand it on in `finish`. */
#ifndef ATT_TEXT_DECODER_H
#define ATT_TEXT_DECODER_H

#include "text/list.h"
#include "text/tokenizer.h"

enum { ATT_DECODERS_MAX = 16 };

/* What a step remembers between calls. */
typedef struct att_decode_state {
  int64_t seen;  /* pieces so far */
  att_list held; /* bytes */
} att_decode_state;

struct att_decoder {
  const att_tokenizer *tokenizer;
  att_decoder_options options;
  att_decode_state state[ATT_DECODERS_MAX];
  att_list pending; /* bytes behind the last step that are no whole character yet */
  att_list out;     /* what the caller sees until the next call */
};

typedef struct att_decode_kind {
  att_status (*push)(att_decoder *d, int step, const char *bytes, int64_t n);
  att_status (*finish)(att_decoder *d, int step); /* NULL: nothing is held back */
} att_decode_kind;

/* Hands bytes on to what comes behind `step`. */
att_status att_decode_pass(att_decoder *d, int step, const char *bytes, int64_t n);

static inline const void *att_decode_settings(const att_decoder *d, int step) {
  return d->tokenizer->decoders[step].settings;
}

/* The last stage: adds to d->pending, moves whole characters to d->out; `last`
 * moves everything. */
att_status att_decode_output(att_decoder *d, const char *bytes, int64_t n, bool last);

/* "<0x0A>" becomes the byte 0x0A. No settings. */
extern const att_decode_kind att_decode_byte_fallback;

/* From here on the pieces are one text. No settings. */
extern const att_decode_kind att_decode_fuse;

/* Drops up to `start` copies of a character from the start, and up to `stop`
 * from the end, of each piece, or of the whole text behind a fuse. */
typedef struct att_strip_settings {
  const char *content;
  int64_t start, stop;
  bool fused;
} att_strip_settings;
extern const att_decode_kind att_decode_strip;

/* Puts `between` between pieces. Settings: const char *. */
extern const att_decode_kind att_decode_join;

/* A space between pieces, none before a closing mark. No settings. */
extern const att_decode_kind att_decode_words;

#endif
