/* pairs.h — minimal pairs from a file: two texts with one beginning, of which a
 * model should find the first more probable.
 *
 * A line is one pair: fields with tabs between them, PREFIX, A, B and perhaps a
 * CATEGORY; or a JSON object with "a" and "b" (or "sentence_good" and
 * "sentence_bad") and perhaps "prefix" and "category" (or "UID"), other members
 * being skipped. Empty lines and lines that begin with # are skipped.
 */
#ifndef ATTEND_CLI_PAIRS_H
#define ATTEND_CLI_PAIRS_H

#include "cli.h"

enum { PAIR_PREFIX, PAIR_A, PAIR_B, PAIR_CATEGORY, PAIR_FIELDS };

typedef struct pair {
  char *fields[PAIR_FIELDS]; /* zero-terminated; "" where there is none */
  int64_t line;
} pair;

/* Cuts `text` (n bytes and a zero, changed on the way) into pairs, to be freed; their
 * fields point into it. Returns an exit code, after a complaint that names the line. */
int pairs_read(pair **out, int64_t *count, const cli *c, char *text, size_t n);

#endif
