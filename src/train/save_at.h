/* The steps of a run at which checkpoints are written, where "save_at" says them:
 * "log:20" or "0,10,100". */
#ifndef ATT_TRAIN_SAVE_AT_H
#define ATT_TRAIN_SAVE_AT_H

#include <stdbool.h>
#include <stdint.h>

#include "attend/status.h"

/* BAD_ARGUMENT unless `text` names steps from 0 to `steps`, ascending, or a number of
 * them that there are. */
att_status att_save_at_check(const char *text, int64_t steps);

/* True if `step` is one of them. `text` has been checked. */
bool att_save_at_has(const char *text, int64_t steps, int64_t step);

#endif
