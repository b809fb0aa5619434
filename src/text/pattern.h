/* What a Split or Replace of tokenizer.json looks for: a plain string or a
 * regular expression. To a regular expression a byte that is no UTF-8 looks
 * like U+FFFD. */
#ifndef ATT_TEXT_PATTERN_H
#define ATT_TEXT_PATTERN_H

#include "text/job.h"
#include "text/regex.h"

typedef struct att_pattern {
  const char *literal; /* NULL: use the regex */
  int64_t literal_bytes;
  const att_regex *regex;
} att_pattern;

/* Fills job->matches with the places in the current text's bytes begin … end-1
 * that match, in order, none overlapping another. */
att_status att_pattern_find(att_job *job, const att_pattern *pattern, int64_t begin, int64_t end);

/* Frees the job's matchers. */
void att_pattern_release(att_job *job);

#endif
