/* The vocabulary: what each id is, and which id a sequence of bytes is.
 *
 * A token has two spellings. `piece` is how the file writes it ("Ġthe",
 * "▁the", "<0x0A>"); `bytes` is what it stands for in a text (" the", a
 * newline). They are the same memory where they are equal. */
#ifndef ATT_TEXT_VOCAB_H
#define ATT_TEXT_VOCAB_H

#include <stdbool.h>

#include "text/arena.h"

enum {
  ATT_TOKEN_PRESENT = 1,   /* ids may have holes; a hole has no flag at all */
  ATT_TOKEN_SPECIAL = 2,   /* control: prints as nothing */
  ATT_TOKEN_END = 4,       /* ends a text */
  ATT_TOKEN_BYTE = 8,      /* stands for one byte of what has no other token */
  ATT_TOKEN_ADDED = 16,    /* cut out of the text before the model sees it */
  ATT_TOKEN_RESPELLED = 32 /* decodes as its normalized spelling (added.h) */
};

typedef struct att_entry {
  const char *piece, *bytes;
  uint32_t piece_bytes, n_bytes;
  float score;
  unsigned flags;
} att_entry;

typedef enum att_spelling { ATT_BY_PIECE, ATT_BY_BYTES } att_spelling;

typedef struct att_vocab {
  att_entry *entries; /* [size] */
  int64_t size;
  struct {
    int32_t *slots; /* [mask + 1] ids hashed by this spelling, or -1 */
    uint64_t mask;
  } table[2];
} att_vocab;

/* An empty vocabulary of `size` ids, all of them holes. */
att_status att_vocab_create(att_vocab *out, att_arena *arena, int64_t size);

/* Gives `id`, a hole so far, its piece (copied); bytes are the same. The score
 * starts at 0. CORRUPT if the id is outside or taken. */
att_status att_vocab_set(att_vocab *vocab, att_arena *arena, int64_t id, const char *piece,
                         int64_t piece_bytes, unsigned flags);

/* Gives a token bytes of their own (copied). */
att_status att_vocab_set_bytes(att_vocab *vocab, att_arena *arena, int32_t id, const char *bytes,
                               int64_t n);

/* Makes `id` findable by a spelling. The first id with a spelling keeps it. */
void att_vocab_index(att_vocab *vocab, att_spelling by, int32_t id);

/* The id that is spelled text[0 … n-1], or -1. */
int32_t att_vocab_find(const att_vocab *vocab, att_spelling by, const char *text, int64_t n);

/* The token <0x00> … <0xFF> of a byte, or -1. */
int32_t att_vocab_find_byte(const att_vocab *vocab, unsigned char byte);

/* "<0x0A>" → 10; -1 if the piece is none of the 256 byte tokens. */
int att_byte_of_piece(const char *piece, int64_t n);

/* The hash of the table, for others that hash bytes. */
uint64_t att_hash_bytes(const char *bytes, int64_t n);

#endif
