/* Inside of an att_archive: what the readers (safetensors, its index, npy, npz) fill
 * in and archive.c hands out.
 *
 * A reader gets an archive whose `file` is set, checks every rule of its
 * format, reserves the entries and fills them. archive.c then sorts the names,
 * so that a look-up is a binary search, and copies the few tensors that an
 * older writer left at an address their element type may not have. */
#ifndef ATT_IO_ARCHIVE_H
#define ATT_IO_ARCHIVE_H

#include <stdbool.h>

#include "attend/archive.h"
#include "base/file.h"
#include "base/json.h"
#include "base/runtime.h"

typedef struct att_archive_entry {
  const char *name;     /* zero-terminated; lives as long as the archive */
  const char *dtype;    /* as the file spells it, for messages */
  int ndim;             /* of the file; the view below may not be able to hold it */
  int64_t begin, bytes; /* place in the data part */
  att_view view;        /* data NULL: no att_dtype for it, or too many dimensions */
  void *copy;           /* aligned copy of `bytes` bytes, or NULL */
} att_archive_entry;

struct att_archive {
  const att_runtime *runtime;
  char *name;     /* the path, or what the caller calls the memory */
  bool from_path; /* so that neighbours can be opened */
  att_file file;
  char *names; /* of an npz; one after the other, or NULL */
  int64_t names_bytes;
  att_json *header;              /* owns names and metadata; NULL for npy and npz */
  const att_json_node *metadata; /* object of strings, or NULL */
  int64_t n_entries;
  att_archive_entry *entries;        /* in the order of the file */
  const att_archive_entry **by_name; /* the same, sorted */
  int64_t n_shards, shards_reserved; /* only of an index */
  att_archive **shards;
};

/* Readers. CORRUPT, UNSUPPORTED, TOO_LARGE, OUT_OF_MEMORY; NOT_FOUND for a shard. */
att_status att_npy_read(att_archive *archive);
att_status att_npz_read(att_archive *archive);
att_status att_safetensors_read(att_archive *archive);
att_status att_safetensors_index_read(att_archive *archive);

/* Opens one safetensors file of an index, an index itself being refused. */
att_status att_archive_open_shard(att_archive **out, const att_runtime *runtime, const char *path);

/* Makes room for n zeroed entries. */
att_status att_archive_reserve(att_archive *archive, int64_t n);

/* Gives the memory of the mapped pages back, of shards too. */
void att_archive_forget(const att_archive *archive);

/* The entry of that name, or NULL. */
const att_archive_entry *att_archive_find(const att_archive *archive, const char *name);

/* A name in quotes, fit for a message. Gives `out`. */
#define ATT_LABEL_BYTES 72
const char *att_archive_label(char out[ATT_LABEL_BYTES], const char *name);

/* Checks that a view can be written: present, known dtype stored one element at
 * a time, sane shape. `what` begins the message. BAD_ARGUMENT, BAD_DTYPE. */
att_status att_archive_check_view(const att_view *view, const char *what);

/* Checks a text to be written (`what` begins the message), and that none is there
 * twice among texts[0], texts[step], …  BAD_ARGUMENT, OUT_OF_MEMORY. */
att_status att_archive_check_text(const char *text, const char *what);
att_status att_archive_check_distinct(const att_runtime *runtime, const char *const *texts,
                                      int64_t n, int64_t step, const char *what);

/* Hands out the bytes of all elements row-major, in pieces. */
typedef void att_archive_sink(void *context, const void *bytes, size_t n);
void att_archive_elements(const att_view *view, att_archive_sink *sink, void *context);

/* Writes all elements row-major. IO errors stay in the stream. */
void att_archive_write_elements(FILE *stream, const att_view *view);

#endif
