/* look_grid.c — all heads at once as small maps, a row of them for each layer. */
#include <math.h>
#include <stdio.h>

#include "look.h"

enum { MARGIN = 4, LEAST_SIDE = 6, MOST_SIDE = 24 };

/* The small maps of one line of the page. */
typedef struct strip {
  int side;         /* columns of a map */
  int64_t rows;     /* rows, two in a line */
  int64_t per_line; /* maps in a line */
  int64_t join;     /* cells of the map in one of the picture */
} strip;

static strip choose(const look *l, const term *t) {
  int room = t->width - MARGIN;
  int side = room / (int)(l->heads < room ? l->heads : room) - 1;
  if (side < LEAST_SIDE) side = LEAST_SIDE;
  if (side > MOST_SIDE) side = MOST_SIDE;
  const int64_t queries = l->read.n_queries, keys = l->read.n_keys;
  const int64_t longer = queries > keys ? queries : keys;
  if (side > longer) side = (int)longer;
  strip s = {.join = (longer + side - 1) / side};
  s.side = (int)((keys + s.join - 1) / s.join);
  s.rows = (queries + s.join - 1) / s.join;
  int width = s.side + 1 < 4 ? 4 : s.side + 1;
  s.per_line = room / width > 0 ? room / width : 1;
  return s;
}

static int width_of(const strip *s) { return s->side + 1 < 4 ? 4 : s->side + 1; }

/* One line of characters through all maps of the strip. */
static void print_slice(const look *l, const term *t, const strip *s, int64_t layer, int64_t first,
                        int64_t end, int64_t row) {
  printf("%*s", MARGIN, "");
  for (int64_t head = first; head < end; head++) {
    const look_map m = look_map_of(l, layer, head);
    const heat h = look_heat(l, t, &m);
    for (int64_t column = 0; column < s->side; column++) {
      int64_t j = column * s->join;
      if (j + s->join <= m.first_key) {
        putchar(' ');
      } else if (heat_has_halves(&h)) {
        heat_pair(&h, look_bin(&m, row * s->join, j, s->join, s->join),
                  look_bin(&m, (row + 1) * s->join, j, s->join, s->join));
      } else {
        float x = look_bin(&m, row * s->join, j, 2 * s->join, s->join);
        if (x == -INFINITY)
          putchar(' ');
        else
          heat_cell(&h, x, 1);
      }
    }
    if (head + 1 < end) printf("%*s", width_of(s) - s->side, "");
  }
  putchar('\n');
}

static void print_strip(const look *l, const term *t, const strip *s, int64_t layer,
                        int64_t first) {
  int64_t end = first + s->per_line < l->heads ? first + s->per_line : l->heads;
  printf("%s%-*s", t->inks[INK_FAINT], MARGIN, "");
  for (int64_t head = first; head < end; head++) {
    char name[24];
    snprintf(name, sizeof name, "H%lld", (long long)head);
    printf("%-*s", head + 1 < end ? width_of(s) : 0, name);
  }
  printf("%s\n", t->inks[INK_OFF]);
  for (int64_t row = 0; row < s->rows; row += 2) print_slice(l, t, s, layer, first, end, row);
}

void look_grid_text(const cli *c, const look *l) {
  const term *t = &c->term;
  const strip s = choose(l, t);
  int64_t begin = l->options.layer < 0 ? 0 : l->options.layer;
  int64_t end = l->options.layer < 0 ? l->layers : begin + 1;
  char joined[96] = "";
  if (s.join > 1)
    snprintf(joined, sizeof joined, "; a cell is the strongest of %lld × %lld", (long long)s.join,
             (long long)s.join);
  text_say(t, INK_OFF, 0,
           "Every head in its own scale: rows are queries%s, columns keys%s, 0 to %lld%s",
           term_mark(t, INK_Q), term_mark(t, INK_K), (long long)l->read.n_keys - 1, joined);
  if (l->options.words)
    text_say(t, INK_OFF, 0, "Between words: the sum over keys, the mean over queries.");
  if (l->read.first_query > 0)
    text_say(t, INK_OFF, 0, "Queries are the last ones, %lld to %lld.",
             (long long)l->read.first_query, (long long)l->read.n_keys - 1);
  if (l->read.across)
    text_say(t, INK_OFF, 0, "Queries are the answer's tokens, 0 to %lld, keys the prompt's.",
             (long long)l->read.n_queries - 1);
  for (int64_t layer = begin; layer < end; layer++) {
    printf("%slayer %lld%s\n", t->inks[INK_STRONG], (long long)layer, t->inks[INK_OFF]);
    for (int64_t head = 0; head < l->heads; head += s.per_line) print_strip(l, t, &s, layer, head);
  }
}
