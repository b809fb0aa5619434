/* heads_log.h — what every head did at every checkpoint of a run: heads.jsonl. */
#ifndef ATTEND_CLI_HEADS_LOG_H
#define ATTEND_CLI_HEADS_LOG_H

#include "attend/model.h"
#include "cli.h"

/* Takes lines of step `step` and later away, as a run that goes on from there writes them
 * again. */
int heads_log_shorten(const cli *c, const char *folder, int64_t step);

/* Adds the model's scores (watch.h) and its validation loss, which may be NaN. The tokenizer
 * is the run's own. */
int heads_log_add(const cli *c, const char *folder, int64_t step, double validation,
                  const att_model *model, const att_tokenizer *tokenizer);

#endif
