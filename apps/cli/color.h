/* color.h — the fixed colours of Q, K and V, and the scale of a heat map. */
#ifndef ATTEND_CLI_COLOR_H
#define ATTEND_CLI_COLOR_H

#include <stddef.h>
#include <stdint.h>

#include "term.h"

typedef struct rgb {
  uint8_t r, g, b;
} rgb;

/* Fills t->inks for t->depth and t->light. */
void color_inks(term *t);

/* The colour of Q, K or V. */
rgb color_of(ink which, bool light);

/* Writes the escape sequence that sets the foreground (or background) to the
 * nearest colour the terminal has. `out` holds COLOR_ESCAPE bytes. */
#define COLOR_ESCAPE 24
void color_escape(char *out, const term *t, rgb color, bool background);

#endif
