/* Attention on the tensors of a case: inputs in a dtype, outputs to compare. */
#ifndef ATT_TESTS_GOLDEN_ATTENTION_H
#define ATT_TESTS_GOLDEN_ATTENTION_H

#include "golden.h"

/* One way to run a case. */
typedef struct golden_way {
  const char *variant; /* "", "f16" … */
  att_dtype dtype;     /* of q, k, v and out */
  bool dense;          /* feed `visible` as a bool mask in place of the rules */
} golden_way;

/* Fills args with defaults, the runner's block and span, the case's scale and
 * softcap, and its ALiBi slopes and sinks. */
void golden_attention_args(golden_case *c, att_sdpa_args *args);

/* Adds a rule to the mask; a full list fails the run. */
void golden_rule(golden_case *c, att_sdpa_args *args, att_mask_rule rule);

/* Rows of `out` whose `lse` (of the keys alone) is -inf must be exactly 0. */
void golden_expect_empty_rows(golden_case *c, att_view out, att_view lse);

/* The largest absolute finite number, at least 1: what a result is measured by. */
double golden_largest(golden_case *c, att_view view);

/* y [M,N] = x [M,K] weight^T + bias; weight [N,K], bias [N] or absent. */
att_view golden_linear(golden_case *c, att_view x, att_view weight, att_view bias);

/* [B*T, H*D] as [B,H,T,D]: head h owns D adjacent columns. */
att_view golden_heads(att_view rows, int64_t batch, int64_t n_heads);

#endif
