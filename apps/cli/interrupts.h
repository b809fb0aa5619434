/* interrupts.h — SIGINT and SIGTERM put off until what is at work has cleaned up. */
#ifndef ATTEND_CLI_INTERRUPTS_H
#define ATTEND_CLI_INTERRUPTS_H

#include <stdbool.h>

/* Until interrupts_end the first SIGINT or SIGTERM only makes interrupts_came true; a second one
 * ends the program at once. One that whoever started the program has it ignore stays ignored. */
void interrupts_begin(void);
bool interrupts_came(void);

/* Ends the program as the signal would have, if one came. */
void interrupts_end(void);

#endif
