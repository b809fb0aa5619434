/* screen.c — see the header. The way back is a few bytes that may be written from a
 * signal's handler. */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "raw_keys.h"

enum { ESCAPE_WAIT = 50 }; /* milliseconds in which a sequence's other bytes follow */

static const char enter[] = "\033[?1049h\033[?25l", leave[] = "\033[0m\033[?25h\033[?1049l";
static const int endings[] = {SIGTERM, SIGHUP,  SIGINT,  SIGQUIT, SIGSEGV, SIGBUS, SIGFPE,
                              SIGILL,  SIGABRT, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2};

static struct termios usual_mode;
static volatile sig_atomic_t is_open, resized;

static void put_back(void) {
  if (!is_open) return;
  is_open = 0;
  for (size_t done = 0; done < sizeof leave - 1;) {
    ssize_t n = write(STDOUT_FILENO, leave + done, sizeof leave - 1 - done);
    if (n < 0 && errno != EINTR) break;
    if (n > 0) done += (size_t)n;
  }
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &usual_mode);
}

static void end_by_signal(int number) {
  put_back();
  signal(number, SIG_DFL);
  raise(number);
}

static void note_size(int number) {
  (void)number;
  resized = 1;
}

bool screen_open(void) {
  if (tcgetattr(STDIN_FILENO, &usual_mode) != 0) return false;
  struct sigaction action = {.sa_handler = end_by_signal};
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
    sigaction(endings[i], &action, NULL);
  action.sa_handler = note_size; /* not restarted: waiting for a key ends */
  sigaction(SIGWINCH, &action, NULL);
  atexit(put_back);
  is_open = 1;
  raw_keys(&usual_mode);
  fputs(enter, stdout);
  fflush(stdout);
  return true;
}

void screen_close(void) {
  fflush(stdout);
  put_back();
}

void screen_size(int *columns, int *rows) {
  struct winsize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return;
  if (size.ws_col > 0) *columns = size.ws_col;
  if (size.ws_row > 0) *rows = size.ws_row;
}

void screen_clear(void) { fputs("\033[H\033[J", stdout); }

void screen_show(void) { fflush(stdout); }

static int read_byte(void) {
  unsigned char byte;
  while (!resized) {
    ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got == 1) return byte;
    if (got == 0 || errno != EINTR) return SCREEN_END;
  }
  resized = 0;
  return SCREEN_RESIZED;
}

static bool more_follows(void) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, ESCAPE_WAIT) > 0;
}

/* What follows an escape, "[A" and the like; others are skipped whole. */
static int read_sequence(void) {
  if (!more_follows()) return SCREEN_ESCAPE;
  int first = read_byte(), number = 0;
  if (first != '[' && first != 'O') return SCREEN_OTHER;
  int key = read_byte();
  for (; key >= '0' && key <= ';'; key = read_byte())
    number = key <= '9' ? (10 * number + key - '0') % 1000 : 0;
  if (key == '~') key = number == 1 || number == 7 ? 'H' : number == 4 || number == 8 ? 'F' : 0;
  switch (key) {
  case 'A': return SCREEN_UP;
  case 'B': return SCREEN_DOWN;
  case 'C': return SCREEN_RIGHT;
  case 'D': return SCREEN_LEFT;
  case 'H': return SCREEN_HOME;
  case 'F': return SCREEN_LAST;
  default: return SCREEN_OTHER;
  }
}

int screen_key(void) {
  int key = read_byte();
  return key == 0x1B ? read_sequence() : key;
}
