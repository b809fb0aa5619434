/* term.c — asks the environment what stdout can show.
 *
 * The rules people expect: NO_COLOR (any value but the empty one), TERM=dumb
 * or a pipe mean no colour; COLUMNS beats the terminal's own width. Whether
 * UTF-8 is wanted is read from the locale's name, since many small systems
 * name a UTF-8 locale that they have no files for.
 */
#include "term.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "color.h"

enum { PIPED_WIDTH = 80, LEAST_WIDTH = 20, MOST_WIDTH = 1000 };

static const char *environment(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

bool term_locale_is_utf8(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  for (int i = 0; i < 3; i++) {
    const char *value = environment(names[i]);
    if (!value[0]) continue;
    const char *dot = strchr(value, '.');
    return dot && (!strncasecmp(dot, ".utf8", 5) || !strncasecmp(dot, ".utf-8", 6));
  }
  return false;
}

static int clamp_width(long width) {
  if (width < LEAST_WIDTH) return LEAST_WIDTH;
  return width > MOST_WIDTH ? MOST_WIDTH : (int)width;
}

static int probe_width(bool tty) {
  long columns = strtol(environment("COLUMNS"), NULL, 10);
  if (columns > 0) return clamp_width(columns);
  struct winsize size;
  if (tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return clamp_width(size.ws_col);
  return PIPED_WIDTH;
}

/* COLORFGBG is "foreground;background" (or "fg;default;bg"); 7 and 15 are the
 * light backgrounds. Unset, as mostly: dark. */
static bool probe_light(void) {
  const char *last = strrchr(environment("COLORFGBG"), ';');
  return last && (!strcmp(last, ";7") || !strcmp(last, ";15"));
}

static color_depth probe_depth(void) {
  const char *kind = environment("TERM");
  const char *colorterm = environment("COLORTERM");
  if (!strcmp(colorterm, "truecolor") || !strcmp(colorterm, "24bit")) return COLOR_24BIT;
  if (strstr(kind, "direct")) return COLOR_24BIT;
  if (strstr(kind, "256")) return COLOR_256;
  return COLOR_16;
}

term term_probe(color_when when, color_theme theme) {
  const char *kind = environment("TERM");
  term t = {0};
  t.tty = isatty(STDOUT_FILENO);
  t.asks = t.tty && isatty(STDIN_FILENO);
  t.utf8 = term_locale_is_utf8();
  t.width = probe_width(t.tty);
  t.light = theme == THEME_AUTO ? probe_light() : theme == THEME_LIGHT;
  bool wanted = t.tty && kind[0] && strcmp(kind, "dumb") && !environment("NO_COLOR")[0];
  if (when != COLOR_AUTO) wanted = when == COLOR_ALWAYS;
  t.depth = wanted ? probe_depth() : COLOR_NONE;
  color_inks(&t);
  return t;
}

term term_plain(int width, bool utf8) {
  term t = {.utf8 = utf8, .width = clamp_width(width)};
  color_inks(&t);
  return t;
}

const char *term_pick(const term *t, const char *unicode, const char *ascii) {
  return t->utf8 ? unicode : ascii;
}

const char *term_mark(const term *t, ink which) {
  switch (which) {
  case INK_Q: return term_pick(t, "▸", ">");
  case INK_K: return term_pick(t, "◂", "<");
  case INK_V: return term_pick(t, "■", "#");
  default: return "";
  }
}
