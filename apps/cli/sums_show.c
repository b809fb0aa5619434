/* sums_show.c — the layout of sums_show.h.
 *
 * Factors, products and results each share one number format, so that the
 * columns line up from sum to sum. Negative factors stand in parentheses.
 */
#include "sums_show.h"

#include <stdio.h>
#include <string.h>

#include "number.h"

typedef struct layout {
  number_format a, b, products, results;
  int name_width, term_width; /* of one "a×b" */
  int per_line;               /* terms in a line */
  bool middle;                /* room for the products */
} layout;

static float factor_b(const sums *s, int i, int t) {
  return s->b[i * s->b_step + t * s->b_term_step];
}

static number_format factor_format(const float *x, int64_t n, int digits) {
  number_format f = number_fit(x, n, digits);
  bool negative = false;
  for (int64_t i = 0; i < n; i++) negative = negative || x[i] < 0;
  f.width += 2 * negative;
  return f;
}

static layout layout_of(const term *t, const sums *s) {
  layout l = {.products = number_fit(s->products, (int64_t)s->n * s->terms, s->digits),
              .results = number_fit(s->results, s->n, s->digits),
              .a = factor_format(s->a, s->terms, s->digits)};
  l.b = (number_format){0, 1};
  for (int i = 0; i < s->n; i++)
    for (int k = 0; k < s->terms; k++) {
      float x = factor_b(s, i, k);
      l.b = number_both(l.b, factor_format(&x, 1, s->digits));
    }
  for (int i = 0; i < s->n; i++)
    if (s->names[i].columns > l.name_width) l.name_width = s->names[i].columns;
  l.term_width = l.a.width + 1 + l.b.width;
  int fixed = s->indent + l.name_width + 2 + 4 + l.results.width;
  int room = t->width - fixed;
  int first = s->terms * (l.term_width + 3) - 3;
  int second = 4 + s->terms * (l.products.width + 3) - 3;
  l.middle = s->terms > 1 && first + second <= room;
  l.per_line = first <= room ? s->terms : (room + 3) / (l.term_width + 3);
  if (l.per_line < 1) l.per_line = 1;
  return l;
}

/* A factor in its ink: aligned to the right (side -1), to the left (1), or to the
 * left with nothing behind it (0). The parentheses are not coloured. */
static void put_factor(const term *t, number_format f, float x, ink which, int side) {
  char text[NUMBER_BYTES];
  number_write(text, (number_format){f.decimals, 0}, x);
  bool negative = text[0] == '-';
  int gap = f.width - (int)strlen(text) - 2 * negative;
  if (gap < 0) gap = 0;
  const char *color = which == INK_OFF ? "" : t->inks[which];
  printf("%*s%s%s%s%s%s%*s", side < 0 ? gap : 0, "", negative ? "(" : "", color, text,
         which == INK_OFF ? "" : t->inks[INK_OFF], negative ? ")" : "", side > 0 ? gap : 0, "");
}

static void put_products(const layout *l, const sums *s, int i) {
  char text[NUMBER_BYTES];
  for (int k = 0; k < s->terms; k++) {
    number_write(text, l->products, s->products[i * s->terms + k]);
    printf("%s%s", k ? " + " : "", text);
  }
}

static void put_sum(const term *t, const layout *l, const sums *s, int i) {
  printf("%*s", s->indent, "");
  label_print(stdout, &s->names[i], l->name_width + 2, false);
  for (int k = 0; k < s->terms; k++) {
    if (k > 0 && k % l->per_line == 0) printf("\n%*s", s->indent + l->name_width, "");
    if (k > 0) printf(k % l->per_line ? " + " : "+ ");
    put_factor(t, l->a, s->a[k], s->ink_a, -1);
    text_put(t, "×");
    bool breaks = (k + 1) % l->per_line == 0 && k + 1 < s->terms;
    put_factor(t, l->b, factor_b(s, i, k), s->ink_b, !breaks);
  }
  if (l->middle) {
    bool exact = true;
    for (int k = 0; k < s->terms; k++)
      exact = exact && number_is_exact(l->products, s->products[i * s->terms + k]);
    text_put(t, " %s ", exact ? "=" : "≈");
    put_products(l, s, i);
  }
  char text[NUMBER_BYTES];
  number_write(text, l->results, s->results[i]);
  text_put(t, " %s %s\n", number_is_exact(l->results, s->results[i]) ? "=" : "≈", text);
}

void sums_show(const term *t, const sums *s) {
  const layout l = layout_of(t, s);
  for (int i = 0; i < s->n; i++) put_sum(t, &l, s, i);
}
