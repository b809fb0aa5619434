/* explain_words.c — see the header. */
#include "explain_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "table.h"

enum { INDENT = 4, DIGITS = 4, WORD_ROOM = 24 };

int explain_words_collect(explained_words *w, const cli *c, const explained *e) {
  reading r = e->read;
  w->shown = *e->what;
  const int code = reading_words(&r, &w->of, &w->shown, c);
  if (code != CLI_OK) return code;
  w->word = words_of_tokens(e->what);
  w->n = e->what->n;
  w->query = w->word[e->query];
  w->row = att_view_select(att_view_select(w->of.patterns[e->layer], 0, e->head), 0, w->query);
  return CLI_OK;
}

void explain_words_free(explained_words *w) {
  dump_close(&w->of);
  free(w->word);
}

static float weight_of(const explained_words *w, int64_t word) {
  return ((const float *)w->row.data)[word * w->row.stride[0]];
}

/* Tokens first to end-1 are of a word. */
static att_range tokens_of(const explained_words *w, int64_t word) {
  att_range tokens = {0, 0};
  while (w->word[tokens.first] < word) tokens.first++;
  for (tokens.end = tokens.first; tokens.end < w->n && w->word[tokens.end] == word;) tokens.end++;
  return tokens;
}

static int64_t strongest_left(const explained_words *w, const bool *done) {
  int64_t best = -1;
  for (int64_t j = 0; j < w->of.keys; j++)
    if (!done[j] && weight_of(w, j) > 0 && (best < 0 || weight_of(w, j) > weight_of(w, best)))
      best = j;
  return best;
}

static void put_word(table *rows, const explained_words *w, const term *t, int64_t word) {
  const label name = subject_label(&w->shown, t, w->of.ids[word], WORD_ROOM);
  const att_range tokens = tokens_of(w, word);
  table_label(rows, INK_K, &name);
  if (tokens.end == tokens.first + 1)
    table_put(rows, INK_FAINT, "%" PRId64, tokens.first);
  else
    table_put(rows, INK_FAINT, "%" PRId64 "-%" PRId64, tokens.first, tokens.end - 1);
  table_number(rows, INK_STRONG, (number_format){DIGITS, 0}, weight_of(w, word));
  table_bar(rows, weight_of(w, word));
}

void explain_words_text(const cli *c, const explained *e, const explained_words *w, int64_t most) {
  const term *t = &c->term;
  const label name = subject_label(&w->shown, t, w->of.ids[w->query], WORD_ROOM);
  bool *done = memory_get((size_t)w->of.keys, sizeof *done);
  int64_t lines = 0, left = 0;
  putchar('\n');
  text_say(t, INK_STRONG, 0,
           "Between words (" WORDS_AGGREGATION "): where %s looks in layer %" PRId64
           ", head %" PRId64,
           name.text, e->layer, e->head);
  table *rows = table_new(t, "lrrb");
  static const char *const heads[] = {"word", "tokens", "weight", ""};
  for (int i = 0; i < 4; i++) table_head(rows, heads[i]);
  for (int64_t j; lines < most && (j = strongest_left(w, done)) >= 0; lines++) {
    put_word(rows, w, t, j);
    done[j] = true;
  }
  for (int64_t j = 0; j < w->of.keys; j++) left += !done[j] && weight_of(w, j) > 0;
  table_print(rows, INDENT);
  if (left) text_say(t, INK_FAINT, INDENT, "and %" PRId64 " more with smaller weights", left);
  free(done);
}

void explain_words_json(json *j, const explained_words *w) {
  json_open(j, "words", '{');
  json_string(j, "aggregation", WORDS_AGGREGATION);
  json_int(j, "query", w->query);
  json_open(j, "keys", '[');
  for (int64_t i = 0; i < w->of.keys; i++) {
    const att_range tokens = tokens_of(w, i);
    json_open(j, NULL, '{');
    json_bytes(j, "word", w->of.texts[i], strlen(w->of.texts[i]));
    json_int(j, "first", tokens.first);
    json_int(j, "end", tokens.end);
    json_float(j, "weight", weight_of(w, i));
    json_close(j);
  }
  json_close(j);
  json_close(j);
}
