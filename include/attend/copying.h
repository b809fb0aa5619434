/* attend/copying.h — does a head make likelier the token that it looks at?
 *
 * What a head would do to the logits of all tokens if it looked at one token alone is its
 * OV circuit, from the token's embedding by way of its value and W_O to the output matrix:
 *
 *     O = W_U W_O W_V W_E        [V,V], of rank D
 *
 * A head that copies has positive numbers on the diagonal of O. Two ways to say how much:
 * by eigenvalues, for all tokens at once, and token by token. Both are of the weights
 * alone, without prompt, biases and the blocks between. docs/math/copying.md.
 * From any thread, several on one att_copying too; results are written only on success.
 */
#ifndef ATTEND_COPYING_H
#define ATTEND_COPYING_H

#include "attend/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_copying_options {
  size_t struct_size; /* set by att_copying_options_init */
  bool norms;         /* default true: weights of the norms before W_V and W_U are in the circuit,
                         and the mean that a layer norm takes away is not */
  bool center;        /* default true: the mean over tokens is taken from W_U: it moves all
                         logits alike, which changes no probability */
  int64_t top;        /* of att_copying_tokens, default 5 */
} att_copying_options;

ATT_API void att_copying_options_init(att_copying_options *options);

/* What all heads of a model have in common: W_E^T W_U [C,C]. Borrows the model. NULL options:
 * defaults. UNSUPPORTED (no decoder), BAD_ARGUMENT, OUT_OF_MEMORY, TOO_LARGE. Cost 2·V·C²
 * flops. */
typedef struct att_copying att_copying;
ATT_API att_status att_copying_create(att_copying **out, const att_model *model,
                                      const att_copying_options *options);
ATT_API void att_copying_free(att_copying *copying);

typedef struct att_copying_value {
  double score; /* sum of eigenvalues / sum of their sizes: 1 copies, -1 suppresses; NaN: O = 0 */
  double positive; /* share of the sizes that lies on eigenvalues with a positive real part */
  att_copying_options options;
} att_copying_value;

/* Of the D eigenvalues of O that may differ from 0, which are those of a matrix [D,D].
 * BAD_ARGUMENT (no such head), OUT_OF_MEMORY, DIVERGED (they are not found: a weight is no
 * number). Cost 2·D·C² + 40·D³ flops. */
ATT_API att_status att_copying_score(att_copying_value *out, const att_copying *copying,
                                     int64_t layer, int64_t head);

typedef struct att_copying_tokens_value {
  double share;   /* of tokens that are among the `top` largest logits of their own row of O */
  double rank;    /* mean of how many logits are larger than the token's own, equal ones half */
  int64_t tokens; /* that were tried */
  att_copying_options options;
} att_copying_tokens_value;

/* The same for n tokens, each by itself. Errors as above, BAD_ARGUMENT also for a token that
 * is not in the vocabulary. Cost 2·n·V·C flops. */
ATT_API att_status att_copying_tokens(att_copying_tokens_value *out, const att_copying *copying,
                                      int64_t layer, int64_t head, const int32_t *tokens,
                                      int64_t n);

#ifdef __cplusplus
}
#endif
#endif
