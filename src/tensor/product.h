/* Matrix product with a packed right-hand side: y = x W^T + bias + residual.
 *
 *   y(m,n) = sum over k = 0 … K-1 of x(m,k) * W(n,k), one chain of fused
 *   multiply-adds from +0, then + bias(n), then + residual(m,n).
 *
 * W [N,K] is packed once into panels of 16 rows, k-major: panel n/16 holds at
 * k*16 + n%16 the number W(n,k); missing rows of the last panel are zero. A panel
 * keeps numbers as wide as they were stored: f16 and bf16 are widened, blocks of
 * q8_0 multiplied out, in the kernel, which is exact, so the width never shows in
 * the bits, only in the memory that passes by. q8_0 keeps for every 32 steps of k
 * first 16 scales (f16), then 32 x 16 bytes q + 128: as large as the file.
 *
 * q4_0, q4_K and q6_K meet x rounded to 8 bits, in blocks of 32 of its own scale: sums
 * inside a block are exact integers, and a chain goes from block to block
 * (docs/math/canonical_order.md). How rows are cut cannot show here either. */
#ifndef ATT_TENSOR_PRODUCT_H
#define ATT_TENSOR_PRODUCT_H

#include <stdbool.h>

#include "attend/view.h"
#include "base/runtime.h"

#define ATT_PANEL 16

typedef struct att_packed {
  void *panels;    /* ceil(n/16) of them, 64-byte aligned */
  att_dtype dtype; /* f32, f16, bf16, q8_0, q4_0, q4_K or q6_K */
  int64_t n, k;
} att_packed;

/* Floats that packing [n,k] as f32 takes; -1 on overflow. */
int64_t att_packed_floats(int64_t n, int64_t k);

/* Bytes that packing as a type takes; -1 on overflow. */
int64_t att_packed_bytes(att_dtype dtype, int64_t n, int64_t k);

/* The type that numbers stored as `dtype` are packed in: the same where there
 * are kernels for it, else f32. */
att_dtype att_packed_dtype(att_dtype dtype);

/* True for a type whose products round x to 8 bits. */
bool att_packed_rounds(att_dtype dtype);

/* Memory for panels of a type, not filled. TOO_LARGE, OUT_OF_MEMORY. */
att_status att_packed_allocate(att_packed *out, const att_runtime *runtime, att_dtype dtype,
                               int64_t n, int64_t k);

/* Packs w [N,K] (f32, f16 or bf16, any strides) into new memory, as f32. BAD_SHAPE,
 * BAD_DTYPE, TOO_LARGE, OUT_OF_MEMORY. */
att_status att_packed_create(att_packed *out, const att_runtime *runtime, const att_view *w);

/* Packs other numbers of the same shape into the same memory, which is of f32. */
att_status att_packed_fill(att_packed *packed, const att_runtime *runtime, const att_view *w);

/* True if numbers can go from the view into a panel as they are stored: it has the
 * type that it is packed in, and its last dimension is a whole row. */
bool att_packed_keeps(const att_view *w, int64_t k);

/* Panels begin … end-1 from rows of such a view: row 0 of the matrix is row `first`
 * of the view, whose leading dimensions are counted through as one. */
void att_packed_keep(att_packed *packed, const att_runtime *runtime, const att_view *w,
                     int64_t first, int64_t begin, int64_t end);

/* y [K] = row `index`, as f32. */
void att_packed_row(const att_packed *packed, int64_t index, float *y);

void att_packed_release(att_packed *packed, const att_runtime *runtime);

typedef struct att_product_args {
  const float *x; /* [M,K], rows x_stride apart, elements adjacent */
  int64_t x_stride, m;
  const att_packed *w;
  int64_t k_first, k_count; /* only these columns of W, and x has no others; 0: all */
  const float *bias;        /* [N] or NULL */
  const float *residual;    /* [M,N] or NULL; may be y itself if all columns are used */
  int64_t residual_stride;
  float *y; /* [M,N]; must not overlap x */
  int64_t y_stride;
  float *const *y_rows; /* [M] rows of [N] instead of y, without residual; or NULL */
} att_product_args;

/* Runs the product over all threads of the runtime. Allocates nothing. */
void att_product(const att_runtime *runtime, const att_product_args *args);

#endif
