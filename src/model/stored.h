/* How a file keeps a weight: its name, and where in the tensor of that name it is.
 *
 * Files fuse weights into one tensor, along the outputs, in three ways: one after
 * the other (q k v), head by head (q k v of head 0, q k v of head 1 …) or row by
 * row in turns (gate, up, gate, up …). A weight of experts has them as its first
 * dimension. All of it is strides: the view of a part is the same weight in
 * canonical order, for reading as well as for writing. */
#ifndef ATT_MODEL_STORED_H
#define ATT_MODEL_STORED_H

#include "attend/view.h"
#include "model/weights.h"

typedef enum att_fusion {
  ATT_FUSED_NOT,
  ATT_FUSED_ENDS,
  ATT_FUSED_HEADS,
  ATT_FUSED_TURNS
} att_fusion;

typedef struct att_stored_name {
  const char *name;    /* {l} is the layer; NULL: this family has no such weight */
  const char *other;   /* or called so, in older files or in a variant of the family */
  bool other_if_plain; /* written by the other name if the network is not gated */
  bool transposed;     /* stored [in, out] */
  bool lacks_one;      /* stored as w, meant as 1 + w */
  att_fusion fusion;
  int part, parts; /* of a fused tensor; the others are the slots two apart */
} att_stored_name;

/* The shape of the whole tensor; the number of its dimensions comes back. */
int att_stored_shape(int64_t shape[3], const att_stored_name *stored, const att_config *config,
                     att_slot slot);

/* The slot's part of the whole tensor, which has that shape: elements in row-major
 * order are canonical [rows, columns]. */
att_view att_stored_part(att_view whole, const att_stored_name *stored, const att_config *config,
                         att_slot slot);

/* "[4,32]" of a shape, for messages. */
const char *att_shape_text(char out[96], const int64_t *shape, int ndim);

#endif
