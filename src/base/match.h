/* Matching names: patterns, and what a misspelt one may have meant. */
#ifndef ATT_BASE_MATCH_H
#define ATT_BASE_MATCH_H

#include <stdbool.h>
#include <stddef.h>

/* True if `name` matches the pattern [bytes]: * any run, ? any character. */
bool att_glob(const char *pattern, size_t bytes, const char *name);

/* One pattern of a list that commas separate; *list moves past it. False at its end. */
bool att_next_pattern(const char **list, const char **pattern, size_t *bytes);

/* Insertions, deletions and exchanges that make `a` [bytes] into `b`; texts
 * are cut at 127 characters. */
int att_edit_distance(const char *a, size_t bytes, const char *b);

/* The few names nearest to one that does not exist. One of fewer components, between
 * points, is compared with as many last ones: "hook_z" with that of blocks.0.attn.hook_z,
 * which where patterns will do is offered as *.hook_z. */
typedef struct att_nearest {
  const char *text;
  size_t bytes;
  bool patterns; /* will do */
  int n;
  int distance[3];
  char name[3][64];
} att_nearest;
void att_nearest_offer(att_nearest *nearest, const char *name);

/* "a, b or c" into out. */
void att_nearest_list(char *out, size_t bytes, const att_nearest *nearest);

#endif
