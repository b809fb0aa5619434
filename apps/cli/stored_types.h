/* stored_types.h — how much of a file each element type takes. */
#ifndef ATTEND_CLI_STORED_TYPES_H
#define ATTEND_CLI_STORED_TYPES_H

#include "attend/describe.h"

enum { STORED_TYPES_MOST = 64 };

typedef struct stored_type {
  const char *type; /* borrowed of the description */
  int64_t tensors, numbers, bytes;
} stored_type;

typedef struct stored_types {
  int n;
  stored_type types[STORED_TYPES_MOST]; /* in the order of the file */
  int64_t tensors, numbers, bytes;      /* of all */
} stored_types;

stored_types stored_types_of(const att_description *description);

#endif
