/* look_export.h — maps of heads as files: SVG, PNG and a page that needs no network.
 *
 * All of them have the colours of the terminal's picture, by heat_color.
 */
#ifndef ATTEND_CLI_LOOK_EXPORT_H
#define ATTEND_CLI_LOOK_EXPORT_H

#include <stdio.h>

#include "look.h"

/* Before the model runs: is there a format for such a name (.svg, .png, .html), and do
 * all cells fit into it? Returns an exit code. zoom is 0 where none is asked for. */
int look_check_export(const cli *c, const look *l, const char *path, int64_t zoom);

/* Writes the chosen head, layer or all heads. Returns an exit code. */
int look_export(const cli *c, const look *l, const char *path, int64_t zoom);

/* ---- what the formats share ---- */

/* The heads to draw: layers first … end-1, of each heads head … head_end-1. */
typedef struct look_choice {
  int64_t layer, layer_end, head, head_end;
} look_choice;
look_choice look_choice_of(const look *l);

/* The model and what of it is drawn. */
enum { LOOK_TITLE = 256 };
void look_title(char out[LOOK_TITLE], const look *l);

/* "#0b5d3b" */
#define LOOK_COLOR 8
void look_color(char out[LOOK_COLOR], const heat *h, float x);

/* The page of the .html, before and behind its data (look_page.html, page.cmake). */
extern const char look_page_before[], look_page_behind[];

void look_write_svg(FILE *out, const look *l, const term *t);
void look_write_html(FILE *out, const look *l);
/* Pixels of the picture; false if they are too many. */
enum { LOOK_PNG_MOST = 16384 };
bool look_png_size(int64_t *width, int64_t *height, const look *l, int64_t zoom);

/* 0, or -1 with errno. */
int look_write_png(const char *path, const look *l, const term *t, int64_t zoom);

#endif
