/* Copying between views of any strides and float types.
 *
 * Every float type widens exactly to f64, and f64 narrows to each with a single
 * rounding, so four loads and four stores make all pairs, in strips of a small
 * buffer. Equal types are copied as bits: a NaN keeps its payload.
 *
 * Dimensions are first sorted by the target's strides and merged where both
 * sides run on, so that a permuted copy is one long row and writes ascend. */
#include "attend/view.h"

#include <string.h>

#include "base/dtype.h"
#include "base/float_mode.h"
#include "tensor/shape.h"

#define STRIP 256 /* elements in the buffer */

typedef struct loop {
  int64_t n, target, source; /* size, and both strides in elements */
} loop;

typedef struct walk {
  int ndim;
  loop loops[ATT_MAX_NDIM]; /* outermost first */
} walk;

static int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Adds a loop so that the target's strides descend. */
static void insert(walk *w, loop added) {
  int at = w->ndim++;
  for (; at > 0 && magnitude(w->loops[at - 1].target) < magnitude(added.target); at--)
    w->loops[at] = w->loops[at - 1];
  w->loops[at] = added;
}

/* Makes one loop of two wherever the outer one goes on where the inner ends. */
static void merge(walk *w) {
  int kept = 0;
  for (int d = 1; d < w->ndim; d++) {
    loop *outer = &w->loops[kept], inner = w->loops[d];
    if (outer->target == inner.target * inner.n && outer->source == inner.source * inner.n)
      *outer = (loop){outer->n * inner.n, inner.target, inner.source};
    else
      w->loops[++kept] = inner;
  }
  w->ndim = kept + 1;
}

/* The loops of a copy; of a block dtype, in blocks. */
static walk plan_walk(const att_view *target, const att_view *source) {
  int64_t block = att_dtype_block(target->dtype);
  walk w = {0};
  for (int d = 0; d < target->ndim; d++) {
    loop l = {target->shape[d], target->stride[d], source->stride[d]};
    if (block > 1 && d == target->ndim - 1)
      l.n /= block;
    else if (block > 1)
      l = (loop){l.n, l.target / block, l.source / block};
    if (l.n != 1) insert(&w, l);
  }
  if (w.ndim == 0) insert(&w, (loop){1, 1, 1});
  merge(&w);
  return w;
}

/* Both views' dtypes and where the walk stands. */
typedef struct cursor {
  char *to;
  const char *from;
  att_dtype target, source;
  int64_t to_bytes, from_bytes; /* of an element or block */
} cursor;

static void load(double *buffer, int64_t n, att_dtype dtype, const void *from, int64_t stride) {
  const double *f64 = from;
  const float *f32 = from;
  const uint16_t *half = from;
  switch ((int)dtype) {
  case ATT_F64:
    for (int64_t i = 0; i < n; i++) buffer[i] = f64[i * stride];
    break;
  case ATT_F32:
    for (int64_t i = 0; i < n; i++) buffer[i] = f32[i * stride];
    break;
  case ATT_F16:
    for (int64_t i = 0; i < n; i++) buffer[i] = att_f16_to_f32(half[i * stride]);
    break;
  case ATT_BF16:
    for (int64_t i = 0; i < n; i++) buffer[i] = att_bf16_to_f32(half[i * stride]);
    break;
  }
}

static void store(void *to, int64_t stride, att_dtype dtype, const double *buffer, int64_t n) {
  double *f64 = to;
  float *f32 = to;
  uint16_t *half = to;
  switch ((int)dtype) {
  case ATT_F64:
    for (int64_t i = 0; i < n; i++) f64[i * stride] = buffer[i];
    break;
  case ATT_F32:
    for (int64_t i = 0; i < n; i++) f32[i * stride] = (float)buffer[i];
    break;
  case ATT_F16:
    for (int64_t i = 0; i < n; i++) half[i * stride] = att_f64_to_f16(buffer[i]);
    break;
  case ATT_BF16:
    for (int64_t i = 0; i < n; i++) half[i * stride] = att_f64_to_bf16(buffer[i]);
    break;
  }
}

static void convert_row(const cursor *c, loop row) {
  double buffer[STRIP];
  for (int64_t first = 0; first < row.n; first += STRIP) {
    int64_t n = row.n - first < STRIP ? row.n - first : STRIP;
    load(buffer, n, c->source, c->from + first * row.source * c->from_bytes, row.source);
    store(c->to + first * row.target * c->to_bytes, row.target, c->target, buffer, n);
  }
}

static void copy_row(const cursor *c, loop row) {
  int64_t bytes = c->to_bytes;
  if (row.target == 1 && row.source == 1) {
    memcpy(c->to, c->from, (size_t)(row.n * bytes));
    return;
  }
  for (int64_t i = 0; i < row.n; i++)
    memcpy(c->to + i * row.target * bytes, c->from + i * row.source * bytes, (size_t)bytes);
}

static void advance(cursor *c, loop along, int64_t steps) {
  c->to += steps * along.target * c->to_bytes;
  c->from += steps * along.source * c->from_bytes;
}

static void copy_elements(const walk *w, cursor c) {
  int64_t index[ATT_MAX_NDIM] = {0};
  int outer = w->ndim - 1; /* loops around the row */
  for (;;) {
    (c.target == c.source ? copy_row : convert_row)(&c, w->loops[outer]);
    int d = outer - 1;
    for (; d >= 0; d--) {
      advance(&c, w->loops[d], 1);
      if (++index[d] < w->loops[d].n) break;
      advance(&c, w->loops[d], -index[d]);
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

att_status att_view_copy(const att_view *target, const att_view *source) {
  ATT_TRY(att_view_check(source, "source", ATT_ANY_NDIM));
  ATT_TRY(att_view_check_shape(target, "target", source->ndim, source->shape));
  bool floats = att_dtype_is_float(target->dtype) && att_dtype_is_float(source->dtype);
  if (target->dtype != source->dtype && !floats)
    return att_fail(ATT_BAD_DTYPE, "cannot convert %s to %s", att_dtype_name(source->dtype),
                    att_dtype_name(target->dtype));
  if (att_view_repeats(target))
    return att_fail(ATT_BAD_ARGUMENT, "target: two indices name the same element");
  if (att_views_overlap(target, source))
    return att_fail(ATT_BAD_ARGUMENT, "target and source overlap");
  if (att_view_count(source) == 0) return ATT_OK;

  walk w = plan_walk(target, source);
  uint64_t mode = att_float_mode_enter();
  copy_elements(&w, (cursor){target->data, source->data, target->dtype, source->dtype,
                             att_dtype_bytes(target->dtype), att_dtype_bytes(source->dtype)});
  att_float_mode_leave(mode);
  return ATT_OK;
}
