/* look_svg.c — maps of heads as vectors with real text.
 *
 * One head has its tokens along both sides and a title for every cell; several are a
 * grid of small maps, a row of them for each layer. Hidden keys are hatched.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "look_export.h"
#include "textshow.h"

enum { MARGIN = 16, LINE = 18, LETTER = 8, CELL = 18, LABEL = 14, SMALL = 96, GAP = 16 };

/* A text of any bytes as XML, which has no control characters and nothing ill-formed. */
static void put_text(FILE *out, const char *text) {
  for (size_t bytes = strlen(text), step; bytes; text += step, bytes -= step) {
    int32_t rune;
    step = text_rune(&rune, text, bytes);
    if (rune < 0) step = text_ill_formed(text, bytes);
    if (rune == '&')
      fputs("&amp;", out);
    else if (rune == '<')
      fputs("&lt;", out);
    else if (rune == '"')
      fputs("&quot;", out);
    else if (rune < 0x20 || rune == 0xFFFE || rune == 0xFFFF)
      fputs("\uFFFD", out);
    else
      fwrite(text, 1, step, out);
  }
}

static label query_at(const look *l, const term *t, int64_t i) {
  return subject_label(l->what, t, l->read.query_ids[i], LABEL);
}

static label key_at(const look *l, const term *t, int64_t j) {
  return subject_label(l->what, t, l->read.key_ids[j], LABEL);
}

static void put_cell(FILE *out, const look *l, const term *t, const look_map *m, const heat *h,
                     int64_t i, int64_t j, double side, double x, double y, bool named) {
  const float value = look_bin(m, i, j, 1, 1);
  char color[LOOK_COLOR] = "";
  if (value != -INFINITY) look_color(color, h, value);
  fprintf(out, "<rect x=\"%.7g\" y=\"%.7g\" width=\"%.7g\" height=\"%.7g\" fill=\"%s\"", x, y, side,
          side, value == -INFINITY ? "url(#hidden)" : color);
  if (!named) {
    fputs("/>\n", out);
    return;
  }
  const label query = query_at(l, t, i), key = key_at(l, t, j);
  fprintf(out, "><title>query %" PRId64 " ", l->read.first_query + i);
  put_text(out, query.text);
  fprintf(out, ", key %" PRId64 " ", j);
  put_text(out, key.text);
  if (value == -INFINITY)
    fputs(": hidden</title></rect>\n", out);
  else
    fprintf(out, ": %.6g</title></rect>\n", (double)value);
}

static void put_map(FILE *out, const look *l, const term *t, const look_map *m, double side,
                    double x, double y, bool named) {
  const heat h = look_heat(l, t, m);
  for (int64_t i = 0; i < m->rows; i++)
    for (int64_t j = m->first_key; j < m->n; j++)
      put_cell(out, l, t, m, &h, i, j, side, x + (double)(j - m->first_key) * side,
               y + (double)i * side, named);
}

/* The scale as a strip with its limits. */
static void put_legend(FILE *out, const heat *h, double x, double y) {
  enum { STEPS = 33, STEP = 6 };
  fprintf(out, "<text x=\"%.7g\" y=\"%.7g\">%.4g</text>\n", x, y + 12,
          h->is_signed ? -h->limit : 0.0);
  x += 7 * LETTER;
  for (int i = 0; i < STEPS; i++) {
    const double part = (double)i / (STEPS - 1);
    char color[LOOK_COLOR];
    look_color(color, h, (float)(h->limit * (h->is_signed ? 2 * part - 1 : part)));
    fprintf(out, "<rect x=\"%.7g\" y=\"%.7g\" width=\"%d\" height=\"14\" fill=\"%s\"/>\n",
            x + i * STEP, y, STEP, color);
  }
  static const char *const curves[] = {"", ", square root", ", logarithm"};
  x += STEPS * STEP + LETTER;
  fprintf(out, "<text x=\"%.7g\" y=\"%.7g\">%.4g%s</text>\n", x, y + 12, h->limit,
          curves[h->curve]);
  fprintf(out, "<rect x=\"%.7g\" y=\"%.7g\" width=\"14\" height=\"14\" fill=\"url(#hidden)\"/>\n",
          x + 18 * LETTER, y);
  fprintf(out, "<text x=\"%.7g\" y=\"%.7g\">hidden</text>\n", x + 20 * LETTER, y + 12);
}

/* Edits are named where there is room for any number of words, and meant on the picture. */
static void begin(FILE *out, const look *l, const term *t, double width, double height,
                  const char *title) {
  const char *edits = l->read.edited.words;
  char back[LOOK_COLOR];
  const heat blank = {.term = t, .limit = 1};
  look_color(back, &blank, 0);
  fprintf(out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
          "viewBox=\"0 0 %.0f %.0f\" role=\"img\" font-family=\"monospace\" font-size=\"13\" "
          "fill=\"%s\">\n<title>",
          width, height, width, height, t->light ? "#1c1f24" : "#d8dee9");
  put_text(out, title);
  if (edits) fputs("; edited: ", out), put_text(out, edits);
  fprintf(out,
          "</title>\n<defs><pattern id=\"hidden\" width=\"4\" height=\"4\" "
          "patternUnits=\"userSpaceOnUse\"><path d=\"M0 4L4 0\" stroke=\"#8a8f98\" "
          "stroke-width=\".6\"/></pattern></defs>\n"
          "<rect width=\"100%%\" height=\"100%%\" fill=\"%s\"/>\n<text x=\"%d\" y=\"%d\" "
          "font-weight=\"bold\">",
          back, MARGIN, MARGIN + 12);
  put_text(out, title);
  if (edits) fputs("; edited", out);
  fprintf(out, "</text>\n<text x=\"%d\" y=\"%d\">rows: queries, columns: keys%s", MARGIN,
          MARGIN + 12 + LINE, l->read.across ? " of the prompt" : "");
}

static void put_head(FILE *out, const look *l, const term *t, int64_t layer, int64_t head,
                     const char *title) {
  const look_map m = look_map_of(l, layer, head);
  const heat h = look_heat(l, t, &m);
  const int64_t keys = m.n - m.first_key;
  const double left = MARGIN + (LABEL + 5) * LETTER, top = MARGIN + 3 * LINE + LABEL * LETTER;
  double width = left + (double)keys * CELL + MARGIN, bottom = top + (double)m.rows * CELL;
  if (width < 560) width = 560;
  begin(out, l, t, width, bottom + 2 * LINE + MARGIN, title);
  if (l->options.stage == STAGE_WEIGHTS)
    fprintf(out, "</text>\n<text x=\"%d\" y=\"%d\">first %s: %.0f %% of the weight%s", MARGIN,
            MARGIN + 12 + 2 * LINE, l->options.words ? "word" : "token", 100 * (double)m.first_mass,
            m.first_key                       ? ", not drawn"
            : l->options.first == FIRST_SCALE ? ", not in the scale"
                                              : "");
  fputs("</text>\n", out);
  for (int64_t i = 0; i < m.rows; i++) {
    const label token = query_at(l, t, i);
    fprintf(out, "<text x=\"%.7g\" y=\"%.7g\" text-anchor=\"end\">%" PRId64 " ", left - 6,
            top + (double)i * CELL + 13, l->read.first_query + i);
    put_text(out, token.text);
    fputs("</text>\n", out);
  }
  for (int64_t j = m.first_key; j < m.n; j++) {
    const label token = key_at(l, t, j);
    const double x = left + (double)(j - m.first_key) * CELL + 13, y = top - 6;
    fprintf(out, "<text x=\"%.7g\" y=\"%.7g\" transform=\"rotate(-60 %.7g %.7g)\">", x, y, x, y);
    put_text(out, token.text);
    fputs("</text>\n", out);
  }
  put_map(out, l, t, &m, CELL, left, top, true);
  put_legend(out, &h, MARGIN, bottom + LINE);
}

static void put_grid(FILE *out, const look *l, const term *t, const look_choice *k,
                     const char *title) {
  const int64_t longer = l->read.n_queries > l->read.n_keys ? l->read.n_queries : l->read.n_keys;
  const double side = longer < SMALL ? (double)(SMALL / longer) : (double)SMALL / (double)longer;
  const double map = side * (double)longer, left = MARGIN + 4 * LETTER, top = MARGIN + 3 * LINE;
  const double width = left + (double)(k->head_end - k->head) * (map + GAP) + MARGIN;
  begin(out, l, t, width < 560 ? 560 : width,
        top + (double)(k->layer_end - k->layer) * (map + LINE + GAP) + MARGIN, title);
  fputs("; each head in its own scale</text>\n", out);
  for (int64_t layer = k->layer; layer < k->layer_end; layer++) {
    const double y = top + (double)(layer - k->layer) * (map + LINE + GAP);
    for (int64_t head = k->head; head < k->head_end; head++) {
      const double x = left + (double)(head - k->head) * (map + GAP);
      const look_map m = look_map_of(l, layer, head);
      fprintf(out, "<text x=\"%.7g\" y=\"%.7g\">L%" PRId64 ".H%" PRId64 "</text>\n", x, y + 12,
              layer, head);
      put_map(out, l, t, &m, side, x, y + LINE, false);
    }
  }
}

static bool is_one(const look_choice *k) {
  return k->layer_end - k->layer == 1 && k->head_end - k->head == 1;
}

void look_title(char out[LOOK_TITLE], const look *l) {
  static const char *const stages[] = {"q · k", "scaled scores", "scores", "weights"};
  const look_choice k = look_choice_of(l);
  const char *model = subject_name(l->what);
  char name[LOOK_NAME];
  look_name(name, l, k.layer, k.head);
  if (is_one(&k))
    snprintf(out, LOOK_TITLE, "%.120s, %s", model, name);
  else
    snprintf(out, LOOK_TITLE, "%.120s: %s of all heads%s", model, stages[l->options.stage],
             l->options.words ? ", of words: sum over keys, mean over queries" : "");
}

void look_write_svg(FILE *out, const look *l, const term *t) {
  const look_choice k = look_choice_of(l);
  char title[LOOK_TITLE];
  look_title(title, l);
  if (is_one(&k))
    put_head(out, l, t, k.layer, k.head, title);
  else
    put_grid(out, l, t, &k, title);
  fputs("</svg>\n", out);
}
