/* explain_grad.h — the row's gradients: how a loss would change with each number. */
#ifndef ATTEND_CLI_EXPLAIN_GRAD_H
#define ATTEND_CLI_EXPLAIN_GRAD_H

#include "explain.h"

/* With L = -log p(target) behind the last position:
 *   dA_j = dz . v_j     dS_j = A_j (dA_j - sum A dA)     dq = scale sum dS_j k_j
 *   dk_j = scale dS_j q (this row's part)                dv_j = A_j dz (the same) */
typedef struct explained_grad {
  int32_t target;
  double loss;
  float *dz;                     /* [Dv], from the model's own way back */
  float *own_dq;                 /* [D], the same: of qr where q is turned */
  float *da, *ds, *dq, *dk, *dv; /* [T] [T] [D] [D] [Dv]; dk and dv of the chosen key */
  float delta;                   /* sum of A dA */
} explained_grad;

/* `target` is a token as text, NULL: the likeliest. Returns an exit code, after a
 * complaint if it is not 0; explain_grad_free in any case. */
int explain_grad_collect(explained_grad *g, const cli *c, const explained *e, const char *target);
void explain_grad_free(explained_grad *g);

void explain_grad_text(const cli *c, const explained *e, const explained_grad *g);
void explain_grad_json(json *j, const explained *e, const explained_grad *g);

#endif
