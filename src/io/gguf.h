/* GGUF, llama.cpp's file of a model: typed keys and values, then tensors.
 *
 *   "GGUF", version u32, tensors u64, keys u64
 *   per key:    name (u64 length, bytes), type u32, value; an array is the type
 *               of its elements u32, their number u64, the elements
 *   per tensor: name, dimensions u32, sizes u64 (the adjacent one first), type
 *               u32, offset u64 from the data part
 *   the data part, at a multiple of "general.alignment" (32)
 *
 * Versions 2 and 3 are read, 3 is written; all is little-endian. A reader checks
 * every count, length and offset against the size of the file before it is used,
 * so whoever holds an att_gguf can trust it: keys and names are distinct UTF-8,
 * tensors lie inside the data part, aligned, and share no byte. What a model
 * makes of the keys is not known here. */
#ifndef ATT_IO_GGUF_H
#define ATT_IO_GGUF_H

#include "attend/view.h"
#include "base/file.h"
#include "base/runtime.h"

typedef enum att_gguf_type {
  ATT_GGUF_U8,
  ATT_GGUF_I8,
  ATT_GGUF_U16,
  ATT_GGUF_I16,
  ATT_GGUF_U32,
  ATT_GGUF_I32,
  ATT_GGUF_F32,
  ATT_GGUF_BOOL,
  ATT_GGUF_STRING,
  ATT_GGUF_ARRAY,
  ATT_GGUF_U64,
  ATT_GGUF_I64,
  ATT_GGUF_F64,
  ATT_GGUF_TYPE_COUNT
} att_gguf_type;

/* Bytes in the map: no zero behind them. */
typedef struct att_gguf_text {
  const char *bytes;
  size_t n;
} att_gguf_text;

typedef struct att_gguf_value {
  att_gguf_text key;
  att_gguf_type type; /* of the elements, if an array; never ATT_GGUF_ARRAY */
  bool is_array;
  int64_t count;             /* elements; 1 unless an array */
  const unsigned char *data; /* the first one, unaligned */
} att_gguf_value;

#define ATT_GGUF_NAME_BYTES 64

typedef struct att_gguf_tensor {
  char name[ATT_GGUF_NAME_BYTES]; /* with its zero */
  const char *type;               /* "Q4_K" … */
  bool has_dtype;                 /* attend has that type too */
  int64_t offset, bytes;          /* in the data part */
  att_view view;                  /* row-major, [rows, columns]; data NULL without a dtype */
} att_gguf_tensor;

typedef struct att_gguf att_gguf;

/* Maps a file and checks all it says. NOT_FOUND, IO, CORRUPT, UNSUPPORTED,
 * OUT_OF_MEMORY; the message has path, key or tensor, and place. */
att_status att_gguf_open(att_gguf **out, const att_runtime *runtime, const char *path);
/* The same from memory that is borrowed, aligned to 8 bytes. */
att_status att_gguf_open_memory(att_gguf **out, const att_runtime *runtime, const void *bytes,
                                size_t n, const char *name);
void att_gguf_close(att_gguf *gguf);

/* Gives the memory of the mapped pages back. */
void att_gguf_forget(const att_gguf *gguf);

const char *att_gguf_name(const att_gguf *gguf);

/* Keys and tensors in the order of the file. */
int64_t att_gguf_count(const att_gguf *gguf);
const att_gguf_value *att_gguf_value_at(const att_gguf *gguf, int64_t index);
int64_t att_gguf_tensor_count(const att_gguf *gguf);
const att_gguf_tensor *att_gguf_tensor_at(const att_gguf *gguf, int64_t index);

/* By name; NULL if absent. */
const att_gguf_value *att_gguf_find(const att_gguf *gguf, const char *key);
const att_gguf_tensor *att_gguf_tensor_find(const att_gguf *gguf, const char *name);

/* Element `index` of a value as a number; false if its type is another (a float
 * is no integer; a u64 above 2^63-1 is none that can be used). */
bool att_gguf_integer(int64_t *out, const att_gguf_value *value, int64_t index);
bool att_gguf_number(double *out, const att_gguf_value *value, int64_t index);
bool att_gguf_bool(bool *out, const att_gguf_value *value, int64_t index);

/* The string at *at, which moves behind it; begin with value->data. */
att_gguf_text att_gguf_next_text(const unsigned char **at);

/* "a string", "an array of f32" … for messages. */
const char *att_gguf_type_name(att_gguf_type type);

/* ---- writing ---- */

/* A key to write. `data` is `count` elements as C has them (bool one byte each);
 * of a string type it is att_gguf_text[count]. */
typedef struct att_gguf_entry {
  const char *key;
  att_gguf_type type;
  bool is_array;
  int64_t count;
  const void *data;
} att_gguf_entry;

/* A tensor to write: up to three sizes, the adjacent one last, of f32, f16, bf16, q8_0
 * or q4_0. */
typedef struct att_gguf_piece {
  const char *name;
  att_dtype dtype;
  int ndim;
  int64_t shape[3];
} att_gguf_piece;

/* Writes version 3 under a temporary name: the header at once, then the data of
 * each tensor in order, in full; commit puts the file in place. As with
 * att_file_writer, exactly one of commit and abandon ends it. */
typedef struct att_gguf_writer {
  att_file_writer file;
  int64_t left; /* bytes that the current tensor still lacks */
  int64_t next, n;
  const att_gguf_piece *pieces; /* borrowed */
} att_gguf_writer;

/* BAD_ARGUMENT (a name that is empty, too long, twice or no UTF-8), BAD_DTYPE,
 * BAD_SHAPE (rows that are no whole blocks), TOO_LARGE, IO, OUT_OF_MEMORY. */
att_status att_gguf_create(att_gguf_writer *out, const att_runtime *runtime, const char *path,
                           const att_gguf_entry *entries, int64_t n_entries,
                           const att_gguf_piece *pieces, int64_t n_pieces);
/* The next bytes of the tensors. */
void att_gguf_put(att_gguf_writer *writer, const void *bytes, int64_t n);
att_status att_gguf_commit(att_gguf_writer *writer, const att_runtime *runtime);
void att_gguf_abandon(att_gguf_writer *writer, const att_runtime *runtime);

#endif
