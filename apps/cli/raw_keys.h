/* raw_keys.h — a terminal that hands over each key as it is pressed. */
#ifndef ATTEND_CLI_RAW_KEYS_H
#define ATTEND_CLI_RAW_KEYS_H

#include <termios.h>

/* Sets standard input's mode: `usual` without echo, lines, signals of keys and translation of
 * returns. Whoever calls it sets `usual` again at every end. */
void raw_keys(const struct termios *usual);

#endif
