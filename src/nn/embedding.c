/* Rows of a plain or packed table. */
#include "nn/embedding.h"

#include <string.h>

void att_embedding_row(const att_embedding *embedding, int64_t index, float *y) {
  int64_t width = embedding->width;
  if (embedding->table) {
    memcpy(y, embedding->table + index * width, (size_t)width * sizeof *y);
    return;
  }
  att_packed_row(embedding->packed, index, y);
}
