/* heads_copying.h — heads --copying: does a head make likelier what it looks at? */
#ifndef ATTEND_CLI_HEADS_COPYING_H
#define ATTEND_CLI_HEADS_COPYING_H

#include "subject.h"

/* For each head, in the order of the model: the score of its eigenvalues, and the share of
 * the prompt's tokens whose own logit it raises among the `top` most. */
att_status heads_copying(double *score, double *share, const subject *what, int64_t top);

#endif
