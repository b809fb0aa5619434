/* The kernel table: every operation whose bits or speed matter, behind one
 * struct of function pointers that hangs on the runtime.
 *
 * A table starts as the plain definition of its class and is overlaid by what
 * its target does faster, with the same bits. Which table a runtime has is
 * decided once (dispatch.c). Panels: 16 columns side by side, k-major, so that
 * lane = column and no sum ever runs across lanes.
 */
#ifndef ATT_KERNELS_KERNELS_H
#define ATT_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "attend/status.h"

#define ATT_LANES 16 /* width of a panel, and of tree16 */

/* Memory that is needed soon, a hint: rows of `width` bytes, `row` bytes apart, of
 * which `rows` are to be fetched beside each panel of B, in order. */
typedef struct att_fetch {
  const void *from; /* NULL: none */
  int64_t row, width, rows;
} att_fetch;

/* C [rows, cols] = A [rows, k] B [k, cols]: c(r,n) is one chain of multiply-adds
 * over k in ascending order, from +0 or, with `accumulate`, from the old c(r,n)
 * (times scale[r] if given); then + bias[n]; then + residual(r,n). B lies in panels of 16 columns:
 * column n at step j is b[(n/16) * b_panel + j * b_k + n%16]; whole panels are readable, the lanes
 * past `cols` may hold anything. */
typedef struct att_tile {
  float *c;
  int64_t c_row;
  const float *a;
  int64_t a_row, a_k;
  const void *b;        /* f32, or what the kernel's name says */
  int64_t b_panel, b_k; /* in elements */
  int64_t rows, cols, k;
  int64_t ahead;   /* bytes from an element of b to one needed soon */
  att_fetch fetch; /* more than four rows, instead: what to fetch beside the arithmetic */
  bool accumulate;
  const float *scale;    /* [rows] or NULL; with accumulate */
  const float *bias;     /* [cols] or NULL */
  const float *residual; /* [rows, cols] or NULL; may be c */
  int64_t residual_row;
} att_tile;

/* C [rows, cols] of weights in blocks and activations in 8 bits: for block after block
 * of 32 steps  c = fma(step * d, sum of (q - zero) a, c), twice where each 16 have a
 * step; then, of q4_K, fma(-(least * d), sum of a, c). The sums are exact integers. How
 * blocks of 16 columns lie is in ref/tile_blocks.h. */
typedef struct att_tile_blocks {
  float *c;
  int64_t c_row;
  const int8_t *a; /* [rows][32 * blocks], rows a_row apart */
  int64_t a_row;
  const float *scales; /* d [rows][blocks], rows scale_row apart */
  const int32_t *sums; /* [rows][blocks][2]: of each 16 of a, in the same rows */
  int64_t scale_row;
  const void *b;
  int64_t b_panel; /* bytes from panel to panel */
  int64_t rows, cols;
  int64_t first, blocks; /* blocks of a panel that are used */
  bool accumulate;
  const float *bias;     /* [cols] or NULL */
  const float *residual; /* [rows, cols] or NULL; may be c */
  int64_t residual_row;
} att_tile_blocks;

/* Bytes of 16 columns: of 32 steps of q4_0, of 256 of the others. Scales and minima of
 * q4_K are bytes here, so it is 148/144 of what a file takes. */
#define ATT_BLOCKS_Q4_0_BYTES (18 * ATT_LANES)
#define ATT_BLOCKS_Q4_K_BYTES (148 * ATT_LANES)
#define ATT_BLOCKS_Q6_K_BYTES (210 * ATT_LANES)

/* Source rows [n, k] with element strides; panels [ceil(n/16), k, 16]; lanes of
 * missing rows become +0. `panel_stride` is the distance between panels (at
 * least 16 k). */
typedef struct att_pack {
  int64_t n, k;
  int64_t row_stride, k_stride;
  int64_t panel_stride;
} att_pack;

/* One block of online softmax (canonical_order.md, "blocks"). For each row r:
 *   x = scale * s; x = softcap * tanh(x / softcap); x += bias;
 *   x = fma(-slope[r], |position[r] - j|, x); hidden or bias -inf -> -inf
 * then with mb the largest x, m' = max(m, mb), e = exp(x - m') (hidden: +0):
 *   factor = exp(m - m'), l = fma(l, factor, tree16(e)), s <- e.
 * A row without a visible key keeps m and l and gets factor 1. The first live
 * block of a row (m = -inf) has factor 1. A hidden key's e is +0; with
 * `mark_hidden` -0, which can be told from a visible one that underflowed.
 * Column c is key first_key + c. */
typedef struct att_softmax_tile {
  float *s; /* in: products; out: e */
  int64_t s_row;
  int64_t rows, cols; /* cols <= block; s is writable to a multiple of 16 */
  float scale;
  float softcap;            /* INFINITY: none */
  const float *const *bias; /* [rows] pointers to column 0, or NULL */
  int64_t bias_col;
  const float *slope;      /* [rows] or NULL */
  const int64_t *position; /* [rows], with slope */
  int64_t first_key;
  const int32_t *low, *high; /* [rows] visible columns low <= c < high; NULL: all */
  const uint8_t *visible;    /* or NULL: also visible[r * visible_row + c] != 0 */
  int64_t visible_row;
  bool mark_hidden;
  const float *keep; /* dropout: e is multiplied by keep(r,c) after l; or NULL */
  int64_t keep_row;
  float *m, *l, *factor; /* [rows] */
} att_softmax_tile;

/* What a block of finished rows mixes: final scores as above from products, in
 * place (m and l are the rows' totals, with the sink), then for each row
 *   w = exp(x - m) * (1 / l); hidden, or of a row with nothing: +0
 *   entropy[c % 16] -= w ((x - m) - log l), w = 0 apart
 *   w = w * keep where w is not 0
 *   columns[c] += w
 * s, w and keep are readable, s and w writable to a multiple of 16 columns. */
typedef struct att_weights_tile {
  att_softmax_tile scores;
  float *w;
  int64_t w_row;
  float *entropy; /* [rows, 16] or NULL */
  float *columns; /* [cols] or NULL */
} att_weights_tile;

/* Total (m, l, o) <- total merged with one more span (sm, sl, so), rows apart:
 *   m' = max(m, sm), a = exp(m - m'), b = exp(sm - m'),
 *   l = fma(l, a, sl b), o = fma(o, a, so b).
 * An empty side (m = -inf) is a copy of the other. */
typedef struct att_merge_rows {
  float *m, *l, *o;
  int64_t o_row;
  const float *sm, *sl, *so;
  int64_t so_row;
  int64_t rows, n;
} att_merge_rows;

/* Sink merged as (sink, 1, 0), then out = o * (1/l) + 0 and lse = m + log l. A
 * row with nothing: out = +0, lse = -inf. m and l become those with the sink. */
typedef struct att_finish_rows {
  float *m, *l;
  const float *o;
  int64_t o_row;
  const float *sink; /* [rows] or NULL */
  float *out;        /* may be o */
  int64_t out_row;
  float *lse; /* [rows] or NULL */
  int64_t rows, n;
} att_finish_rows;

/* One query row against S keys, as the definition says it: key by key, block
 * by block, span by span. Keys and values are given by strides. */
typedef struct att_attention_row {
  const float *q; /* [D] adjacent */
  const float *k; /* [S,D] */
  int64_t k_row, k_col;
  const float *v; /* [S,Dv] */
  int64_t v_row, v_col;
  int64_t keys, d, dv;
  int64_t block, span;
  float scale, softcap;
  const float *bias; /* [S] with stride, or NULL */
  int64_t bias_col;
  float slope;            /* 0: none */
  int64_t position;       /* of the query, for slope */
  int64_t low, high;      /* visible keys low <= j < high */
  const uint8_t *visible; /* [S] or NULL: also visible[j] != 0 */
  const float *keep;      /* [S] or NULL: dropout factors */
  float *scores;          /* [S] scratch: receives masked scores */
  float *o;               /* [Dv] out */
  float *so;              /* [Dv] scratch */
  float *m, *l;           /* out */
} att_attention_row;

/* The backward of one query row. `row` describes the forward (its results o, m,
 * l and so are not used). weight, dscore and dproduct [S] are scratch that the
 * caller may read: exp(s - lse) times dropout's factor, the gradient of the
 * final score, and of q . k. dq is written; dk [S,D] and dv [S,Dv] are continued.
 * dq, dk, dv may be NULL. */
typedef struct att_attention_backward_row {
  const att_attention_row *row;
  const float *dout; /* [Dv] */
  float delta, lse;
  float *weight, *dscore, *dproduct;
  float *dq, *dk, *dv;
  float score_sum, distance_sum; /* out: tree16 of dscore, of |position - j| dscore */
} att_attention_backward_row;

/* A tile of the backward between its products: of each pair's q . k and dout . v
 * the weight and the gradients of score and product (canonical_order.md,
 * "backward"). Hidden keys get zeros, columns past `cols` up to a multiple of 16
 * too. Of `scores` m, l, factor and mark_hidden are not used. */
typedef struct att_backward_tile {
  att_softmax_tile scores; /* s: in q . k, out weights times dropout's factor */
  float *d;                /* in: dout . v; out: gradient of q . k */
  int64_t d_row;
  const float *lse, *delta; /* [rows] */
  float *dscore;            /* gradient of the final score, or NULL */
  int64_t dscore_row;
  float *score_sums, *distance_sums; /* [rows, 16] partial sums that go on, or NULL */
} att_backward_tile;

/* Which weights of a row dropout keeps: keep[c] = first word of Philox4x32-10
 * with `key` and counter (b, h, i, first_key + c) < limit ? 0 : factor. */
typedef struct att_dropout_row {
  float *keep; /* writable to a multiple of 16 */
  int64_t n;
  uint32_t b, h, i, first_key;
  uint64_t key, limit;
  float factor;
} att_dropout_row;

/* One step of Adam with decoupled decay over n parameters (body/vgrad.h). */
typedef struct att_adamw {
  float *w, *m, *v; /* weights, mean and mean square of gradients; updated */
  const float *g;
  int64_t n;
  float clip;                     /* factor on g */
  float beta1, rest1;             /* rest = 1 - beta, rounded once */
  float beta2, rest2;             /* the same of the square */
  float correction1, correction2; /* 1 / (1 - beta^t) */
  float eps, rate;
  float keep; /* 1 - rate * decay */
} att_adamw;

typedef struct att_kernels {
  const char *target;   /* "avx2" … */
  const char *numerics; /* class: "fma" or "muladd" */
  int64_t tile_rows;    /* rows that tile_product likes to get in multiples of */
  bool tiled;           /* false: the definition, row by row */
#define ATT_KERNEL(name, parameters, contract) void(*name) parameters;
#include "kernels/kernels.inc"
#undef ATT_KERNEL
} att_kernels;

/* Fills `out` with the table of a target by name, NULL for the best of this
 * processor. UNSUPPORTED with a list of those that would work; UNSUPPORTED too
 * if the target fails its self-test here (see self_test.c). */
struct att_runtime;
att_status att_kernels_select(att_kernels *out, const struct att_runtime *runtime,
                              const char *target);

/* Runs every kernel of `table` against `plain` on a few hundred small inputs;
 * NULL if all bits agree, else the name of the first kernel that differs. */
const char *att_kernels_self_test(const att_kernels *table, const att_kernels *plain);

#endif
