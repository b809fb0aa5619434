/* vector_show.c — see the header. */
#include "vector_show.h"

#include <stdio.h>
#include <string.h>

#include "number.h"
#include "textshow.h"

enum { INDENT = 4, DIGITS = 4, SPARSE_FROM = 17 };

static int64_t nonzeros(const float *x, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) count += x[i] != 0;
  return count;
}

/* Starts a new line when `columns` more do not fit; keeps *column. */
static void make_room(const term *t, int *column, int indent, int columns) {
  if (*column + columns > t->width && *column > indent) {
    printf("\n%*s", indent, "");
    *column = indent;
  }
  *column += columns;
}

static void show_sparse(const term *t, ink color, const float *x, int64_t n, int indent) {
  int column = indent;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] == 0) continue;
    char number[NUMBER_BYTES], cell[NUMBER_BYTES + 32];
    number_write(number, (number_format){number_fit(&x[i], 1, DIGITS).decimals, 0}, x[i]);
    snprintf(cell, sizeof cell, "  [%lld] ", (long long)i);
    make_room(t, &column, indent, (int)(strlen(cell) + strlen(number)));
    printf("%s%s%s%s", cell, t->inks[color], number, t->inks[INK_OFF]);
  }
  text_put(t, "  (%lld of %lld are 0)\n", (long long)(n - nonzeros(x, n)), (long long)n);
}

void vector_show(const term *t, ink color, const char *name, const float *x, int64_t n,
                 int64_t most) {
  int indent = INDENT + (int)strlen(name);
  const char *mark = color <= INK_V ? term_mark(t, color) : " ";
  printf("%*s%s", INDENT, "", t->inks[color]);
  text_put(t, "%s%s%s", name, mark, t->inks[INK_OFF]);
  indent += 1;
  if (n >= SPARSE_FROM && 4 * nonzeros(x, n) < n) {
    show_sparse(t, color, x, n, indent);
    return;
  }
  const number_format f = number_fit(x, n, DIGITS);
  int column = indent;
  for (int64_t i = 0; i < n && (most == 0 || i < most); i++) {
    char number[NUMBER_BYTES];
    number_write(number, f, x[i]);
    make_room(t, &column, indent, f.width + 2);
    printf("  %s%s%s", t->inks[color], number, t->inks[INK_OFF]);
  }
  if (most > 0 && n > most) text_put(t, "  … (%lld)", (long long)n);
  putchar('\n');
}
