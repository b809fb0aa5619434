/* Inside of an att_training. */
#ifndef ATT_TRAIN_TRAINING_H
#define ATT_TRAIN_TRAINING_H

#include "attend/training.h"
#include "base/folder.h"
#include "train/data.h"
#include "train/learner.h"

struct att_training {
  att_runtime *runtime;
  att_train_settings settings;
  att_data data;
  att_learner *learner;
  att_data_batch batch;
  int64_t batch_tokens;
  double best;    /* validation loss so far */
  int64_t waited; /* evaluations since */
  bool resumed;   /* from a checkpoint, perhaps that of step 0 */
  bool done;
  int lock; /* file that is locked, or -1 */
  att_training_info info;
};

/* Learning rate of step n = 1, 2 …: rises over the warm-up, then stays or falls
 * along half a cosine to the final rate at the last step. */
double att_train_rate(const att_train_settings *settings, int64_t step);

/* "output/name". */
att_status att_training_path(char out[ATT_FOLDER_PATH], const att_training *training,
                             const char *name);

/* Makes the folder and keeps other runs out of it, also those of this process, until it
 * is unlocked or the process ends. WRONG_STATE if there is one, IO. */
att_status att_training_lock(att_training *training);
void att_training_unlock(att_training *training);

/* Removes what killed runs left half written; under the lock only. */
att_status att_training_clean(const att_training *training);

/* Goes on from the newest checkpoint, if there is one. Removes lines of the log past
 * it. */
att_status att_training_resume(att_training *training);

/* Adds the report to log.jsonl. */
att_status att_training_log(const att_training *training, const att_training_report *report);

#endif
