/* step_view.c — the picture of a step: on the left the row of the head under the cursor, a
 * bar for each key; on the right what comes next, before and after the edits, and what
 * every head gives to the chosen key. On a narrow screen the right part comes below. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bar.h"
#include "distribution.h"
#include "edit_options.h"
#include "step.h"

enum { NARROW = 70, LABEL = 10, PROBABILITY_BAR = 10, MOST_NEXT = 8, HEAD_CELL = 3 };

typedef struct picture {
  const step *s;
  const term *t;
  heat colours;
  distribution before, after;
  int32_t next[MOST_NEXT]; /* the likeliest now, then those that were */
  int n_next;
  int left, bar;    /* columns of the left part, and of a bar in it */
  int digits;       /* of a position */
  int lines;        /* of the body */
  int64_t first;    /* key of the first line */
  bool beside;      /* the right part stands beside the left one */
  int64_t layer_at; /* first layer of the map of heads */
} picture;

static label token_at(const picture *p, int64_t position, int most) {
  return subject_label(p->s->what, p->t, p->s->what->ids[position], most);
}

/* ---- what comes next ---- */

static void add_next(picture *p, int32_t id) {
  for (int i = 0; i < p->n_next; i++)
    if (p->next[i] == id) return;
  if (p->n_next < MOST_NEXT) p->next[p->n_next++] = id;
}

static att_status find_next(picture *p) {
  const step *s = p->s;
  const float *start = s->start + s->query * s->vocab;
  att_status status = distribution_of(&p->before, s->what->runtime, start, s->vocab);
  if (status == ATT_OK)
    status = distribution_of(&p->after, s->what->runtime, step_logits(s), s->vocab);
  for (int64_t i = 0; i < p->after.n_top; i++) add_next(p, p->after.top[i].id);
  for (int64_t i = 0; i < 3 && i < p->before.n_top; i++) add_next(p, p->before.top[i].id);
  return status;
}

/* ---- sizes ---- */

static int digits_of(int64_t n) {
  int digits = 1;
  for (; n >= 10; n /= 10) digits++;
  return digits;
}

/* The chosen key, and as many around it as there are lines. */
static void choose_lines(picture *p, int lines) {
  const int64_t keys = p->s->query + 1;
  p->lines = lines;
  p->first = p->s->key - lines / 2;
  if (p->first > keys - lines) p->first = keys - lines;
  if (p->first < 0) p->first = 0;
}

static void lay_out(picture *p) {
  const step *s = p->s;
  const float *row = step_weights(s);
  float limit = 0;
  for (int64_t j = 0; j <= s->query; j++)
    if (row[j] > limit) limit = row[j];
  p->colours = (heat){.term = p->t, .limit = (double)limit, .curve = s->curve};
  p->beside = p->t->width >= NARROW;
  p->left = p->beside ? p->t->width / 2 - 1 : p->t->width;
  p->digits = digits_of(s->what->n - 1);
  /* mark, position, label, two of colour, bar, "0.123" */
  p->bar = p->left - 2 - p->digits - 1 - LABEL - 1 - 2 - 1 - 6;
  if (p->bar < 1) p->bar = 1;
}

/* ---- the left part ---- */

static void spaces(int n) { printf("%*s", n > 0 ? n : 0, ""); }

static void print_key(const picture *p, int64_t j) {
  const step *s = p->s;
  const term *t = p->t;
  if (j > s->query) {
    spaces(p->left);
    return;
  }
  const float x = step_weights(s)[j];
  const double level = heat_level(&p->colours, x);
  const label token = token_at(p, j, LABEL);
  bool chosen = j == s->key;
  printf("%s%s%s %*" PRId64 " ", t->inks[INK_K], chosen ? term_mark(t, INK_K) : " ",
         t->inks[INK_OFF], p->digits, j);
  printf("%s", chosen ? t->inks[INK_K] : "");
  label_print(stdout, &token, LABEL + 1, false);
  printf("%s", chosen ? t->inks[INK_OFF] : "");
  heat_cell(&p->colours, x, 2);
  putchar(' ');
  bar_put(t, level, p->bar);
  spaces(p->bar - bar_columns(level, p->bar));
  printf(" %5.3f", (double)x);
}

/* ---- the right part ---- */

static void print_next(const picture *p, int i) {
  const int32_t id = p->next[i];
  const label token = subject_label(p->s->what, p->t, id, LABEL);
  const double was = (double)p->before.p[id], now = (double)p->after.p[id];
  label_print(stdout, &token, LABEL + 1, false);
  bar_put(p->t, now, PROBABILITY_BAR);
  spaces(PROBABILITY_BAR - bar_columns(now, PROBABILITY_BAR));
  printf(" %5.3f", now);
  if (p->s->n_edits > 0) printf(" %+6.3f", now - was);
}

/* Weights of one layer's heads on the chosen key; the cursor's in brackets. */
static void print_heads(const picture *p, int64_t layer) {
  const step *s = p->s;
  heat one = p->colours;
  one.limit = 1;
  printf("%*" PRId64 " ", digits_of(s->layers - 1), layer);
  const int room = (p->beside ? p->t->width - p->left - 2 : p->t->width) - 6;
  const int64_t fitting = room / HEAD_CELL;
  const int64_t first = s->head < fitting ? 0 : s->head - fitting + 1;
  for (int64_t h = first; h < s->heads && h < first + fitting; h++) {
    bool here = layer == s->layer && h == s->head;
    putchar(here ? '[' : ' ');
    heat_cell(&one, step_weight(s, layer, h), 1);
    putchar(here ? ']' : ' ');
  }
}

static void print_right(const picture *p, int line) {
  const step *s = p->s;
  if (line == 0) {
    const label token = token_at(p, s->query, LABEL);
    printf("%safter %s%s%s", p->t->inks[INK_STRONG], token.text,
           s->n_edits > 0 ? ", and the change" : "", p->t->inks[INK_OFF]);
  } else if (line <= p->n_next) {
    print_next(p, line - 1);
  } else if (line == p->n_next + 1) {
    if (s->n_edits > 0) printf("KL(before, now) %.4f nats", distribution_kl(&p->before, &p->after));
  } else if (line == p->n_next + 2) {
    text_put(p->t, "%sweight on %s%" PRId64 ": layers by heads%s", p->t->inks[INK_STRONG],
             term_mark(p->t, INK_K), s->key, p->t->inks[INK_OFF]);
  } else if (p->layer_at + line - p->n_next - 3 < s->layers) {
    print_heads(p, p->layer_at + line - p->n_next - 3);
  }
}

/* ---- around them ---- */

static void print_top(const picture *p) {
  static const char *const curves[] = {"linear", "sqrt", "log"};
  const step *s = p->s;
  const term *t = p->t;
  const label query = token_at(p, s->query, LABEL), key = token_at(p, s->key, LABEL);
  printf("%slayer %" PRId64 "/%" PRId64 "  head %" PRId64 "/%" PRId64 "  scale %s%s\n",
         t->inks[INK_STRONG], s->layer, s->layers - 1, s->head, s->heads - 1, curves[s->curve],
         t->inks[INK_OFF]);
  printf("%squery%s%" PRId64 " %s%s  %skey%s%" PRId64 " %s%s  %.4f\n", t->inks[INK_Q],
         term_mark(t, INK_Q), s->query, query.text, t->inks[INK_OFF], t->inks[INK_K],
         term_mark(t, INK_K), s->key, key.text, t->inks[INK_OFF], (double)step_weights(s)[s->key]);
}

/* The text around the query, as much as fits. */
static void print_text(const picture *p) {
  const step *s = p->s;
  int64_t first = s->query;
  int used = token_at(p, first, LABEL).columns + 1;
  while (first > 0) {
    int more = token_at(p, first - 1, LABEL).columns + 1;
    if (used + more > p->t->width) break;
    used += more;
    first--;
  }
  for (int64_t j = first, column = 0; j < s->what->n; j++) {
    const label token = token_at(p, j, LABEL);
    column += token.columns + 1;
    if (column > p->t->width) break;
    const char *color = j == s->query ? p->t->inks[INK_Q] : j == s->key ? p->t->inks[INK_K] : "";
    printf("%s%s%s ", color, token.text, *color ? p->t->inks[INK_OFF] : "");
  }
  putchar('\n');
}

static void print_end(const picture *p) {
  const step *s = p->s;
  const int width = p->t->width;
  char *words = edit_spell(s->edits, s->n_edits);
  const int room = width - 14;
  const int64_t length = words ? (int64_t)strlen(words) : 0;
  printf("%" PRId64 " edit%s%s%s%s\n", s->n_edits, s->n_edits == 1 ? "" : "s", length ? ": " : "",
         length > room ? "..." : "",
         length > room ? words + length - room + 3
         : length      ? words
                       : "");
  free(words);
  const char *help = width >= 80
                         ? "hl query  jk layer  [] head  ,. key  s scale  x ablate  e edge  "
                           "u undo  ? help"
                         : "hl jk [] ,. s x e u r  ? help  q quit";
  printf("%s%.*s%s", p->t->inks[INK_FAINT], width - 1, s->note[0] ? s->note : help,
         p->t->inks[INK_OFF]);
  putchar('\n');
}

static void print_help(const term *t, int rows) {
  static const char *const lines[] = {"h l  left right    query: the row that is shown",
                                      "j k  down up       layer",
                                      "[ ]                head",
                                      ", .                key under the cursor",
                                      "0 $  home end      first and last query",
                                      "s                  scale: linear, sqrt, log",
                                      "x                  ablate the head, or give it back",
                                      "e                  knock out the edge to the key",
                                      "E                  the same after softmax",
                                      "u                  undo the last edit",
                                      "r                  reset: no edits, the same bits",
                                      "?                  this page, and back",
                                      "q  escape          quit"};
  for (int i = 0; i < (int)(sizeof lines / sizeof *lines) && i < rows; i++)
    printf("%.*s\n", t->width, lines[i]);
}

/* Beside each other, or as far as there are lines below. */
static void print_body(const picture *p, int right_lines) {
  const int both = p->beside ? p->lines : p->lines + right_lines;
  for (int line = 0; line < both; line++) {
    if (line < p->lines) print_key(p, p->first + line);
    if (p->beside) printf("  ");
    if (p->beside || line >= p->lines) print_right(p, p->beside ? line : line - p->lines);
    putchar('\n');
  }
}

att_status step_draw(const step *s, const term *t, int rows) {
  enum { AROUND = 7, LEAST = 2, LEAST_COLUMNS = 36 }; /* lines above and below the body */
  picture p = {.s = s, .t = t};
  if (t->width < LEAST_COLUMNS || rows < AROUND + LEAST) {
    printf("%.*s\n", t->width, "too small a screen");
    return ATT_OK;
  }
  if (s->helps) {
    print_help(t, rows);
    return ATT_OK;
  }
  att_status status = find_next(&p);
  if (status == ATT_OK) {
    lay_out(&p);
    int body = rows - AROUND - (s->curve != HEAT_LINEAR) - (s->curve == HEAT_LOG && t->width < 60);
    int right = p.beside ? body : body / 2 < p.n_next + 2 ? body / 2 : p.n_next + 2;
    if (body < LEAST) body = LEAST, right = p.beside ? body : 0;
    choose_lines(&p, p.beside ? body : body - right);
    const int64_t map = body - p.n_next - 3;
    p.layer_at = s->layer < map ? 0 : s->layer - map + 1;
    print_top(&p);
    print_text(&p);
    heat_legend(&p.colours, 0);
    print_body(&p, right);
    print_end(&p);
  }
  distribution_free(&p.before);
  distribution_free(&p.after);
  return status;
}
