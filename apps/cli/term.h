/* term.h — what the output can show: width, characters, colours.
 *
 * Asked once at start. Everything that decides how text looks is in this one
 * value, so a view is a function of its data and a term, and tests can make
 * any term they like.
 */
#ifndef ATTEND_CLI_TERM_H
#define ATTEND_CLI_TERM_H

#include <stdbool.h>

/* What a piece of text is about. Q, K and V have one fixed colour each, here,
 * in exports and on the page; a letter and a mark always stand beside it. */
typedef enum ink {
  INK_Q,
  INK_K,
  INK_V,
  INK_STRONG, /* headings */
  INK_FAINT,  /* hidden keys, escapes, notes */
  INK_OFF,    /* back to normal */
  INK_COUNT
} ink;

typedef enum color_depth {
  COLOR_NONE = 0,
  COLOR_16 = 16,
  COLOR_256 = 256,
  COLOR_24BIT = 1 << 24
} color_depth;

typedef enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_when;
typedef enum color_theme { THEME_AUTO, THEME_DARK, THEME_LIGHT } color_theme;

typedef struct term {
  bool tty;  /* stdout is a terminal */
  bool asks; /* stdin too: questions may wait for Enter */
  bool utf8; /* otherwise ASCII only */
  bool light;
  int width; /* columns; lines stay within */
  color_depth depth;
  const char *inks[INK_COUNT]; /* escape sequences, or "" */
} term;

/* Looks at stdout and the environment (NO_COLOR, TERM, COLORTERM, COLUMNS,
 * COLORFGBG, locale). Piped output has 80 columns unless COLUMNS is set. */
term term_probe(color_when when, color_theme theme);

/* True if the locale's name asks for UTF-8. */
bool term_locale_is_utf8(void);

/* A term for text that leaves the program as plain characters. */
term term_plain(int width, bool utf8);

/* The marks beside the letters Q, K, V: ▸ ◂ ■, or > < # in ASCII. */
const char *term_mark(const term *t, ink which);

/* `unicode` where the output can show it, else `ascii`. */
const char *term_pick(const term *t, const char *unicode, const char *ascii);

#endif
