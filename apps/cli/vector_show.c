/* vector_show.c — see the header. */
#include "vector_show.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "textshow.h"

enum { INDENT = 4, SPARSE_FROM = 17 };

/* Numbers that the format would write as nothing but zeros. */
static bool rounds_to_zero(float x, number_format f) {
  return fabs((double)x) < 0.5 * pow(10, -f.decimals);
}

static int64_t count_zeros(const float *x, int64_t n, number_format f, bool exactly) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) count += exactly ? x[i] == 0 : rounds_to_zero(x[i], f);
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
  const number_format f = style.format;
  int column = indent;
  for (int64_t i = 0; i < n; i++) {
    if (rounds_to_zero(x[i], f)) continue;
    char number[NUMBER_BYTES], cell[NUMBER_BYTES + 32];
    number_write(number, (number_format){number_fit(&x[i], 1, f.decimals).decimals, 0}, x[i]);
    snprintf(cell, sizeof cell, "  [%lld] ", (long long)i);
    make_room(t, &column, indent, (int)(strlen(cell) + strlen(number)));
    printf("%s%s%s%s", cell, t->inks[style.color], number, t->inks[INK_OFF]);
  }
  char rest[64];
  int64_t zeros = count_zeros(x, n, f, false);
  snprintf(rest, sizeof rest, "  (%lld of %lld %s 0)", (long long)zeros, (long long)n,
           count_zeros(x, n, f, true) == zeros ? "are" : "round to");
  make_room(t, &column, indent, (int)strlen(rest));
  printf("%s\n", rest);
}

void vector_show(const term *t, const char *name, const float *x, int64_t n, vector_style style) {
  const char *mark = style.color <= INK_V ? term_mark(t, style.color) : " ";
  int indent = INDENT + text_width(t, name) + 1;
  printf("%*s%s", INDENT, "", t->inks[style.color]);
  text_put(t, "%s%s%s", name, mark, t->inks[INK_OFF]);
  if (n >= SPARSE_FROM && 4 * count_zeros(x, n, style.format, false) > 3 * n) {
    show_sparse(t, style, x, n, indent);
    return;
  }
  bool whole = style.most == 0 || style.most >= n;
  char rest[32] = "";
  if (!whole) snprintf(rest, sizeof rest, "  … (%lld)", (long long)n);
  int column = indent, rest_columns = text_width(t, rest);
  for (int64_t i = 0; i < (whole ? n : style.most); i++) {
    char number[NUMBER_BYTES];
    number_write(number, style.format, x[i]);
    int columns = (int)strlen(number) + 2;
    if (!whole && i > 0 && column + columns + rest_columns > t->width) break;
    make_room(t, &column, indent, columns);
    printf("  %s%s%s", t->inks[style.color], number, t->inks[INK_OFF]);
  }
  text_put(t, "%s", rest);
  putchar('\n');
}
