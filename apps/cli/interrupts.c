/* interrupts.c — one flag; a second signal has its own effect. */
#include "interrupts.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t number_that_came; /* or 0 */

static void came(int number) {
  signal(number, SIG_DFL);
  if (number_that_came) raise(number);
  number_that_came = number;
}

/* A file that is being written at that moment is written on. */
static void answer(int number, void (*how)(int)) {
  const struct sigaction action = {.sa_handler = how, .sa_flags = SA_RESTART};
  struct sigaction before;
  if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
    sigaction(number, &action, NULL);
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
