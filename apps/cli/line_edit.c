/* line_edit.c — one line of text under a cursor, redrawn whole at every key. */
#include "line_edit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "memory.h"
#include "raw_keys.h"
#include "textshow.h"

enum { MOST_LINES = 100, MOST_BYTES = 1 << 20 };

/* Control keys by their letters. */
#define CTRL(letter) ((letter) - '@')

struct line_editor {
  const term *t;
  bool edits; /* a person types; otherwise lines are just read */
  char *line; /* zero-terminated */
  size_t bytes, cursor, room;
  char *earlier[MOST_LINES]; /* oldest first */
  int n_earlier, shown;      /* which is in the line; n_earlier: a new one */
  char *draft;               /* the new one, while an earlier one is shown */
};

/* ---- the terminal's mode ---- */

static struct termios usual_mode;
static volatile sig_atomic_t changed;

static void restore_mode(void) {
  if (changed) tcsetattr(0, TCSADRAIN, &usual_mode);
  changed = 0;
}

static void end_by_signal(int number) {
  restore_mode();
  signal(number, SIG_DFL);
  raise(number);
}

static void change_mode(void) {
  changed = 1;
  raw_keys(&usual_mode);
}

line_editor *line_editor_open(const term *t) {
  line_editor *e = memory_get(1, sizeof *e);
  e->t = t;
  e->room = 256;
  e->line = memory_get(e->room, 1);
  e->edits = t->asks && t->tty && tcgetattr(0, &usual_mode) == 0;
  if (e->edits) {
    atexit(restore_mode);
    signal(SIGTERM, end_by_signal);
    signal(SIGHUP, end_by_signal);
  }
  return e;
}

void line_editor_close(line_editor *e) {
  restore_mode();
  for (int i = 0; i < e->n_earlier; i++) free(e->earlier[i]);
  free(e->draft);
  free(e->line);
  free(e);
}

/* ---- the line ---- */

static void set_line(line_editor *e, const char *text) {
  e->bytes = strlen(text);
  if (e->bytes + 1 > e->room) {
    e->room = 2 * (e->bytes + 1);
    e->line = memory_resize(e->line, e->room, 1);
  }
  memcpy(e->line, text, e->bytes + 1);
  e->cursor = e->bytes;
}

static void insert(line_editor *e, const char *text, size_t n) {
  if (e->bytes + n >= MOST_BYTES) return;
  if (e->bytes + n + 1 > e->room) {
    e->room = 2 * (e->bytes + n + 1);
    e->line = memory_resize(e->line, e->room, 1);
  }
  memmove(e->line + e->cursor + n, e->line + e->cursor, e->bytes - e->cursor + 1);
  memcpy(e->line + e->cursor, text, n);
  e->bytes += n;
  e->cursor += n;
}

static void erase(line_editor *e, size_t begin, size_t end) {
  memmove(e->line + begin, e->line + end, e->bytes - end + 1);
  e->bytes -= end - begin;
  e->cursor = begin;
}

/* The character in front of or behind the cursor, with the marks combined with it. */
static size_t left_of(const line_editor *e, size_t at) {
  int32_t rune = 0;
  while (at > 0) {
    do at--;
    while (at > 0 && ((unsigned char)e->line[at] & 0xC0) == 0x80);
    text_rune(&rune, e->line + at, e->bytes - at);
    if (text_columns(rune) != 0) break;
  }
  return at;
}

static size_t right_of(const line_editor *e, size_t at) {
  int32_t rune = 0;
  if (at < e->bytes) at += text_rune(&rune, e->line + at, e->bytes - at);
  while (at < e->bytes) {
    size_t n = text_rune(&rune, e->line + at, e->bytes - at);
    if (text_columns(rune) != 0) break;
    at += n;
  }
  return at;
}

static size_t word_left_of(const line_editor *e, size_t at) {
  while (at > 0 && e->line[at - 1] == ' ') at--;
  while (at > 0 && e->line[at - 1] != ' ') at--;
  return at;
}

static int columns_of(const line_editor *e, size_t begin, size_t end) {
  int columns = 0;
  for (int32_t rune; begin < end;) {
    begin += text_rune(&rune, e->line + begin, end - begin);
    int width = text_columns(rune);
    columns += width > 0 ? width : 0;
  }
  return columns;
}

/* Draws what fits around the cursor. */
static void draw(const line_editor *e, const char *prompt) {
  const int room = e->t->width - (int)strlen(prompt) - 1;
  size_t begin = 0, end;
  while (begin < e->cursor && columns_of(e, begin, e->cursor) > room) begin = right_of(e, begin);
  for (end = e->cursor; end < e->bytes;) {
    size_t next = right_of(e, end);
    if (columns_of(e, begin, next) > room) break;
    end = next;
  }
  printf("\r%s%s%s%.*s\033[K", e->t->inks[INK_STRONG], prompt, e->t->inks[INK_OFF],
         (int)(end - begin), e->line + begin);
  int back = columns_of(e, e->cursor, end);
  if (back > 0) printf("\033[%dD", back);
  fflush(stdout);
}

/* ---- keys ---- */

static int read_byte(void) {
  unsigned char byte;
  for (;;) {
    ssize_t got = read(0, &byte, 1);
    if (got == 1) return byte;
    if (got == 0 || errno != EINTR) return -1;
  }
}

static void show_earlier(line_editor *e, int which) {
  if (which < 0 || which > e->n_earlier) return;
  if (e->shown == e->n_earlier) {
    free(e->draft);
    e->draft = memory_get(e->bytes + 1, 1);
    memcpy(e->draft, e->line, e->bytes);
  }
  e->shown = which;
  set_line(e, which == e->n_earlier ? e->draft : e->earlier[which]);
}

/* What follows an escape: "[A" and the like; others are skipped whole. */
static void take_sequence(line_editor *e) {
  int first = read_byte(), key = first == '[' || first == 'O' ? read_byte() : -1, number = 0;
  while (key >= '0' && key <= ';') {
    number = key <= '9' ? 10 * number + key - '0' : 0;
    key = read_byte();
  }
  if (key == '~') key = number == 1 || number == 7 ? 'H' : number == 3 ? CTRL('D') : 'F';
  switch (key) {
  case 'A': show_earlier(e, e->shown - 1); break;
  case 'B': show_earlier(e, e->shown + 1); break;
  case 'C': e->cursor = right_of(e, e->cursor); break;
  case 'D': e->cursor = left_of(e, e->cursor); break;
  case 'H': e->cursor = 0; break;
  case 'F': e->cursor = e->bytes; break;
  case CTRL('D'): erase(e, e->cursor, right_of(e, e->cursor)); break;
  default: break;
  }
}

/* A character that can be shown; its other bytes are read here. */
static void take_character(line_editor *e, int first) {
  char text[4] = {(char)first};
  size_t n = 1, bytes = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  int32_t rune;
  for (int byte; n < bytes && (byte = read_byte()) >= 0;) text[n++] = (char)byte;
  if (text_rune(&rune, text, n) == n && text_columns(rune) >= 0) insert(e, text, n);
}

typedef enum outcome { EDITING, ENTERED, GIVEN_UP, ENDED } outcome;

static outcome take_key(line_editor *e, int key) {
  switch (key) {
  case -1: return ENDED;
  case CTRL('M'):
  case CTRL('J'): return ENTERED;
  case CTRL('C'): return GIVEN_UP;
  case CTRL('D'):
    if (e->bytes == 0) return ENDED;
    erase(e, e->cursor, right_of(e, e->cursor));
    break;
  case CTRL('A'): e->cursor = 0; break;
  case CTRL('E'): e->cursor = e->bytes; break;
  case CTRL('B'): e->cursor = left_of(e, e->cursor); break;
  case CTRL('F'): e->cursor = right_of(e, e->cursor); break;
  case CTRL('P'): show_earlier(e, e->shown - 1); break;
  case CTRL('N'): show_earlier(e, e->shown + 1); break;
  case CTRL('K'): erase(e, e->cursor, e->bytes); break;
  case CTRL('U'): erase(e, 0, e->cursor); break;
  case CTRL('W'): erase(e, word_left_of(e, e->cursor), e->cursor); break;
  case CTRL('L'): fputs("\033[H\033[2J", stdout); break;
  case CTRL('H'):
  case 0x7F: erase(e, left_of(e, e->cursor), e->cursor); break;
  case CTRL('['): take_sequence(e); break;
  default:
    if (key >= ' ') take_character(e, key);
  }
  return EDITING;
}

static void remember(line_editor *e) {
  if (e->bytes == 0) return;
  if (e->n_earlier > 0 && strcmp(e->earlier[e->n_earlier - 1], e->line) == 0) return;
  if (e->n_earlier == MOST_LINES) {
    free(e->earlier[0]);
    memmove(e->earlier, e->earlier + 1, (MOST_LINES - 1) * sizeof *e->earlier);
    e->n_earlier--;
  }
  char *copy = memory_get(e->bytes + 1, 1);
  memcpy(copy, e->line, e->bytes);
  e->earlier[e->n_earlier++] = copy;
}

static const char *edit(line_editor *e, const char *prompt) {
  outcome what = GIVEN_UP;
  fflush(stdout);
  change_mode();
  while (what != ENTERED && what != ENDED) {
    if (what == GIVEN_UP) {
      set_line(e, "");
      e->shown = e->n_earlier;
    }
    draw(e, prompt);
    what = take_key(e, read_byte());
    if (what == GIVEN_UP) puts("^C");
  }
  restore_mode();
  putchar('\n');
  fflush(stdout);
  if (what == ENDED) return NULL;
  remember(e);
  return e->line;
}

/* A line of a file or a pipe. */
static const char *read_plain(line_editor *e) {
  int c;
  set_line(e, "");
  while ((c = getchar()) != EOF && c != '\n') insert(e, &(char){(char)c}, 1);
  return c == EOF && e->bytes == 0 ? NULL : e->line;
}

const char *line_editor_read(line_editor *e, const char *prompt) {
  return e->edits ? edit(e, prompt) : read_plain(e);
}
