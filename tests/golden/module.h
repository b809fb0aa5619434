/* Multi-head attention as a PyTorch module computes it: projections, heads, masks
 * and output, of nn.MultiheadAttention itself and inside layers. */
#ifndef ATT_TESTS_GOLDEN_MODULE_H
#define ATT_TESTS_GOLDEN_MODULE_H

#include "attention.h"

/* One module of a case and the call of it. */
typedef struct golden_module {
  golden_case *c;
  const char *prefix;         /* of its parameters, behind "param.": "", "layers.0.self_attn." */
  const char *mask, *padding; /* names of the call's masks */
  int64_t batch, heads, queries, keys;
} golden_module;

/* A parameter of a case by its name behind "param."; absent where there is none. */
att_view golden_parameter(golden_case *c, const char *prefix, const char *name);

/* An input as rows [N*L,E], whichever axis is first in the file; absent if it is. */
att_view golden_input_rows(golden_case *c, const char *name, int64_t *batch, int64_t *n);

/* A linear layer that the tape (tape.h) remembers. */
att_view golden_module_linear(golden_case *c, att_view x, att_view weight, att_view bias);

/* out [N*L,E] for rows q [N*L,E], k and v [N*S,·]; weights [N,H,L,S'] of each head,
 * S' with the keys that the module appends. False if attention failed. */
bool golden_module_run(att_view *out, att_view *weights, const golden_module *module, att_view q,
                       att_view k, att_view v);

#endif
