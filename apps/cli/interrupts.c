/* interrupts.c — one flag; the signal's own effect is back as soon as it is set. */
#include "interrupts.h"

#include <signal.h>

static volatile sig_atomic_t number_that_came; /* or 0 */

static void came(int number) {
  number_that_came = number;
  signal(number, SIG_DFL);
}

static void answer(int number, void (*how)(int)) {
  if (signal(number, how) == SIG_IGN) signal(number, SIG_IGN);
}

static void answer_both(void (*how)(int)) {
  answer(SIGINT, how);
  answer(SIGTERM, how);
}

void interrupts_begin(void) { answer_both(came); }

bool interrupts_came(void) { return number_that_came; }

void interrupts_end(void) {
  answer_both(SIG_DFL);
  if (number_that_came) raise(number_that_came);
}
