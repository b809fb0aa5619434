/* The way back through the layers: from the gradient of what a layer gave to
 * those of its input and its parameters.
 *
 * Gradients of inputs are row by row. Those of parameters are sums over the rows
 * of a pass, in the order of tensor/weight_gradient.h: a chain inside each slice,
 * slices as a tree, so that threads cannot show in the bits. Rows are adjacent;
 * results are written in full; nothing here allocates. */
#ifndef ATT_NN_BACKWARD_H
#define ATT_NN_BACKWARD_H

#include "nn/ffn.h"
#include "nn/norm.h"
#include "tensor/product.h"

/* What a pass lends to the layers. */
typedef struct att_backward {
  const att_runtime *runtime;
  int64_t rows;
  const int64_t *cuts; /* slice s holds rows cuts[s] … cuts[s+1]-1 */
  int64_t slices;
  float *workspace;      /* att_backward_floats(…) */
  att_packed transposed; /* room for the largest matrix */
} att_backward;

/* `width` is the widest row of an embedding. -1 on overflow. */
int64_t att_backward_floats(const att_runtime *runtime, int64_t slices, int64_t width);

/* forward: y = x W^T + b, x [rows,K], W [N,K]
 *   dW = dy^T x, db = sum of dy           (db NULL: no bias; dW NULL: only db)
 *   dx = dy W [+ residual]                W row-major */
void att_linear_backward_w(const att_backward *pass, const float *dy, int64_t n, const float *x,
                           int64_t k, float *dw, float *db);
void att_linear_backward_x(att_backward *pass, const float *w, const float *dy, int64_t n,
                           int64_t k, const float *residual, float *dx);

/* forward: y = norm(x) w + b. `terms` [rows,C] is scratch; nothing overlaps. dw
 * and db as the norm has them, else NULL. */
void att_norm_backward(const att_backward *pass, const att_norm *norm, const float *x,
                       const float *dy, float *dx, float *terms, float *dw, float *db);

/* forward: hidden = act(pre), or act(pre) up where gated. dpre and dup may be
 * dhidden, pre or up; up and dup are NULL unless gated. */
void att_activation_backward(const att_runtime *runtime, att_activation activation,
                             const float *pre, const float *up, const float *dhidden, int64_t count,
                             float *dpre, float *dup);

/* forward: y(r) = table(ids[r]). Rows of one id are a chain in ascending order;
 * `order` [rows] and `starts` [count + 1] are scratch. */
void att_embedding_backward(const att_backward *pass, const int32_t *ids, const float *dy,
                            int64_t count, int64_t width, int32_t *order, int64_t *starts,
                            float *dtable);

/* loss(r) = -log softmax(x(r))[target], 0 where target < 0; x becomes scale times
 * its gradient, or stays if scale is 0. */
void att_cross_entropy(const att_runtime *runtime, float *x, const int32_t *targets, int64_t rows,
                       int64_t width, float scale, float *loss);

/* x *= mask / (1 - p), forward and backward alike. Whether element i of sequence
 * b is kept follows from (seed, site, b, i) alone; row 0 is the beginning of
 * sequence `sequence`, and `length` rows are one sequence. */
typedef struct att_dropout {
  double p; /* 0: none */
  uint64_t seed;
  int64_t sequence, length;
} att_dropout;
void att_dropout_apply(const att_runtime *runtime, const att_dropout *dropout, int64_t site,
                       float *x, int64_t rows, int64_t width);

#endif
