/* Inside of the GGUF reader: gguf.c opens and looks up, gguf_values.c reads
 * keys, gguf_tensors.c the records of tensors. */
#ifndef ATT_IO_GGUF_READ_H
#define ATT_IO_GGUF_READ_H

#include "io/gguf.h"

struct att_gguf {
  const att_runtime *runtime;
  char *name; /* begins messages */
  att_file file;
  int64_t n_values, n_tensors;
  att_gguf_value *values;
  const att_gguf_value **by_key; /* sorted */
  att_gguf_tensor *tensors;
  const att_gguf_tensor **by_name; /* sorted */
};

/* Where reading stands; `what` names what is being read. */
typedef struct att_gguf_cursor {
  const unsigned char *bytes;
  size_t n, at;
  const char *name, *what;
} att_gguf_cursor;

/* Each fails with CORRUPT if the file ends first, or the length is absurd. */
att_status att_gguf_take(const unsigned char **out, att_gguf_cursor *cursor, uint64_t n);
att_status att_gguf_u32(uint32_t *out, att_gguf_cursor *cursor);
att_status att_gguf_u64(uint64_t *out, att_gguf_cursor *cursor);
att_status att_gguf_string(att_gguf_text *out, att_gguf_cursor *cursor);

/* CORRUPT unless the name is 1 … most bytes of UTF-8 without a zero. */
att_status att_gguf_check_name(const att_gguf_cursor *cursor, att_gguf_text name, size_t most);

/* One key with its value. */
att_status att_gguf_read_value(att_gguf_value *out, att_gguf_cursor *cursor);

/* The records of all tensors, whose room is there; then the data part. */
att_status att_gguf_read_tensors(att_gguf *gguf, att_gguf_cursor *cursor);

/* The type of a tensor in the file, or -1. */
int64_t att_gguf_type_of(att_dtype dtype);

/* Bytes of an element; 0 if it depends. */
int att_gguf_type_bytes(att_gguf_type type);

#define ATT_GGUF_ALIGNMENT 32 /* where a file does not say, and what we write */
#define ATT_GGUF_LABEL 96     /* bytes of a quoted name in a message */

/* Little-endian numbers at any address. */
static inline uint32_t att_gguf_load32(const unsigned char *b) {
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}
static inline uint64_t att_gguf_load64(const unsigned char *b) {
  return att_gguf_load32(b) | (uint64_t)att_gguf_load32(b + 4) << 32;
}

#endif
