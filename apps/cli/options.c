/* options.c — parsing and help from one table. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "textshow.h"

enum { MOST_GIVEN = 64, HELP_COLUMN = 26 };

/* Which targets were written. One command runs in a process, so one list. */
static const void *given[MOST_GIVEN];
static int n_given;

bool option_given(const void *target) {
  for (int i = 0; i < n_given; i++)
    if (given[i] == target) return true;
  return false;
}

static int complain(const option_set *set, const char *typed, const char *what, const char *more) {
  const term t = term_plain(80, term_locale_is_utf8());
  fprintf(stderr, "attend %s: ", set->command);
  text_line(stderr, &t, typed);
  fprintf(stderr, ": %s", what);
  text_line(stderr, &t, more);
  fprintf(stderr, " (attend help %s)\n", set->command);
  return -1;
}

/* Numbers are plain decimals: no hexadecimal, no "nan", nothing behind. */
static bool is_decimal(const char *text, bool fraction) {
  return text[0] && strspn(text, fraction ? "+-.0123456789eE" : "+-0123456789") == strlen(text);
}

static int store_int(const option_set *set, const option *o, const char *typed, const char *text) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (!is_decimal(text, false) || *end) return complain(set, typed, "not a whole number: ", text);
  if (errno || (double)value < o->min || (double)value > o->max) {
    char range[96];
    snprintf(range, sizeof range, "must be from %.0f to %.0f, not ", o->min, o->max);
    return complain(set, typed, range, text);
  }
  *(int64_t *)o->target = value;
  return 0;
}

static int store_real(const option_set *set, const option *o, const char *typed, const char *text) {
  char *end;
  double value = strtod(text, &end);
  if (!is_decimal(text, true) || *end) return complain(set, typed, "not a number: ", text);
  if (!(value >= o->min && value <= o->max)) {
    char range[96];
    snprintf(range, sizeof range, "must be from %g to %g, not ", o->min, o->max);
    return complain(set, typed, range, text);
  }
  *(double *)o->target = value;
  return 0;
}

static int store_seed(const option_set *set, const option *o, const char *typed, const char *text) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (!text[0] || strspn(text, "0123456789") != strlen(text))
    return complain(set, typed, "not a whole number from 0: ", text);
  if (errno) return complain(set, typed, "must be under 2^64, not ", text);
  *(uint64_t *)o->target = value;
  return 0;
}

static int store_choice(const option_set *set, const option *o, const char *typed,
                        const char *text) {
  int index = 0;
  size_t length = strlen(text);
  for (const char *word = o->value; word; index++) {
    size_t word_length = strcspn(word, "|");
    if (length == word_length && !memcmp(word, text, length)) {
      *(int *)o->target = index;
      return 0;
    }
    word = word[word_length] ? word + word_length + 1 : NULL;
  }
  char what[160];
  snprintf(what, sizeof what, "one of %s, not ", o->value);
  return complain(set, typed, what, text);
}

int options_read_ids(id_list *out, const char *text) {
  id_list list = {.ids = malloc((strlen(text) + 1) * sizeof(int32_t))};
  for (const char *at = text; list.ids;) {
    char *end;
    errno = 0;
    long long value = strtoll(at, &end, 10);
    bool good = *at >= '0' && *at <= '9' && !errno && value <= INT32_MAX;
    if (!good || (*end && *end != ',')) break;
    list.ids[list.n++] = (int32_t)value;
    if (!*end) {
      *out = list;
      return 0;
    }
    at = end + 1;
  }
  free(list.ids);
  return -1;
}

static int store_ids(const option_set *set, const option *o, const char *typed, const char *text) {
  if (options_read_ids(o->target, text) == 0) return 0;
  return complain(set, typed, "token ids are numbers separated by commas, not ", text);
}

static int store_range(const option_set *set, const option *o, const char *typed,
                       const char *text) {
  char *end;
  errno = 0;
  long long first = strtoll(text, &end, 10), last = first;
  bool good = text[0] >= '0' && text[0] <= '9';
  if (good && *end == '-') {
    good = end[1] >= '0' && end[1] <= '9';
    last = strtoll(end + 1, &end, 10);
  }
  if (!good || *end || errno) return complain(set, typed, "3 or 3-5, say, not ", text);
  if ((double)first < o->min || (double)last > o->max || first > last) {
    char range[96];
    snprintf(range, sizeof range, "must lie in %.0f to %.0f, not ", o->min, o->max);
    return complain(set, typed, range, text);
  }
  *(int_range *)o->target = (int_range){first, last + 1};
  return 0;
}

static int store_text(const option_set *set, const option *o, const char *typed, const char *text) {
  text_list *list = o->target;
  if (list->n == TEXTS_MOST) return complain(set, typed, "given too often", "");
  list->texts[list->n++] = text;
  return 0;
}

static int store(const option_set *set, const option *o, const char *typed, const char *text) {
  if (o->kind != OPTION_TEXTS && option_given(o->target))
    return complain(set, typed, "given twice", "");
  if (n_given < MOST_GIVEN) given[n_given++] = o->target;
  switch (o->kind) {
  case OPTION_FLAG: *(bool *)o->target = true; return 0;
  case OPTION_TEXT: *(const char **)o->target = text; return 0;
  case OPTION_INT: return store_int(set, o, typed, text);
  case OPTION_REAL: return store_real(set, o, typed, text);
  case OPTION_SEED: return store_seed(set, o, typed, text);
  case OPTION_CHOICE: return store_choice(set, o, typed, text);
  case OPTION_IDS: return store_ids(set, o, typed, text);
  case OPTION_RANGE: return store_range(set, o, typed, text);
  case OPTION_TEXTS: return store_text(set, o, typed, text);
  }
  return -1;
}

static const option *find(const option_set *set, const char *name, size_t length, char letter) {
  const option *const tables[2] = {set->own, set->shared};
  for (int i = 0; i < 2; i++)
    for (const option *o = tables[i]; o && o->name; o++) {
      if (letter && o->letter == letter) return o;
      if (name && strlen(o->name) == length && !memcmp(o->name, name, length)) return o;
    }
  return NULL;
}

static int complain_unknown(const option_set *set, const char *typed) {
  const char *names[2 * MOST_GIVEN];
  int n = 0;
  const option *const tables[2] = {set->own, set->shared};
  for (int i = 0; i < 2; i++)
    for (const option *o = tables[i]; o && o->name && n < 2 * MOST_GIVEN; o++) names[n++] = o->name;
  char word[64];
  const char *start = typed + strspn(typed, "-");
  snprintf(word, sizeof word, "%.*s", (int)strcspn(start, "="), start);
  const char *near = nearest_word(word, names, n);
  if (near) return complain(set, typed, "no such option; did you mean --", near);
  return complain(set, typed, "no such option; text that begins with - goes after --", "");
}

/* argv[at] begins with a dash: takes it and maybe its value. Returns the index
 * of the next argument, or -1. */
static int take_option(const option_set *set, int argc, char **argv, int at) {
  const char *typed = argv[at];
  bool is_long = typed[1] == '-';
  const char *text = NULL;
  const option *o;
  if (is_long) {
    size_t length = strcspn(typed + 2, "=");
    o = find(set, typed + 2, length, 0);
    if (typed[2 + length]) text = typed + 2 + length + 1;
  } else {
    o = find(set, NULL, 0, typed[1]);
    if (o && typed[2]) text = typed + 2 + (typed[2] == '=');
  }
  if (!o || (!is_long && o->kind == OPTION_FLAG && text)) return complain_unknown(set, typed);
  char name[64];
  if (is_long)
    snprintf(name, sizeof name, "--%s", o->name);
  else
    snprintf(name, sizeof name, "-%c", o->letter);
  if (o->kind == OPTION_FLAG) {
    if (text) return complain(set, name, "takes no value, but got ", text);
    return store(set, o, name, "") ? -1 : at + 1;
  }
  if (text) return store(set, o, name, text) ? -1 : at + 1;
  if (at + 1 >= argc) return complain(set, name, "needs a value: ", o->value);
  return store(set, o, name, argv[at + 1]) ? -1 : at + 2;
}

int options_parse(const option_set *set, int argc, char **argv) {
  int n = 0;
  bool options_ended = false;
  for (int at = 0; at < argc;) {
    bool dashed = argv[at][0] == '-' && argv[at][1];
    if (options_ended || !dashed) {
      argv[n++] = argv[at++];
    } else if (!strcmp(argv[at], "--")) {
      options_ended = true;
      at++;
    } else {
      at = take_option(set, argc, argv, at);
      if (at < 0) return -1;
    }
  }
  return n;
}

/* " a|b|c" behind an option's name; a line that is full ends with a bar. Returns the column. */
static int print_value(const term *t, const char *value, int column) {
  enum { INDENT = 8 };
  putchar(' ');
  column++;
  while (*value) {
    const size_t word = strcspn(value, "|"), bytes = word + (value[word] == '|');
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)bytes, value);
    const int columns = text_width(t, text);
    if (column + columns > t->width && column > INDENT) {
      printf("\n%*s", INDENT, "");
      column = INDENT;
    }
    text_print(stdout, t, text, strlen(text));
    column += columns;
    value += bytes;
  }
  return column;
}

void options_help(const term *t, const option *table) {
  for (const option *o = table; o && o->name; o++) {
    int column =
        o->letter ? printf("  -%c, --%s", o->letter, o->name) : printf("      --%s", o->name);
    if (o->kind != OPTION_FLAG) column = print_value(t, o->value, column);
    if (column >= HELP_COLUMN) {
      putchar('\n');
      column = 0;
    }
    printf("%*s", HELP_COLUMN - column, "");
    text_wrap_from(stdout, t, o->help, HELP_COLUMN, t->width);
  }
}
