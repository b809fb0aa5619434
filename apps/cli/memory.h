/* memory.h — memory of the program itself: a program without any can only stop. */
#ifndef ATTEND_CLI_MEMORY_H
#define ATTEND_CLI_MEMORY_H

#include <stddef.h>

/* Zeroed memory for count × bytes, to be freed. Ends the program with a message
 * and exit code 1 if there is none. */
void *memory_get(size_t count, size_t bytes);

/* realloc of count × bytes, the same otherwise; new memory is not zeroed. */
void *memory_resize(void *memory, size_t count, size_t bytes);

/* Bytes that the program holds in memory now, its own included; 0 where the system
 * does not say. */
long long memory_resident(void);

#endif
