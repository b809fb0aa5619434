/* Text to learn from: ids in a file that is mapped, and batches of it.
 *
 * The training part is cut into windows of `length` tokens; an epoch is a random
 * permutation of them, with a random beginning of its own. Which windows a step
 * reads follows from the seed and the number of the step alone, so there is
 * nothing to store for a resume. */
#ifndef ATT_TRAIN_DATA_H
#define ATT_TRAIN_DATA_H

#include "attend/archive.h"
#include "attend/tokenizer.h"
#include "train/settings.h"

typedef struct att_data {
  att_archive *archive;  /* tokens.npy */
  const int32_t *tokens; /* ids; outside of marks -1 - id */
  int64_t n, train;      /* the first `train` of n are learned from */
  int64_t vocab;
  int32_t separator; /* id between documents, or -1 */
  uint64_t checksum;
  uint64_t text_bytes; /* of all files of the text; 0: they are gone */
} att_data;

static inline int32_t att_data_id(int32_t stored) { return stored < 0 ? ~stored : stored; }

/* Makes the run's tokenizer.json and tokens.npy, or finds them; its folder must be there. */
att_status att_data_open(att_data *out, att_runtime *runtime, const att_train_settings *settings);
void att_data_close(att_data *data);

/* Arrays [batch, length]; documents may be NULL. Of a training batch, tokens outside of
 * marks are targets with probability "others", drawn anew in each step. */
typedef struct att_data_batch {
  int32_t *tokens, *targets, *documents;
} att_data_batch;

void att_data_train_batch(const att_data *data, const att_train_settings *settings, int64_t step,
                          const att_data_batch *out);
/* Batch `index` of the held-out text, in order; rows past its end have no
 * targets. False if there is nothing left. */
bool att_data_validation_batch(const att_data *data, const att_train_settings *settings,
                               int64_t index, const att_data_batch *out);

/* A permutation of 0 … n-1: where `at` goes. */
int64_t att_permute(int64_t at, int64_t n, uint64_t key);

#endif
