/* attend/backward.h — gradients of attention.
 *
 * With w(i,j) the forward's weight and L the loss, given dout = dL/dout:
 *
 *     delta_i  = dout_i . out_i
 *     dw(i,j)  = dout_i . v_j
 *     ds(i,j)  = w(i,j) * (dw(i,j) - delta_i)        of the final score
 *     dx(i,j)  = ds(i,j) * (1 - tanh^2) * scale      of q . k, with a soft cap
 *     dq_i     = sum_j dx(i,j) k_j                   ascending j
 *     dk_j     = sum_i dx(i,j) q_i                   heads of the group, then i
 *     dv_j     = sum_i w(i,j) dout_i                 heads of the group, then i
 *     dbias    = ds, summed over broadcast dimensions, ascending (b, h, i)
 *                (one number for all keys of a row: of sum_j ds)
 *     dslope_h = -sum_(b,i,j) |p_i - j| ds(i,j)
 *     dsink_h  = -sum_(b,i) exp(sink_h - lse_i) * delta_i
 *
 * A row without a visible key contributes exactly nothing. With dropout, dw and
 * the weights in dv carry the forward's factors, found again from the seed.
 */
#ifndef ATTEND_BACKWARD_H
#define ATTEND_BACKWARD_H

#include "attend/sdpa.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_sdpa_grads {
  size_t struct_size; /* set by att_sdpa_grads_init */
  att_view dout;      /* [B,H,T,Dv] float */
  att_view out, lse;  /* what the forward gave, out [B,H,T,Dv], lse f32 [B,H,T] */
  /* Results, written in full; absent views are not computed. */
  att_view dq, dk, dv;     /* shapes of q, k, v; their dtype or f32 */
  att_view dbias;          /* f32, shape of args.bias */
  att_view dalibi, dsinks; /* f32 [H] */
  /* 1: scores are computed once, for all gradients. 2: once for dq, once for dk
   * and dv, which gives more pieces to spread. The same bits; 0 (the default)
   * leaves the choice to the plan. */
  int passes;
} att_sdpa_grads;

typedef struct att_sdpa_backward_plan att_sdpa_backward_plan;

/* All views absent, the plan's choice of passes. */
ATT_API void att_sdpa_grads_init(att_sdpa_grads *grads);

/* Checks arguments (those of the forward, without a cache) and gradients, and
 * allocates the workspace: O(T+S) numbers, never T x S. With f64 inputs all
 * gradients, dout, out and lse are f64. One thread at a time. BAD_ARGUMENT,
 * BAD_SHAPE, BAD_DTYPE, TOO_LARGE, UNSUPPORTED, OUT_OF_MEMORY. */
ATT_API att_status att_sdpa_backward_plan_create(att_sdpa_backward_plan **out, att_runtime *runtime,
                                                 const att_sdpa_args *args,
                                                 const att_sdpa_grads *grads);
ATT_API void att_sdpa_backward_plan_free(att_sdpa_backward_plan *plan);

/* One line: path, threads, workspace. Valid while the plan lives. */
ATT_API const char *att_sdpa_backward_plan_describe(const att_sdpa_backward_plan *plan);

/* Bytes of the plan's workspace. */
ATT_API int64_t att_sdpa_backward_plan_workspace(const att_sdpa_backward_plan *plan);

/* Computes the gradients. `args` and `grads` have the shapes of the plan, or
 * smaller B, T and S. No result may overlap another one or anything that is read.
 * Allocates nothing. The same bits for any number of threads, any layout and
 * number of passes. Cost: 2·pairs·(3D+2Dv) flops a head with one pass. */
ATT_API att_status att_sdpa_backward(att_sdpa_backward_plan *plan, const att_sdpa_args *args,
                                     const att_sdpa_grads *grads);

#ifdef __cplusplus
}
#endif
#endif
