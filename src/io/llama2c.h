/* llama2.c's checkpoint files: a header of seven integers, then floats.
 *
 * Version 0 has no mark: dim, hidden, layers, heads, kv heads, vocabulary
 * (negative if the output matrix is stored too), context; then the tensors one
 * after the other, two unused rotation tables among them. Version 1 begins with
 * "24ka", the version, the same integers and a byte that says whether the
 * output is shared, padded to 256 bytes; it stores the norms first. All numbers
 * are little-endian f32. Rotary pairs are neighbours. Nothing in the format
 * says how long a file is meant to be, so its size must be exactly what the
 * header implies. Version 2 (int8) is not read. */
#ifndef ATT_IO_LLAMA2C_H
#define ATT_IO_LLAMA2C_H

#include "attend/view.h"
#include "base/file.h"

typedef enum att_llama2c_tensor {
  ATT_LLAMA2C_EMBEDDING, /* [vocab, dim] */
  ATT_LLAMA2C_RMS_ATT,   /* [layers, dim] */
  ATT_LLAMA2C_WQ,        /* [layers, dim, dim] */
  ATT_LLAMA2C_WK,        /* [layers, kv_dim, dim] */
  ATT_LLAMA2C_WV,        /* [layers, kv_dim, dim] */
  ATT_LLAMA2C_WO,        /* [layers, dim, dim] */
  ATT_LLAMA2C_RMS_FFN,   /* [layers, dim] */
  ATT_LLAMA2C_W1,        /* [layers, hidden, dim]: gate */
  ATT_LLAMA2C_W2,        /* [layers, dim, hidden]: down */
  ATT_LLAMA2C_W3,        /* [layers, hidden, dim]: up */
  ATT_LLAMA2C_RMS_FINAL, /* [dim] */
  ATT_LLAMA2C_TABLES,    /* [2, context, head size / 2], version 0 only */
  ATT_LLAMA2C_OUTPUT,    /* [vocab, dim] unless shared */
  ATT_LLAMA2C_COUNT
} att_llama2c_tensor;

typedef struct att_llama2c {
  int64_t dim, hidden, layers, heads, kv_heads, vocab, context;
  bool shared; /* the output matrix is the embedding */
  att_file file;
  size_t offset[ATT_LLAMA2C_COUNT]; /* in bytes; 0 where a tensor is absent */
} att_llama2c;

/* Maps the file and checks all it says. NOT_FOUND, IO, CORRUPT, UNSUPPORTED;
 * the message has the path, the field and its value. */
att_status att_llama2c_open(att_llama2c *out, const char *path);

/* The same for a file that is mapped already, or bytes in memory; `name` begins
 * the message. The file is taken over on success only. */
att_status att_llama2c_read(att_llama2c *out, att_file file, const char *name);
void att_llama2c_close(att_llama2c *file);

/* The tensor (of one layer, if it is stored per layer), f32 [rows, columns],
 * [n] if a vector; borrowed from the map. Absent if the file has none. */
att_view att_llama2c_view(const att_llama2c *file, att_llama2c_tensor tensor, int64_t layer);

/* Whether a file of `file_bytes` that begins with `head` can be a checkpoint: by its
 * magic or, in the version without one, by sizes that a model can have and that the
 * file has room for. */
bool att_llama2c_is_likely(const unsigned char *head, size_t head_bytes, size_t file_bytes);

#endif
