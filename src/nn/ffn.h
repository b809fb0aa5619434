/* The feed-forward network of a block.
 *
 *   gated:  y = down(act(gate(x)) * up(x))
 *   plain:  y = down(act(up(x))) */
#ifndef ATT_NN_FFN_H
#define ATT_NN_FFN_H

#include "nn/linear.h"
#include "nn/tap.h"

typedef enum att_ffn_kind {
  ATT_FFN_NONE,
  ATT_FFN_PLAIN,
  ATT_FFN_GATED,
  ATT_FFN_EXPERTS /* several gated ones, of which each token takes some (experts.h) */
} att_ffn_kind;

typedef enum att_activation {
  ATT_SILU,
  ATT_GELU,
  ATT_GELU_TANH,
  ATT_RELU,
  ATT_SWIGLU_CLAMPED /* (up + 1) * gate * sigmoid(1.702 gate), both clamped; of experts */
} att_activation;

typedef struct att_ffn {
  att_ffn_kind kind;
  att_activation activation;
  att_linear gate, up, down; /* [F,C], [F,C], [C,F]; gate only if gated */
} att_ffn;

/* y = act(x), or act(x) up unless that is NULL; n numbers, y may be x or up. Spread
 * over threads. SiLU is only there with `up`. */
void att_activate(const att_runtime *runtime, att_activation activation, const float *x,
                  const float *up, int64_t n, float *y);

/* y = act(x) on the calling thread; not SiLU. y may be x. */
void att_run_activation(const struct att_kernels *kernels, att_activation activation,
                        const float *x, float *y, int64_t n);

/* True if the network is one that att_ffn_forward computes. */
bool att_ffn_is_supported(att_ffn_kind kind, att_activation activation);

/* y [rows,C] from x [rows,C]; `pre` and `hidden` are scratch [rows,F]. */
void att_ffn_forward(const att_runtime *runtime, const att_ffn *ffn, const float *x, int64_t rows,
                     float *pre, float *hidden, float *y, const att_tap *tap, int64_t layer);

#endif
