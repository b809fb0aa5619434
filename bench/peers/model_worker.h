/* model_worker.h — what a program that runs a model is asked on stdin, line by line:
 *
 *   read N       reads N tokens from the beginning      seconds, of the clock and of all
 *   step N       one token more after N                 processors (the least of some runs)
 *   logits N     after N tokens                         the first eight logits
 *   loss N       of tokens 1 … N, each after all before   mean, and its standard error
 *   memory       peak                                   kB
 *
 * An answer is one line; "no" says that it failed. */
#ifndef ATTEND_PEERS_MODEL_WORKER_H
#define ATTEND_PEERS_MODEL_WORKER_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_CONTEXT = 4160 };

/* What a program brings. model_read goes on from what was read; logits of the last
 * token must exist afterwards. model_forget(n) keeps the first n positions. */
bool model_open(int argc, char **argv);
bool model_read(int32_t *tokens, int64_t n);
bool model_forget(int64_t length);
const float *model_logits(void);
int64_t model_vocabulary(void);

#endif
