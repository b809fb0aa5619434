/* Token ids to vectors: rows of a table.
 *
 * With a tied output the table exists only as the packed output matrix; a row
 * is then gathered from its panel. Packing moves numbers and never changes
 * them, so both ways give the stored row exactly. */
#ifndef ATT_NN_EMBEDDING_H
#define ATT_NN_EMBEDDING_H

#include "tensor/product.h"

typedef struct att_embedding {
  float *table;             /* [count, width], or NULL: */
  const att_packed *packed; /* borrowed [count, width] */
  int64_t count, width;
} att_embedding;

/* y [width] = row `index` of the table; 0 <= index < count. */
void att_embedding_row(const att_embedding *embedding, int64_t index, float *y);

#endif
