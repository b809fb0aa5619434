/* Matrix product with a packed right-hand side: y = x W^T + bias + residual.
 *
 *   y(m,n) = sum over k = 0 … K-1 of x(m,k) * W(n,k), one chain of fused
 *   multiply-adds from +0, then + bias(n), then + residual(m,n).
 *
 * W [N,K] is packed once into panels of 16 rows, k-major: panel n/16 holds at
 * k*16 + n%16 the number W(n,k); missing rows of the last panel are zero. */
#ifndef ATT_TENSOR_PRODUCT_H
#define ATT_TENSOR_PRODUCT_H

#include "attend/view.h"
#include "base/runtime.h"

#define ATT_PANEL 16

typedef struct att_packed {
  float *panels; /* ceil(n/16) * k * 16 floats, 64-byte aligned */
  int64_t n, k;
} att_packed;

/* Floats that packing [n,k] takes; -1 on overflow. */
int64_t att_packed_floats(int64_t n, int64_t k);

/* Packs w [N,K] (f32, f16 or bf16, any strides) into new memory. BAD_SHAPE,
 * BAD_DTYPE, TOO_LARGE, OUT_OF_MEMORY. */
att_status att_packed_create(att_packed *out, const att_runtime *runtime, const att_view *w);

/* Packs other numbers of the same shape into the same memory. */
att_status att_packed_fill(att_packed *packed, const att_runtime *runtime, const att_view *w);
void att_packed_release(att_packed *packed, const att_runtime *runtime);

typedef struct att_product_args {
  const float *x; /* [M,K], rows x_stride apart, elements adjacent */
  int64_t x_stride, m;
  const att_packed *w;
  const float *bias;     /* [N] or NULL */
  const float *residual; /* [M,N] or NULL; may be y itself */
  int64_t residual_stride;
  float *y; /* [M,N]; must not overlap x */
  int64_t y_stride;
} att_product_args;

/* Runs the product over all threads of the runtime. Allocates nothing. */
void att_product(const att_runtime *runtime, const att_product_args *args);

#endif
