/* Traces: what flows through a model, compared site by site. */
#ifndef ATT_TESTS_GOLDEN_TRACE_H
#define ATT_TESTS_GOLDEN_TRACE_H

#include "models.h"

#define GOLDEN_HIDDEN 1e-4 /* float32 against float64, of values of order one */

/* What a capture has for a tensor of the trace, and how the two compare. */
typedef struct golden_trace_site {
  att_view got; /* in the golden's order of dimensions */
  double tolerance;
  bool heads_first, pairs; /* [H,T,·], [H,T,S]; else [T,·] */
  bool zeros;              /* exact ones count */
} golden_trace_site;

/* The site of a tensor's name. Fails the run where there is none. */
bool golden_site_get(golden_trace_site *out, golden_case *c, const att_capture *capture,
                     const char *name);

/* A copy, each number times `factor`. */
att_view golden_times(golden_case *c, att_view view, float factor);

/* A tensor of ids; fails the run where it is absent. */
int32_t *golden_trace_ids(golden_case *c, const char *name, int64_t *n);

/* Traces of encoders, and of an encoder with its decoder. */
void golden_trace_encoder(golden_case *c, const golden_timeline *timeline, att_capture *capture,
                          const char *model);
void golden_trace_two(golden_case *c, const golden_timeline *timeline, att_capture *capture,
                      const char *model);

#endif
