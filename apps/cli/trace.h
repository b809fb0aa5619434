/* trace.h — captured tensors of a run, on their way to the screen or a file. */
#ifndef ATTEND_CLI_TRACE_H
#define ATTEND_CLI_TRACE_H

#include "reading.h"
#include "trace_gradients.h"

typedef struct trace {
  const subject *what;
  const char *select, *output;
  int_range layers, heads, positions; /* end 0: all */
  int64_t budget;                     /* megabytes */
  int64_t n_new;                      /* tokens to go on with */
  bool plan;                          /* nothing is read */
  const char *target;                 /* of the loss whose gradients are kept, or NULL */
  reading read;
  trace_gradients back;
} trace;

/* A captured tensor with what its axes mean. */
typedef struct trace_tensor {
  const char *name, *axes;
  att_view values;
  bool pairs;                       /* [H,T,S] */
  int64_t layer;                    /* -1: it does not exist once a layer */
  int64_t head;                     /* the first one that is kept; -1: it has no heads */
  int64_t position;                 /* the first one that is kept */
  const int32_t *row_ids, *key_ids; /* tokens of positions, from 0 on */
} trace_tensor;

/* What is kept: values, then gradients. */
int64_t trace_count(const trace *t);
int64_t trace_bytes(const trace *t);
trace_tensor trace_tensor_at(const trace *t, int64_t index);

/* Writes all tensors to t->output, by its ending; "-" is CSV on standard output.
 * Returns an exit code. */
int trace_write(const trace *t, const cli *c);

/* True if there is a format for such a name. */
bool trace_can_write(const char *path);

#endif
