/* pair_judge.h — how probable a model finds the two texts of a pair.
 *
 * They begin alike. What their tokens share at the beginning is read once; from there on
 * the log-probabilities of each are added up. A share that is the same for both cannot
 * change which is larger, so it does not matter where a tokenizer draws the line between
 * prefix and text.
 */
#ifndef ATTEND_CLI_PAIR_JUDGE_H
#define ATTEND_CLI_PAIR_JUDGE_H

#include "attend/session.h"
#include "attend/tokenizer.h"
#include "pairs.h"

/* Rows of logits that the session has room for, or as many as its context. */
enum { PAIR_ROWS = 64 };

typedef struct verdict {
  double a, b; /* log-probabilities of what the texts do not share */
  int64_t bytes_a, bytes_b;
} verdict;

/* Reads the pair in `session`, anew; `logs` has room for a context. Returns an exit code,
 * after a complaint that names the line. */
int pair_judge(verdict *v, const cli *c, const att_tokenizer *tokenizer, att_session *session,
               double *logs, const pair *p);

#endif
