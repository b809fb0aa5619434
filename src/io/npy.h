/* The header of an npy file, as text says it. */
#ifndef ATT_IO_NPY_H
#define ATT_IO_NPY_H

#include "io/archive.h"

#define NPY_DESCR_BYTES 32
#define NPY_HEADER_BYTES (64 + 24 * ATT_MAX_NDIM + 128)

typedef struct npy_header {
  char descr[NPY_DESCR_BYTES]; /* "<f4" */
  bool structured;             /* descr is a list of fields; descr above is empty */
  bool fortran_order;
  int ndim; /* may be over ATT_MAX_NDIM; shape holds the first ones */
  int64_t shape[ATT_MAX_NDIM];
  size_t at; /* byte of the text that the parser reached */
} npy_header;

/* A whole file in memory; `name` begins messages. */
typedef struct npy_file {
  const char *name;
  const unsigned char *data;
  size_t bytes;
} npy_file;

/* Fills all of an entry but its name; its view lies in the file. CORRUPT, UNSUPPORTED. */
att_status att_npy_parse(att_archive_entry *entry, const npy_file *file);

/* What stands before a view's elements. BAD_DTYPE. */
att_status att_npy_header_write(char out[NPY_HEADER_BYTES], int *bytes, const att_view *view);

/* Parses the literal; NULL, or what is wrong at header->at. */
const char *att_npy_header_parse(npy_header *header, const char *text, size_t bytes);

#endif
