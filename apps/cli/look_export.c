/* look_export.c — see the header. */
#include "look_export.h"

#include <errno.h>
#include <string.h>

look_choice look_choice_of(const look *l) {
  const look_options *o = &l->options;
  look_choice choice = {0, l->layers, 0, l->heads};
  if (o->layer >= 0) choice.layer = o->layer, choice.layer_end = o->layer + 1;
  if (o->head >= 0) choice.head = o->head, choice.head_end = o->head + 1;
  return choice;
}

/* Browsers and editors give up on more rectangles. */
enum { MOST_CELLS = 2000000 };

int look_check_export(const cli *c, const look *l, const char *path, int64_t zoom) {
  const look_choice k = look_choice_of(l);
  const int64_t layers = k.layer_end - k.layer, heads = k.head_end - k.head;
  const bool png = cli_path_ends_with(path, ".png"), svg = cli_path_ends_with(path, ".svg");
  if (!png && !svg && !cli_path_ends_with(path, ".html"))
    return cli_usage(c, "-o %s: ends in none of .svg, .png, .html (attend trace writes .csv)",
                     path);
  if (zoom && !png) return cli_usage(c, "--zoom is for .png, not for %s", path);
  const int64_t cells = layers * heads * l->read.n_queries * l->read.n_keys;
  if (svg && cells > MOST_CELLS)
    return cli_usage(c,
                     "-o %s: %lld cells are too many for .svg, which takes %d; a .png has them, or "
                     "one head (-L, -H), or attend trace -o FILE.csv",
                     path, (long long)cells, MOST_CELLS);
  int64_t width, height;
  if (png && !look_png_size(&width, &height, l, zoom ? zoom : 1))
    return cli_usage(c,
                     "-o %s: %lld x %lld pixels; a .png has at most %d each way: choose a layer or "
                     "a head (-L, -H) or a smaller --zoom",
                     path, (long long)width, (long long)height, LOOK_PNG_MOST);
  return CLI_OK;
}

void look_color(char out[LOOK_COLOR], const heat *h, float x) {
  const rgb color = heat_color(h, x);
  snprintf(out, LOOK_COLOR, "#%02x%02x%02x", color.r, color.g, color.b);
}

int look_export(const cli *c, const look *l, const char *path, int64_t zoom) {
  term paper = term_plain(80, true); /* files are light unless the user says otherwise */
  paper.light = c->theme != THEME_DARK;
  errno = 0;
  if (cli_path_ends_with(path, ".png"))
    return look_write_png(path, l, &paper, zoom ? zoom : 1) == 0
               ? CLI_OK
               : cli_fail(c, "%s: %s", path, strerror(errno));
  FILE *out = fopen(path, "w");
  if (!out) return cli_fail(c, "%s: %s", path, strerror(errno));
  if (cli_path_ends_with(path, ".svg"))
    look_write_svg(out, l, &paper);
  else
    look_write_html(out, l);
  const bool failed = ferror(out) != 0;
  if (fclose(out) || failed) return cli_fail(c, "%s: %s", path, strerror(errno));
  return CLI_OK;
}
