/* heat.h — numbers as colours, or as characters where there are none.
 *
 * Weights run from the background (0) to one hue (the limit). Signed scores run
 * from blue over the background (0) to orange. Steps of colour are even to the
 * eye (interpolated in OKLab). Hidden cells are a dot, NaN an X.
 */
#ifndef ATTEND_CLI_HEAT_H
#define ATTEND_CLI_HEAT_H

#include "color.h"
#include "term.h"

typedef enum heat_curve { HEAT_LINEAR, HEAT_SQRT, HEAT_LOG } heat_curve;

typedef struct heat {
  const term *term;
  bool is_signed;
  double limit; /* this much, or more, has the full colour */
  heat_curve curve;
} heat;

/* The smallest number that the logarithmic curve tells from 0, of the limit. */
#define HEAT_FLOOR 1e-4

/* How far along the scale a number is: 0 … 1, or -1 … 1 for signed numbers. */
double heat_level(const heat *h, float x);

/* The colour of a number in 24 bits; of a hidden one the background's. */
rgb heat_color(const heat *h, float x);

/* True where half a character cell can have a colour of its own. */
bool heat_has_halves(const heat *h);

/* One cell of `width` columns. */
void heat_cell(const heat *h, float x, int width);

/* Two cells in one column, one above the other; only with halves. */
void heat_pair(const heat *h, float top, float bottom);

/* The scale as a strip with its limits, a line of its own. */
void heat_legend(const heat *h, int indent);

#endif
