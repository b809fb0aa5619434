/* The way back through a case: modules write down what they did, and the tape is
 * run from its end with the library's backward functions. */
#ifndef ATT_TESTS_GOLDEN_TAPE_H
#define ATT_TESTS_GOLDEN_TAPE_H

#include "golden.h"

/* What a step did; views are f32 rows [M,N]. A part that is not there is absent. */
typedef enum tape_kind {
  TAPE_LINEAR,
  TAPE_NORM,
  TAPE_ADD,
  TAPE_GELU,
  TAPE_RELU,
  TAPE_APPEND,
  TAPE_ATTENTION
} tape_kind;

typedef struct tape_step {
  tape_kind kind;
  att_view y, x;           /* result and input */
  att_view weight, bias;   /* of linear and norm; bias of append: the appended row */
  att_view other;          /* the second input of add */
  double eps;              /* of norm */
  int64_t batch;           /* of append */
  att_sdpa_args attention; /* with out and lse */
} tape_step;

void golden_tape(golden_case *c, const tape_step *step);

/* Runs all steps backwards from "grad_out", the gradient of `out` [batch*n,E], and
 * compares every tensor "grad.<parameter>" of the case. */
void golden_back(golden_case *c, att_view out, int64_t batch, int64_t n);

/* Compares the case's tensor `name`, if there is one, with the sum of the gradients
 * of these rows [batch*n,E]. */
void golden_expect_input(golden_case *c, const char *name, const att_view *rows, int count,
                         int64_t batch, int64_t n);

/* The gradient of a tensor the steps named, of its shape; zeros if none did. */
att_view golden_gradient(golden_case *c, att_view of);

#endif
