/* A feed-forward network that is chosen token by token from several.
 *
 *   r     = x W_r + b_r                       a number for each expert
 *   S     = the `used` largest of r; of equal ones the earlier
 *   share = softmax of r over S
 *   y     = sum of share_e * expert_e(x)      over e in S, ascending
 *   expert_e(x) = down((up + 1) * g / (1 + exp(-1.702 g))),
 *     g = min(gate(x), limit), up = up(x) between -limit and limit
 *
 * The tokens of an expert are gathered and go through it together, so a matrix is
 * read once a pass; a token's numbers do not depend on who goes with it. */
#ifndef ATT_NN_EXPERTS_H
#define ATT_NN_EXPERTS_H

#include "nn/linear.h"
#include "nn/tap.h"

#define ATT_MOST_EXPERTS 1024

typedef struct att_experts {
  int64_t n, used;
  float limit;
  att_linear router;                      /* [E,C] */
  att_packed *gate, *up, *down;           /* [E] of [F,C], [F,C], [C,F] */
  float *gate_bias, *up_bias, *down_bias; /* [E,F], [E,F], [E,C], or NULL */
} att_experts;

typedef struct att_experts_scratch {
  float *logits, *shares; /* [rows,E] */
  float *x, *y;           /* [rows,C] of one expert's tokens */
} att_experts_scratch;

/* y [rows,C] from x [rows,C]; `pre` and `hidden` are scratch [rows,F]. */
void att_experts_forward(const att_runtime *runtime, const att_experts *experts, const float *x,
                         int64_t rows, float *pre, float *hidden,
                         const att_experts_scratch *scratch, float *y, const att_tap *tap,
                         int64_t layer);

#endif
