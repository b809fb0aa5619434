/* vector_show.c — see the header. */
#include "vector_show.h"

#include <stdio.h>
#include <string.h>

#include "number.h"
#include "textshow.h"

enum { INDENT = 4, SPARSE_FROM = 17 };

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

static void show_sparse(const term *t, vector_style style, const float *x, int64_t n, int indent) {
  int column = indent;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] == 0) continue;
    char number[NUMBER_BYTES], cell[NUMBER_BYTES + 32];
    const number_format own = number_fit(&x[i], 1, style.format.decimals);
    number_write(number, (number_format){own.decimals, 0}, x[i]);
    snprintf(cell, sizeof cell, "  [%lld] ", (long long)i);
    make_room(t, &column, indent, (int)(strlen(cell) + strlen(number)));
    printf("%s%s%s%s", cell, t->inks[style.color], number, t->inks[INK_OFF]);
  }
  char rest[64];
  snprintf(rest, sizeof rest, "  (%lld of %lld are 0)", (long long)(n - nonzeros(x, n)),
           (long long)n);
  make_room(t, &column, indent, (int)strlen(rest));
  printf("%s\n", rest);
}

void vector_show(const term *t, const char *name, const float *x, int64_t n, vector_style style) {
  const char *mark = style.color <= INK_V ? term_mark(t, style.color) : " ";
  int indent = INDENT + text_width(t, name) + 1;
  printf("%*s%s", INDENT, "", t->inks[style.color]);
  text_put(t, "%s%s%s", name, mark, t->inks[INK_OFF]);
  if (n >= SPARSE_FROM && 4 * nonzeros(x, n) < n) {
    show_sparse(t, style, x, n, indent);
    return;
  }
  int column = indent;
  int64_t shown = style.most > 0 && style.most < n ? style.most : n;
  for (int64_t i = 0; i < shown; i++) {
    char number[NUMBER_BYTES];
    number_write(number, style.format, x[i]);
    make_room(t, &column, indent, (int)strlen(number) + 2);
    printf("  %s%s%s", t->inks[style.color], number, t->inks[INK_OFF]);
  }
  if (n > shown) text_put(t, "  … (%lld)", (long long)n);
  putchar('\n');
}
