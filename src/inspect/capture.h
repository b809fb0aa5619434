/* Inside of a capture: what it keeps, and where. */
#ifndef ATT_INSPECT_CAPTURE_H
#define ATT_INSPECT_CAPTURE_H

#include "attend/capture.h"
#include "inspect/capture_pairs.h"

/* A kept tensor. A row of the site is `whole` floats, of which `row` from `skip` on
 * are kept; pairs keep heads × columns for each row. */
typedef struct att_captured {
  char name[ATT_SITE_NAME_BYTES];
  att_site_place place;
  bool of_text;        /* its positions are the encoder's */
  bool parts;          /* not all heads or not all positions */
  int64_t first, rows; /* positions that are kept: room for `rows` from `first` on */
  int64_t columns;     /* keys of pairs, else 0 */
  int64_t head, heads; /* the heads that are kept, from `head` on; 0: it has none */
  int64_t tail;        /* numbers of a head, or of a row without heads */
  int64_t whole, skip, row;
  int64_t floats;
  int ndim; /* sizes of a row as it is kept; 0 for pairs */
  int64_t shape[ATT_SITE_MAX_NDIM];
  float *store;
} att_captured;

struct att_capture {
  att_runtime *runtime;
  att_session *session; /* NULL once that is freed */
  att_config config;    /* names are of a model that may be gone */
  att_observer observer;
  int64_t length, limit;    /* positions read, and room for them */
  int64_t text, text_limit; /* the same of the encoder's text */
  int64_t n_texts;          /* that an encoder without decoder has read together */
  int32_t *text_begin;      /* [text_room] rows where they begin, and the end */
  int64_t text_room;        /* 0 with a decoder */
  int64_t n;
  att_captured *tensors; /* [n], in the order of att_site_each */
  att_sdpa_plan *plans[ATT_PAIR_FAMILIES];
  float *pass; /* pairs of one pass, where only parts of them are kept */
  float *lse;  /* of one pass [rows,H], for sinks */
  int64_t pass_floats, lse_floats;
};

/* What a selection keeps, and the floats of it all. */
typedef struct att_chosen {
  int64_t limit, text_limit, text_room; /* as in a capture */
  int64_t n, floats, pass_floats, lse_floats;
  bool pairs[ATT_PAIR_FAMILIES]; /* some of this family */
  int64_t bytes;                 /* of it all, with the plans that pairs take */
  att_captured *tensors;         /* NULL: only count */
} att_chosen;

/* Fills out->tensors where that is not NULL, and counts. NOT_FOUND, BAD_ARGUMENT,
 * TOO_LARGE. */
att_status att_capture_choose(att_chosen *out, const att_session *session, const char *select,
                              const att_capture_options *options);

/* The position that row 0 of a captured tensor, by its first name, is of. */
int64_t att_capture_first(const att_capture *capture, const char *name);

/* The tap that fills the chosen stores; its payload is the capture. */
att_tap att_capture_tap(att_capture *capture);

#endif
