/* explain_words.h — the explained head between words, for attend explain --words. */
#ifndef ATTEND_CLI_EXPLAIN_WORDS_H
#define ATTEND_CLI_EXPLAIN_WORDS_H

#include "explain.h"
#include "reading_words.h"

/* The row of the word that the query is of. */
typedef struct explained_words {
  dump of;
  subject shown; /* the prompt's words */
  int64_t *word; /* [n] the word of each token */
  int64_t n;
  int64_t query; /* the query's */
  att_view row;  /* [W] f32: its weights */
} explained_words;

/* Returns an exit code, after a complaint if it is not 0; explain_words_free follows in any
 * case. */
int explain_words_collect(explained_words *w, const cli *c, const explained *e);
void explain_words_free(explained_words *w);

void explain_words_text(const cli *c, const explained *e, const explained_words *w, int64_t most);
void explain_words_json(json *j, const explained_words *w);

#endif
