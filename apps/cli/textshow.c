/* textshow.c — decoding, widths, escapes.
 *
 * Invariant: what a function here prints takes exactly the columns it says on
 * any terminal, because everything whose width terminals disagree on (joiners,
 * variation selectors, flags, skin tones) is spelled out.
 */
#include "textshow.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COMBINING = 2 }; /* marks on one letter; more would only hide it */

static const struct {
  int32_t first, last;
  int columns;
} widths[] = {
#include "width.inc"
};

static const struct {
  const char *mark, *spelling;
} spellings[] = {
#define ATT_ASCII(mark, spelling) {mark, spelling},
#include "ascii.inc"
#undef ATT_ASCII
};

size_t text_rune(int32_t *rune, const char *text, size_t bytes) {
  const unsigned char *s = (const unsigned char *)text;
  *rune = -1;
  if (s[0] < 0x80) {
    *rune = s[0];
    return 1;
  }
  size_t length = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
  if (s[0] < 0xC2 || s[0] > 0xF4 || length > bytes) return 1;
  int32_t value = s[0] & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; i++) {
    if ((s[i] & 0xC0) != 0x80) return 1;
    value = value << 6 | (s[i] & 0x3F);
  }
  bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 1;
  *rune = value;
  return length;
}

/* The second byte has a narrower range after E0, ED, F0 and F4. */
size_t text_ill_formed(const char *text, size_t bytes) {
  const unsigned char *s = (const unsigned char *)text;
  if (s[0] < 0xC2 || s[0] > 0xF4) return 1;
  size_t length = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
  unsigned low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
  unsigned high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
  size_t n = 1;
  while (n < length && n < bytes && s[n] >= low && s[n] <= high) {
    n++;
    low = 0x80;
    high = 0xBF;
  }
  return n;
}

int text_columns(int32_t rune) {
  if (rune < 0x20) return -1;
  size_t low = 0, high = sizeof widths / sizeof widths[0];
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (rune > widths[middle].last)
      low = middle + 1;
    else
      high = middle;
  }
  bool inside = low < sizeof widths / sizeof widths[0] && rune >= widths[low].first;
  return inside ? widths[low].columns : 1;
}

static const char *spelling_of(const char *character, size_t bytes) {
  for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++)
    if (strlen(spellings[i].mark) == bytes && !memcmp(spellings[i].mark, character, bytes))
      return spellings[i].spelling;
  return NULL;
}

/* How one character of a label looks: at most 16 bytes into `out`. */
typedef struct glyph {
  char text[16];
  int columns;
} glyph;

static glyph glyph_spelled(const char *s, int32_t rune) {
  glyph g;
  const char *format = rune < 0 ? "\\x%02X" : "\\u{%X}";
  unsigned value = rune < 0 ? (unsigned char)s[0] : (unsigned)rune;
  g.columns = snprintf(g.text, sizeof g.text, format, value);
  return g;
}

static glyph glyph_of(const term *t, const char *s, size_t bytes, int32_t rune) {
  glyph g = {.columns = 1};
  if (rune == '\n' || rune == '\t') {
    const char *unicode = rune == '\n' ? "⏎" : "⇥";
    strcpy(g.text, t->utf8 ? unicode : rune == '\n' ? "\\n" : "\\t");
    g.columns = t->utf8 ? 1 : 2;
    return g;
  }
  int columns = rune < 0 ? -1 : text_columns(rune);
  if (columns < 0 || (!t->utf8 && rune > 0x7E)) return glyph_spelled(s, rune);
  memcpy(g.text, s, bytes);
  g.text[bytes] = 0;
  g.columns = columns;
  return g;
}

static void label_add(label *l, const char *text, int columns) {
  size_t used = strlen(l->text);
  snprintf(l->text + used, sizeof l->text - used, "%s", text);
  l->columns += columns;
}

/* A combining mark without a letter before it sits on a dotted circle. */
static void label_add_mark(label *l, const glyph *g, int *marks) {
  if (l->columns == 0) label_add(l, "◌", 1);
  if (*marks < MOST_COMBINING) label_add(l, g->text, 0);
  ++*marks;
}

/* Adds characters while they fit; what comes out when they do not is the most
 * that leaves a column for the sign that something is missing. */
static label label_fill(const term *t, const char *text, size_t bytes, int room, bool token) {
  label l = {0}, fitting = {0};
  int marks = 0;
  for (size_t at = 0; at < bytes;) {
    int32_t rune;
    size_t step = text_rune(&rune, text + at, bytes - at);
    glyph g = glyph_of(t, text + at, step, rune);
    if (token && rune == ' ' && t->utf8) strcpy(g.text, "␣");
    if (l.columns + g.columns > room) {
      label_add(&fitting, t->utf8 ? "…" : "~", 1);
      return fitting;
    }
    if (g.columns == 0)
      label_add_mark(&l, &g, &marks);
    else
      label_add(&l, g.text, g.columns);
    if (g.columns > 0) marks = 0;
    if (l.columns < room) fitting = l;
    at += step;
  }
  return l;
}

label label_of(const term *t, const char *text, size_t bytes, int most) {
  if (most > LABEL_COLUMNS) most = LABEL_COLUMNS;
  if (t->utf8) return label_fill(t, text, bytes, most, true);
  const label inner = label_fill(t, text, bytes, most - 2, true);
  label l = {.columns = inner.columns + 2};
  snprintf(l.text, sizeof l.text, "\"%.*s\"", (int)sizeof l.text - 3, inner.text);
  return l;
}

label label_name(const term *t, const char *text, int most) {
  return label_fill(t, text, strlen(text), most > LABEL_COLUMNS ? LABEL_COLUMNS : most, false);
}

void label_print(FILE *out, const label *l, int width, bool right) {
  int padding = width > l->columns ? width - l->columns : 0;
  fprintf(out, "%*s%s%*s", right ? padding : 0, "", l->text, right ? 0 : padding, "");
}

/* One character of running text: as it is, respelled, or spelled out. */
static int print_rune(FILE *out, const term *t, const char *s, size_t bytes, int32_t rune) {
  if (rune == '\n' || rune == '\t') {
    if (out) fputc(rune, out);
    return rune == '\t';
  }
  const char *spelling = t->utf8 || rune < 0x7F ? NULL : spelling_of(s, bytes);
  if (spelling) {
    if (out) fputs(spelling, out);
    return (int)strlen(spelling);
  }
  int columns = rune < 0 ? -1 : text_columns(rune);
  if (columns < 0 || (!t->utf8 && rune > 0x7E)) {
    glyph g = glyph_spelled(s, rune);
    if (out) fputs(g.text, out);
    return g.columns;
  }
  if (out) fwrite(s, 1, bytes, out);
  return columns;
}

static int print_text(FILE *out, const term *t, const char *text, size_t bytes) {
  int columns = 0;
  for (size_t at = 0; at < bytes;) {
    int32_t rune;
    size_t step = text_rune(&rune, text + at, bytes - at);
    columns += print_rune(out, t, text + at, step, rune);
    at += step;
  }
  return columns;
}

void text_print(FILE *out, const term *t, const char *text, size_t bytes) {
  print_text(out, t, text, bytes);
}

int text_width(const term *t, const char *text) { return print_text(NULL, t, text, strlen(text)); }

void text_line(FILE *out, const term *t, const char *text) {
  for (const char *end; *text; text = end) {
    end = text + strcspn(text, "\n\t");
    print_text(out, t, text, (size_t)(end - text));
    if (*end) fputs(*end++ == '\n' ? "\\n" : "\\t", out);
  }
}

void text_wrap_from(FILE *out, const term *t, const char *text, int indent, int width) {
  int column = indent;
  bool at_start = true;
  while (*(text += strspn(text, " \n\t"))) {
    size_t word = strcspn(text, " \n\t");
    int columns = print_text(NULL, t, text, word);
    if (!at_start && column + 1 + columns > width) {
      fprintf(out, "\n%*s", indent, "");
      column = indent;
      at_start = true;
    }
    if (!at_start) column += fprintf(out, " ");
    column += print_text(out, t, text, word);
    at_start = false;
    text += word;
  }
  fputc('\n', out);
}

void text_wrap(FILE *out, const term *t, const char *text, int indent, int width) {
  fprintf(out, "%*s", indent, "");
  text_wrap_from(out, t, text, indent, width);
}

void text_say(const term *t, ink color, int indent, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  printf("%s", t->inks[color]);
  text_wrap(stdout, t, text, indent, t->width);
  printf("%s", t->inks[INK_OFF]);
}

void text_put(const term *t, const char *format, ...) {
  char small[1024];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(small, sizeof small, format, args);
  va_end(args);
  if (n < 0) return;
  if (t->utf8) {
    fputs(small, stdout);
    return;
  }
  for (const char *s = small; *s;) {
    int32_t rune;
    size_t step = text_rune(&rune, s, strlen(s));
    const char *spelling = rune > 0x7E ? spelling_of(s, step) : NULL;
    if (spelling)
      fputs(spelling, stdout);
    else
      fwrite(s, 1, step, stdout);
    s += step;
  }
}
