/* raw_keys.c — see the header. */
#include "raw_keys.h"

#include <unistd.h>

void raw_keys(const struct termios *usual) {
  struct termios mode = *usual;
  mode.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG | IEXTEN);
  mode.c_iflag &= ~(tcflag_t)(ICRNL | IXON);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
}
