/* Training a byte-level BPE: words are counted (train_words.c), pairs are merged
 * (train_bpe.c), the result is written (train_write.c). */
#ifndef ATT_TEXT_TRAIN_H
#define ATT_TEXT_TRAIN_H

#include "attend/tokenizer.h"
#include "text/arena.h"
#include "text/list.h"

/* A different word of the text: symbols[first … first + n-1], seen count times. */
typedef struct att_train_word {
  int64_t first, n, count;
} att_train_word;

/* A token that training made of two others. */
typedef struct att_train_merge {
  int32_t left, right, id;
} att_train_merge;

typedef struct att_trainer {
  const att_runtime *runtime;
  const att_train_bpe_options *options;
  int64_t limit;    /* ids that training may give out, the 256 bytes included */
  att_list words;   /* att_train_word, in order of first appearance */
  att_list symbols; /* int32_t */
  att_list merges;  /* att_train_merge */
  att_list pieces;  /* att_train_piece: the bytes of each id */
  att_list bytes;   /* of all pieces */
} att_trainer;

typedef struct att_train_piece {
  int64_t first, n;
} att_train_piece;

/* Counts the words of the files, cut as the options say. */
att_status att_train_count(att_trainer *trainer, const char *const *paths, int64_t n);

/* Merges until there are `limit` ids or no pair is frequent enough. */
att_status att_train_merge_pairs(att_trainer *trainer);

/* The tokenizer.json; the merges so far may be none. */
att_status att_train_write(att_list *out, const att_trainer *trainer);

/* The id of a byte: its rank among the characters of the byte alphabet. */
int32_t att_train_id_of_byte(unsigned char byte);

/* CANCELLED if the caller's progress function says so. */
att_status att_train_progress(const att_trainer *trainer, double done);

#endif
