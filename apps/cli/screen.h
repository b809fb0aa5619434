/* screen.h — a terminal's whole screen, and its keys one by one.
 *
 * From screen_open to screen_close the program has a screen of its own and keys come
 * without Enter and without echo. Whatever ends the program, a signal or a crash too,
 * the terminal gets its mode, its cursor and its old screen back.
 */
#ifndef ATTEND_CLI_SCREEN_H
#define ATTEND_CLI_SCREEN_H

#include <stdbool.h>

/* Keys that are no character of their own. */
enum {
  SCREEN_END = -1, /* nobody types any more */
  SCREEN_RESIZED = 256,
  SCREEN_UP,
  SCREEN_DOWN,
  SCREEN_RIGHT,
  SCREEN_LEFT,
  SCREEN_HOME,
  SCREEN_LAST,
  SCREEN_ESCAPE,
  SCREEN_OTHER
};

/* False if stdin is no terminal. */
bool screen_open(void);
void screen_close(void);

/* Sizes now; what is unknown stays. */
void screen_size(int *columns, int *rows);

/* Begins an empty picture; screen_show shows what was printed since. */
void screen_clear(void);
void screen_show(void);

/* The next key, or SCREEN_RESIZED; waits for it. */
int screen_key(void);

#endif
