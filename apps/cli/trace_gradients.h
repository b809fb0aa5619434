/* trace_gradients.h — names that end in _grad: gradients of a loss at what flows. */
#ifndef ATTEND_CLI_TRACE_GRADIENTS_H
#define ATTEND_CLI_TRACE_GRADIENTS_H

#include "attend/gradients.h"
#include "subject.h"

typedef struct trace_gradients {
  att_learner *learner;
  att_gradients *kept; /* NULL: none are asked for */
  bool ran;
  double loss;
} trace_gradients;

/* Is one of the names in a list a gradient's? */
bool trace_names_gradients(const char *select);

/* The list as two, each to be freed. */
void trace_split(char **values, char **gradients, const char *select);

/* The axes of a gradient by its name, those of its site. */
const char *trace_gradient_axes(const char *name);

/* Keeps what `select` names of a model and prompt; at most `budget` bytes. Returns an exit
 * code; close follows in any case. */
int trace_gradients_open(trace_gradients *g, const cli *c, const subject *what, const char *select,
                         int64_t budget);

/* The way back of the text's next-token loss, or of `target` behind its end. */
int trace_gradients_run(trace_gradients *g, const cli *c, const subject *what, const char *target);
void trace_gradients_close(trace_gradients *g);

#endif
