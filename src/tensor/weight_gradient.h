/* Gradient of a product's weights: y = x W^T + bias with y [M,N], x [M,K].
 *
 *   dw(n,k) = sum over m of dy(m,n) * x(m,k)        db(n) = sum over m of dy(m,n)
 *
 * The rows m are cut into slices. Inside a slice a sum is one chain of fused
 * multiply-adds in ascending m from +0; the slices' sums are added as the leaves
 * of a binary tree, and an empty slice is a copy of the other side:
 *
 *   slices 0 … 4:   ((0 + 1) + (2 + 3)) + 4
 *
 * so calls of 2^n slices each, the first at a multiple of 2^n, give subtrees of
 * what one call gives, bit for bit. (The gradient of x needs nothing new: pack
 * W transposed and dx = dy W is the product of product.h.) */
#ifndef ATT_TENSOR_WEIGHT_GRADIENT_H
#define ATT_TENSOR_WEIGHT_GRADIENT_H

#include <stdbool.h>

#include "base/runtime.h"

typedef struct att_weight_gradient_args {
  const float *dy; /* [M,N], rows dy_stride apart, elements adjacent */
  int64_t dy_stride;
  const float *x; /* [M,K] */
  int64_t x_stride;
  int64_t n, k;
  const int64_t *cuts; /* slice s holds rows cuts[s] … cuts[s+1]-1; ascending */
  int64_t slices;
  bool accumulate; /* dw = dw + the tree, as one more addition; db likewise */
  float *dw;       /* [N,K]; must not overlap dy or x */
  int64_t dw_stride;
  float *db;        /* [N] or NULL */
  float *workspace; /* att_weight_gradient_floats numbers, 64-byte aligned */
} att_weight_gradient_args;

/* Numbers of workspace that calls of up to `slices` slices take; no size of a
 * matrix matters. -1 on overflow. */
int64_t att_weight_gradient_floats(const att_runtime *runtime, int64_t slices);

/* Runs over all threads of the runtime; they take pieces of dw, so their number
 * cannot show. Allocates nothing. Cost 2·M·N·K flops. */
void att_weight_gradient(const att_runtime *runtime, const att_weight_gradient_args *args);

#endif
