/* eval_halves.h — the loss of a text's first and second half, line by line.
 *
 * In a line that says one thing twice the second half can be known from the first, so
 * the two losses tell how much a model takes from what it has just read.
 */
#ifndef ATTEND_CLI_EVAL_HALVES_H
#define ATTEND_CLI_EVAL_HALVES_H

#include "attend/model.h"
#include "attend/session.h"
#include "cli.h"
#include "edit_options.h"
#include "subject.h"

/* Measures the lines of `text` (n bytes and a zero, changed on the way) and prints the
 * sums, with `each` every line too. The session keeps logits of several rows. Returns
 * an exit code, after a complaint that names the line. */
int eval_halves(const cli *c, const subject *s, att_session *session, const edit_set *edits,
                char *text, size_t n, bool each);

#endif
