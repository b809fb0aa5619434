/* look_head.c — one head as a heat map: rows are queries, columns keys.
 *
 * Small maps have a line for each query, two columns for each key and the
 * strongest keys in words. Larger ones have one column for each key and, where
 * colours allow, two queries in a line; still larger ones join neighbours and
 * show the strongest. A line is never wider than the terminal.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/model.h"
#include "look.h"
#include "memory.h"
#include "number.h"

enum { LABEL_ROOM = 14, MOST_LINES = 48, WORD_ROOM = 10 };

/* Weights that two decimals show as nothing are not named. */
static const float LEAST_NAMED = 0.005f;

/* How a map is drawn. */
typedef struct drawing {
  int label_width, number_width;
  int cell;      /* columns of a cell */
  int64_t first; /* key of the first cell */
  int64_t join;  /* keys, and queries, in a cell */
  int64_t cells; /* cells in a line */
  int64_t rows_per_line;
  int top; /* keys in words behind a line */
  int decimals;
} drawing;

static label query_at(const look *l, const term *t, int64_t position, int most) {
  return subject_label(l->what, t, l->read.query_ids[position], most);
}

static label key_at(const look *l, const term *t, int64_t position, int most) {
  return subject_label(l->what, t, l->read.key_ids[position], most);
}

static int digits_of(int64_t n) {
  int digits = 1;
  for (; n >= 10; n /= 10) digits++;
  return digits;
}

static drawing choose(const look *l, const term *t, const look_map *m, const heat *h) {
  drawing d = {.number_width = digits_of(l->read.first_query + m->rows - 1),
               .first = m->first_key,
               .join = 1,
               .rows_per_line = 1,
               .decimals = (int)l->options.digits};
  for (int64_t i = 0; i < m->rows; i++) {
    const label token = query_at(l, t, i, t->width < 60 ? LABEL_ROOM / 2 : LABEL_ROOM);
    if (token.columns > d.label_width) d.label_width = token.columns;
  }
  const int64_t keys = m->n - m->first_key;
  const int room = t->width - d.label_width - d.number_width - 3;
  d.cell = d.decimals > 0 ? d.decimals + 3 : 2;
  if (keys * d.cell > room && d.decimals == 0) d.cell = 1;
  const int64_t fitting = room / d.cell > 0 ? room / d.cell : 1;
  /* Of numbers the last columns are shown: several in one would be none of them. */
  if (keys > fitting && d.decimals > 0) d.first = m->n - fitting;
  if (keys > fitting && d.decimals == 0) d.join = (keys + fitting - 1) / fitting;
  d.cells = (m->n - d.first + d.join - 1) / d.join;
  bool tall = m->rows / d.join > MOST_LINES || d.join > 1;
  if (d.cell == 1 && tall && heat_has_halves(h)) d.rows_per_line = 2;
  int left = room - (int)d.cells * d.cell - 2;
  if (d.join == 1 && d.rows_per_line == 1 && l->options.stage == STAGE_WEIGHTS)
    for (d.top = (int)l->options.top; d.top > 0 && d.top * (WORD_ROOM + 7) > left;) d.top--;
  return d;
}

/* Positions of keys above the columns: all of them over numbers, else every fifth. */
static void print_ruler(const term *t, const look_map *m, const drawing *d) {
  enum { EVERY = 5 };
  if (d->join > 1) return;
  printf("%s%*s", t->inks[INK_FAINT], d->number_width + d->label_width + 2, "");
  for (int64_t j = d->first; j < m->n; j++) {
    if (d->decimals > 0)
      printf("%*lld", d->cell, (long long)j);
    else if (j % EVERY == 0)
      printf("%-*lld", m->n - j < EVERY ? 0 : EVERY * d->cell, (long long)j);
    else if (j < EVERY && d->first > 0)
      printf("%*s", d->cell, "");
  }
  printf("%s\n", t->inks[INK_OFF]);
}

static void print_label(const look *l, const term *t, const drawing *d, int64_t i) {
  const label token = query_at(l, t, i, d->label_width < 4 ? 4 : d->label_width);
  printf("%s%*lld%s ", t->inks[INK_FAINT], d->number_width, (long long)(l->read.first_query + i),
         t->inks[INK_OFF]);
  label_print(stdout, &token, d->label_width + 1, false);
}

static void print_number(const heat *h, float x, const drawing *d) {
  char number[NUMBER_BYTES];
  if (x == -INFINITY) {
    printf("%*s", d->cell - 1, "");
    heat_cell(h, x, 1);
    return;
  }
  number_write(number, (number_format){d->decimals, d->cell - 1}, x);
  printf(" %.*s", d->cell - 1, number);
}

/* "sat 0.61, The 0.22" */
static void print_strongest(const look *l, const term *t, const look_map *m, const drawing *d,
                            int64_t i) {
  int64_t last = -1;
  float bound = INFINITY;
  printf("  ");
  for (int n = 0; n < d->top; n++) {
    int64_t best = -1;
    for (int64_t j = 0; j < m->n; j++) {
      float x = look_bin(m, i, j, 1, 1);
      bool after = x < bound || (x == bound && j > last);
      if (after && x > 0 && (best < 0 || x > look_bin(m, i, best, 1, 1))) best = j;
    }
    if (best < 0 || look_bin(m, i, best, 1, 1) < LEAST_NAMED) break;
    last = best;
    bound = look_bin(m, i, best, 1, 1);
    const label token = key_at(l, t, best, WORD_ROOM);
    printf("%s%s%s%s %.2f", n ? ", " : "", t->inks[INK_K], token.text, t->inks[INK_OFF],
           (double)bound);
  }
}

static void print_line(const look *l, const term *t, const look_map *m, const heat *h,
                       const drawing *d, int64_t i) {
  print_label(l, t, d, i);
  for (int64_t cell = 0; cell < d->cells; cell++) {
    int64_t j = d->first + cell * d->join;
    float above = look_bin(m, i, j, d->join, d->join);
    if (d->rows_per_line == 2)
      heat_pair(h, above, look_bin(m, i + d->join, j, d->join, d->join));
    else if (d->decimals > 0)
      print_number(h, above, d);
    else
      heat_cell(h, above, d->cell);
  }
  if (d->top > 0) print_strongest(l, t, m, d, i);
  putchar('\n');
}

/* Keys have no lines of their own where queries are other tokens. */
static void print_keys(const look *l, const term *t) {
  char text[1000] = "keys:";
  size_t used = strlen(text);
  for (int64_t j = 0; j < l->read.n_keys; j++) {
    const label token = key_at(l, t, j, LABEL_ROOM);
    int n = snprintf(text + used, sizeof text - used, "%s %lld %s", j ? "," : "", (long long)j,
                     token.text);
    if (n < 0 || used + (size_t)n + 4 > sizeof text) break;
    used += (size_t)n;
  }
  text[used] = 0;
  text_wrap(stdout, t, text, 0, t->width);
}

static void print_head_line(const look *l, const term *t, const look_map *m, int64_t layer,
                            int64_t head) {
  char name[LOOK_NAME];
  look_name(name, l, layer, head);
  text_say(t, INK_STRONG, 0, "%s; rows are queries%s, columns keys%s", name, term_mark(t, INK_Q),
           term_mark(t, INK_K));
  const bool any = m->rows > 1 || l->read.first_query > 0;
  if (!any || l->options.stage != STAGE_WEIGHTS) return;
  static const char *const handling[] = {"left out of the scale", "hidden", "as any other"};
  text_say(t, INK_OFF, 0, "first %s: %.0f %% of the weight, column %s (--first)",
           l->options.words ? "word" : "token", 100.0 * (double)m->first_mass,
           handling[l->options.first]);
}

void look_head_text(const cli *c, const look *l, int64_t layer, int64_t head) {
  const term *t = &c->term;
  const look_map m = look_map_of(l, layer, head);
  const heat h = look_heat(l, t, &m);
  const drawing d = choose(l, t, &m, &h);
  print_head_line(l, t, &m, layer, head);
  if (l->read.across) print_keys(l, t);
  heat_legend(&h, 0);
  putchar('\n');
  print_ruler(t, &m, &d);
  for (int64_t i = 0; i < m.rows; i += d.join * d.rows_per_line) print_line(l, t, &m, &h, &d, i);
  if (d.first > m.first_key)
    text_say(t, INK_OFF, 0,
             "columns %lld to %lld of 0 to %lld: the last ones that fit; attend explain --query "
             "--key works out any one, --json has all",
             (long long)d.first, (long long)m.n - 1, (long long)m.n - 1);
  if (d.join > 1)
    text_put(t, "each cell: the strongest of %lld × %lld\n", (long long)d.join, (long long)d.join);
}
