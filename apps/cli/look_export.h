/* look_export.h — maps of heads as files: SVG, PNG and a page that needs no network.
 *
 * All of them have the colours of the terminal's picture, by heat_color.
 */
#ifndef ATTEND_CLI_LOOK_EXPORT_H
#define ATTEND_CLI_LOOK_EXPORT_H

#include <stdio.h>

#include "look.h"

/* True if there is a format for such a name: .svg, .png, .html. */
bool look_can_export(const char *path);

/* Writes the chosen head, layer or all heads. Returns an exit code. */
int look_export(const cli *c, const look *l, const char *path, int64_t zoom);

/* ---- what the formats share ---- */

/* The heads to draw: layers first … end-1, of each heads head … head_end-1. */
typedef struct look_choice {
  int64_t layer, layer_end, head, head_end;
} look_choice;
look_choice look_choice_of(const look *l);

/* "#0b5d3b" */
#define LOOK_COLOR 8
void look_color(char out[LOOK_COLOR], const heat *h, float x);

/* The page of the .html, before and behind its data (look_page.html, page.cmake). */
extern const char look_page_before[], look_page_behind[];

void look_write_svg(FILE *out, const look *l, const term *t);
void look_write_html(FILE *out, const look *l);
/* 0, or -1 with errno. */
int look_write_png(const char *path, const look *l, const term *t, int64_t zoom);

#endif
