/* explain_text.c — the row as a page to read: six steps, each with its numbers.
 *
 * Nothing is computed here but which keys are worth a line: all up to a limit,
 * else the strongest, in order of position.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/model.h"
#include "explain.h"
#include "memory.h"
#include "number.h"
#include "table.h"
#include "textshow.h"
#include "vector_show.h"

enum {
  INDENT = 4,
  TOKEN_ROOM = 16,
  DIGITS = 4,
  VALUE_DIGITS = 3,
  MOST_TERMS = 32,
  MOST_VALUES = 5,
  NARROW = 60
};
static const float LEAST_WEIGHT = 0.02f; /* of a value that is written out */

static label key_at(const cli *c, const explained *e, int64_t position) {
  return subject_label(e->what, &c->term, e->read.key_ids[position], TOKEN_ROOM);
}

static void title(const cli *c, int number, const char *text) {
  const term *t = &c->term;
  printf("\n%s%d  ", t->inks[INK_STRONG], number);
  text_wrap_from(stdout, t, text, 3, t->width);
  printf("%s", t->inks[INK_OFF]);
}

static void remark(const cli *c, const char *text) {
  text_say(&c->term, INK_FAINT, INDENT, "%s", text);
}

/* Where there was something to choose. */
static void say_why(const cli *c, const explained *e) {
  const bool sees_others = !e->read.across && (e->query > 1 || !e->read.causal);
  if (e->heads == 1 || e->chosen == HEAD_GIVEN) return;
  if (e->chosen == HEAD_SPEAKS) {
    const label next = subject_label(e->what, &c->term, e->next[0].id, TOKEN_ROOM);
    text_say(&c->term, INK_FAINT, INDENT,
             "This head was chosen because, of all heads of the layer, it adds most to the logit "
             "of %s, the likeliest to come next. -L and -H choose another, --query another row.",
             next.text);
  } else if (sees_others) {
    remark(c,
           "This head was chosen because, of all heads of the layer, it gives the largest weight "
           "to a key that is neither the first token nor the query itself. -L and -H choose "
           "another, --query another row.");
  }
}

static void header(const cli *c, const explained *e) {
  const term *t = &c->term;
  const att_model_info *info = att_model_describe(e->what->model);
  const label query = subject_label(e->what, t, e->read.query_ids[e->query], TOKEN_ROOM);
  const label name = label_name(t, info->name, LABEL_COLUMNS);
  char reads[64] = "";
  if (e->kv_heads != e->heads)
    snprintf(reads, sizeof reads, " (reads key/value head %lld)", (long long)e->kv_head);
  text_say(t, INK_OFF, 0, "%s (%s): %lld layers × %lld heads, head width %lld, numbers of class %s",
           name.text, info->family, (long long)e->layers, (long long)e->heads, (long long)e->d,
           att_runtime_class(e->what->runtime));
  text_say(t, INK_STRONG, 0, "layer %lld, head %lld%s, query%s at position %lld: %s",
           (long long)e->layer, (long long)e->head, reads, term_mark(t, INK_Q), (long long)e->query,
           query.text);
  edit_say(t, &e->read.edited);
  if (e->read.across)
    remark(c, "Attention across: the query is a token of the answer, the keys are the prompt's.");
  say_why(c, e);
}

static void show_query(const cli *c, const explained *e) {
  title(c, 1, e->rotated ? "The query q, and turned by its position (RoPE): qr" : "The query");
  const number_format f =
      number_both(number_fit(e->q, e->d, DIGITS), number_fit(e->rot_q, e->d, DIGITS));
  const vector_style style = {INK_Q, f, 0};
  vector_show(&c->term, e->rotated ? "q " : "q", e->q, e->d, style);
  if (e->rotated) vector_show(&c->term, "qr", e->rot_q, e->d, style);
}

static int64_t count_visible(const explained *e) {
  int64_t count = 0;
  for (int64_t j = 0; j < e->n; j++) count += explain_sees(e, j);
  return count;
}

/* Which keys get a line: shown[j]. Returns how many visible ones do not. */
static int64_t choose_keys(const explained *e, int64_t most, bool *shown) {
  int64_t visible = count_visible(e), count = 0;
  for (int64_t j = 0; j < e->n; j++) shown[j] = visible <= most && explain_sees(e, j);
  if (visible <= most) return 0;
  if (!e->read.across) shown[e->query] = true;
  shown[e->key] = true;
  for (int64_t j = 0; j < e->n; j++) count += shown[j];
  for (; count < most; count++) {
    int64_t best = -1;
    for (int64_t j = 0; j < e->n; j++)
      if (explain_sees(e, j) && !shown[j] && (best < 0 || e->weights[j] > e->weights[best]))
        best = j;
    shown[best] = true;
  }
  return visible - count;
}

static void show_hidden(const cli *c, const explained *e) {
  char text[160];
  int64_t first = e->query + 1, count = e->n - first;
  if (!e->read.causal || count == 0) return;
  if (count == 1)
    snprintf(text, sizeof text, "Position %lld is hidden: it comes after the query.",
             (long long)first);
  else
    snprintf(text, sizeof text, "Positions %lld to %lld are hidden: they come after the query.",
             (long long)first, (long long)(e->n - 1));
  remark(c, text);
}

static void left_out(const cli *c, int64_t left) {
  char text[120];
  if (left == 0) return;
  snprintf(text, sizeof text, "%lld further keys with smaller weights have no line (--keys N).",
           (long long)left);
  remark(c, text);
}

static void show_scores(const cli *c, const explained *e, const bool *shown, int64_t left) {
  const term *t = &c->term;
  char text[112], scale[32], words[40];
  if (e->root_of_d) {
    snprintf(scale, sizeof scale, "÷ √%lld", (long long)e->d);
    snprintf(words, sizeof words, "divided by √%lld", (long long)e->d);
  } else {
    snprintf(scale, sizeof scale, "× %.4g", e->scale);
    snprintf(words, sizeof words, "times %.4g", e->scale);
  }
  snprintf(text, sizeof text, "The scores: %s, %s",
           e->rotated ? "turned query qr times turned keys kr" : "query times keys", words);
  title(c, 2, text);
  const number_format raw = number_fit(e->raw, e->n, DIGITS);
  const number_format scaled = number_fit(e->scaled, e->n, DIGITS);
  const number_format scores = number_fit(e->scores, e->n, DIGITS);
  const number_format weight = {DIGITS, 0};
  table *rows = table_new(t, e->biased ? "rllrrrrb" : "rllrrrb");
  const char *const heads[] = {"",    "key",   "",       e->rotated ? "qr · kr" : "q · k",
                               scale, "final", "weight", ""};
  for (int i = 0; i < 8; i++)
    if (i != 5 || e->biased) table_head(rows, heads[i]);
  for (int64_t j = 0; j < e->n; j++) {
    if (!shown[j]) continue;
    const label token = key_at(c, e, j);
    table_put(rows, INK_FAINT, "%lld", (long long)j);
    table_label(rows, INK_K, &token);
    const bool itself = j == e->query && !e->read.across;
    table_put(rows, itself ? INK_Q : INK_K, "%s",
              j == e->key ? term_mark(t, INK_K)
              : itself    ? term_mark(t, INK_Q)
                          : "");
    table_number(rows, INK_OFF, raw, e->raw[j]);
    table_number(rows, INK_OFF, scaled, e->scaled[j]);
    if (e->biased) table_number(rows, INK_OFF, scores, e->scores[j]);
    table_number(rows, INK_STRONG, weight, e->weights[j]);
    table_bar(rows, e->weights[j]);
  }
  table_print(rows, INDENT);
  left_out(c, left);
  show_hidden(c, e);
}

/* Marks the terms to show: all, or those with the largest products. */
static int64_t choose_terms(const explained *e, bool *shown) {
  int64_t nonzero = 0, count = 0;
  for (int64_t i = 0; i < e->d; i++) nonzero += e->products[i] != 0;
  if (e->d <= MOST_TERMS) {
    for (int64_t i = 0; i < e->d; i++) shown[i] = true;
    return e->d;
  }
  for (; count < nonzero && count < MOST_TERMS / 2; count++) {
    int64_t best = -1;
    for (int64_t i = 0; i < e->d; i++)
      if (!shown[i] && (best < 0 || fabsf(e->products[i]) > fabsf(e->products[best]))) best = i;
    shown[best] = true;
  }
  return count;
}

static void show_terms(const cli *c, const explained *e) {
  const term *t = &c->term;
  const label token = key_at(c, e, e->key);
  const float *key = e->rot_k + e->key * e->d;
  char text[LABEL_COLUMNS * 12 + 96];
  snprintf(text, sizeof text, "One key term by term: position %lld, %s%s", (long long)e->key,
           token.text, e->key_chosen ? " (the strongest)" : "");
  title(c, 3, text);
  bool *shown = memory_get((size_t)e->d, sizeof *shown);
  int64_t count = choose_terms(e, shown);
  const number_format q = number_fit(e->rot_q, e->d, DIGITS), k = number_fit(key, e->d, DIGITS);
  const number_format p = number_fit(e->products, e->d, DIGITS);
  const number_format s = number_fit(e->sums, e->d, DIGITS);
  table *rows = table_new(t, "rrlrlrr");
  const char *const heads[] = {"d",
                               e->rotated ? "qr" : "q",
                               "",
                               e->rotated ? "kr" : "k",
                               "",
                               "product",
                               t->width < NARROW ? "sum" : "sum so far"};
  for (int i = 0; i < 7; i++) table_head(rows, heads[i]);
  for (int64_t i = 0; i < e->d; i++) {
    if (!shown[i]) continue;
    table_put(rows, INK_FAINT, "%lld", (long long)i);
    table_number(rows, INK_Q, q, e->rot_q[i]);
    table_put(rows, INK_OFF, t->width < NARROW ? "" : "×");
    table_number(rows, INK_K, k, key[i]);
    table_put(rows, INK_OFF, t->width < NARROW ? "" : "=");
    table_number(rows, INK_OFF, p, e->products[i]);
    table_number(rows, i == e->d - 1 ? INK_STRONG : INK_OFF, s, e->sums[i]);
  }
  table_print(rows, INDENT);
  free(shown);
  if (count < e->d) {
    char left[128], sum[NUMBER_BYTES];
    number_write(sum, (number_format){s.decimals, 0}, e->sums[e->d - 1]);
    snprintf(left, sizeof left, "%lld smaller products have no line; with them the sum is %s.",
             (long long)(e->d - count), sum);
    remark(c, left);
  }
}

static void show_softmax(const cli *c, const explained *e, const bool *shown, int64_t left) {
  char text[2 * NUMBER_BYTES + 80], max[NUMBER_BYTES], sum[NUMBER_BYTES];
  const number_format fs = number_fit(e->scores, e->n, DIGITS);
  number_write(max, (number_format){fs.decimals, 0}, e->max);
  number_write(sum, (number_format){DIGITS, 0}, e->sum);
  title(c, 4,
        e->sunk ? "Softmax: scores become weights; the sink has the rest of 1"
                : "Softmax: scores become weights that sum to 1");
  const number_format shifted = number_fit(e->shifted, e->n, DIGITS), fixed = {DIGITS, 0};
  bool narrow = c->term.width < NARROW;
  table *rows = table_new(&c->term, "rlrrr");
  table_head(rows, "");
  table_head(rows, "key");
  snprintf(text, sizeof text, narrow ? "− max" : "score − %s", max);
  table_head(rows, text);
  table_head(rows, narrow ? "e^" : "e to that");
  snprintf(text, sizeof text, narrow ? "÷ sum" : "÷ %s", sum);
  table_head(rows, text);
  for (int64_t j = 0; j < e->n; j++) {
    if (!shown[j]) continue;
    const label token = key_at(c, e, j);
    table_put(rows, INK_FAINT, "%lld", (long long)j);
    table_label(rows, INK_K, &token);
    table_number(rows, INK_OFF, shifted, e->shifted[j]);
    table_number(rows, INK_OFF, fixed, e->exps[j]);
    table_number(rows, INK_STRONG, fixed, e->weights[j]);
  }
  table_print(rows, INDENT);
  left_out(c, left);
  snprintf(text, sizeof text, "%s is the largest score, %s the sum of all the powers.", max, sum);
  remark(c, text);
}

/* The strongest key that is not done yet and carries weight; -1 if none is left. */
static int64_t next_strongest(const explained *e, const bool *done) {
  int64_t best = -1;
  for (int64_t j = 0; j < e->n; j++)
    if (!done[j] && explain_sees(e, j) && (best < 0 || e->weights[j] > e->weights[best])) best = j;
  return best >= 0 && e->weights[best] >= LEAST_WEIGHT ? best : -1;
}

static void show_value(const cli *c, const explained *e, int64_t j) {
  const term *t = &c->term;
  const float *v = e->v + j * e->dv, *weighted = e->weighted + j * e->dv;
  const int64_t most = e->dv > 16 ? 8 : 0;
  const number_format f =
      number_both(number_fit(v, e->dv, VALUE_DIGITS), number_fit(weighted, e->dv, VALUE_DIGITS));
  const label token = key_at(c, e, j);
  char weight[NUMBER_BYTES + 8], number[NUMBER_BYTES];
  number_write(number, (number_format){VALUE_DIGITS, 0}, e->weights[j]);
  snprintf(weight, sizeof weight, "%s × v", number);
  printf("%*s%s%lld %s%s\n", INDENT, "", t->inks[INK_K], (long long)j, token.text,
         t->inks[INK_OFF]);
  vector_show(t, weight, v, e->dv, (vector_style){INK_V, f, most});
  vector_show(t, "        =", weighted, e->dv, (vector_style){INK_OFF, f, most});
}

/* The strongest values times their weights, and what all of them add up to. */
static void show_values(const cli *c, const explained *e) {
  title(c, 5, "The values, each times its weight");
  bool *done = memory_get((size_t)e->n, sizeof *done);
  int64_t lines = 0;
  for (int64_t j; lines < MOST_VALUES && (j = next_strongest(e, done)) >= 0; lines++) {
    show_value(c, e, j);
    done[j] = true;
  }
  free(done);
  const int64_t left = count_visible(e) - lines;
  if (left > 0) {
    char text[80];
    snprintf(text, sizeof text, "and %lld more with smaller weights", (long long)left);
    remark(c, text);
  }
  title(c, 6, "Their sum: what this head hands on, before W_O mixes it with the other heads");
  vector_show(&c->term, "z", e->z, e->dv,
              (vector_style){INK_STRONG, number_fit(e->z, e->dv, DIGITS), 0});
}

static void show_next(const cli *c, const explained *e) {
  char text[80];
  if (e->n_next == 0) return;
  if (att_model_describe(e->what->model)->kind == ATT_MODEL_ENCODER)
    snprintf(text, sizeof text,
             "All layers done, the model would fill position %lld with:", (long long)e->query);
  else
    snprintf(text, sizeof text,
             "All layers done, the model expects at position %lld:", (long long)e->query + 1);
  title(c, 7, text);
  const number_format f = {DIGITS, 0};
  table *rows = table_new(&c->term, "lrb");
  for (int i = 0; i < e->n_next; i++) {
    const label token = subject_label(e->what, &c->term, e->next[i].id, TOKEN_ROOM);
    table_label(rows, INK_OFF, &token);
    table_number(rows, INK_STRONG, f, e->next[i].probability);
    table_bar(rows, e->next[i].probability);
  }
  table_print(rows, INDENT);
}

void explain_text(const cli *c, const explained *e, int64_t most_keys) {
  bool *shown = memory_get((size_t)e->n, sizeof *shown);
  int64_t left = choose_keys(e, most_keys, shown);
  header(c, e);
  show_query(c, e);
  show_scores(c, e, shown, left);
  show_terms(c, e);
  show_softmax(c, e, shown, left);
  show_values(c, e);
  show_next(c, e);
  free(shown);
}
