/* watch.h — what a model's heads have learned to do, measured on a text of random
 * tokens that is there twice. */
#ifndef ATTEND_CLI_WATCH_H
#define ATTEND_CLI_WATCH_H

#include <stdint.h>

#include "attend/model.h"

enum { WATCH_SCORES = 5 };
extern const char *const watch_names[WATCH_SCORES];

/* scores [layers, heads, WATCH_SCORES]: mean weight on the token before
 * ("previous"); on what followed this token the first time ("induction"); on its
 * first occurrence ("duplicate"); on the very first ("first"); mean entropy in
 * bits ("entropy"). */
att_status watch_heads(double *scores, const att_model *model, uint64_t seed);

#endif
