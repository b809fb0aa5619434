/* options.h — one table per command drives parsing, help and errors.
 *
 * A command keeps its settings in variables that start out as the defaults and
 * lists them in a table of `option`; options_parse writes what the user gave.
 * Every complaint names the option as it was typed, and nothing is guessed:
 * a number with anything behind it, out of range, or an option given twice is
 * refused.
 */
#ifndef ATTEND_CLI_OPTIONS_H
#define ATTEND_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "term.h"

typedef enum option_kind {
  OPTION_FLAG,   /* bool: present or not */
  OPTION_TEXT,   /* const char * */
  OPTION_INT,    /* int64_t in min … max */
  OPTION_REAL,   /* double in min … max */
  OPTION_SEED,   /* uint64_t, decimal */
  OPTION_CHOICE, /* int: index among the words of `value`, separated by | */
  OPTION_IDS,    /* id_list: 1,2,3 */
  OPTION_RANGE,  /* int_range: 3 or 3-5, both ends included, in min … max */
  OPTION_TEXTS   /* text_list: may be given several times */
} option_kind;

typedef struct id_list {
  int32_t *ids; /* malloc */
  int64_t n;
} id_list;

typedef struct int_range {
  int64_t first, end; /* end is not included; {0, 0} where nothing was given */
} int_range;

#define TEXTS_MOST 64
typedef struct text_list {
  const char *texts[TEXTS_MOST];
  int64_t n;
} text_list;

typedef struct option {
  const char *name; /* long name without dashes; NULL ends a table */
  char letter;      /* short name or 0 */
  option_kind kind;
  void *target;
  const char *value; /* what help calls the value: "N", "FILE", "raw|scaled" */
  double min, max;   /* of numbers, both ends included */
  const char *help;
} option;

/* Where options come from: the command's own table, then the shared one. */
typedef struct option_set {
  const char *command; /* for messages */
  const option *own, *shared;
} option_set;

/* Reads arguments. Operands are moved to the front of argv and their number is
 * returned; -1 after a usage error, which is already on stderr. "--" ends the
 * options; a value stands behind its option or after "=". */
int options_parse(const option_set *set, int argc, char **argv);

/* Reads "1,2,3"; -1 if it is not that (or there is no memory). */
int options_read_ids(id_list *out, const char *text);

/* True if the user gave that option (valid after options_parse). */
bool option_given(const void *target);

/* The lines of help for a table, wrapped to the term's width. */
void options_help(const term *t, const option *table);

/* The word among `n` that is most like `word`, or NULL if none is near. */
const char *nearest_word(const char *word, const char *const *words, int n);

#endif
