/* lesson_show_more.c — show_ functions of whole attention, layers and tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lesson_show_step.h"
#include "number.h"
#include "table.h"

enum { INDENT = SHOW_INDENT };

void show_attention(const cli *c, const step *s) {
  const term *t = &c->term;
  printf("  ");
  matrix_name(t, s->to);
  printf(" = attention(");
  for (int i = 0; i < 3; i++) {
    if (i) printf(", ");
    matrix_name(t, s->from[i]);
  }
  text_put(t, ")\n%*sscale 1/√%d%s%s\n", INDENT, "", s->from[0]->columns, s->text[0] ? ", " : "",
           s->text);
  show_block(t, s->to, s->digits);
}

void show_pairs(const cli *c, const step *s) {
  table *rows = table_new(&c->term, "rrrlb");
  table_head(rows, "n");
  table_head(rows, "all n × n");
  table_head(rows, "causal");
  table_head(rows, "n(n+1)/2");
  table_head(rows, "");
  for (int n = 1; n <= s->count; n++) {
    table_put(rows, INK_OFF, "%d", n);
    table_put(rows, INK_OFF, "%d", n * n);
    table_put(rows, INK_STRONG, "%.0f", (double)s->terms[n - 1]);
    table_put(rows, INK_FAINT, "%d × %d / 2", n, n + 1);
    table_bar(rows, s->terms[n - 1] / s->terms[s->count - 1]);
  }
  table_print(rows, INDENT);
}

void show_add(const cli *c, const step *s) {
  show_heading(&c->term, s, "+", "");
  if (!show_equation(&c->term, s, " + ")) show_block(&c->term, s->to, s->digits);
}

/* A function of one matrix: formula, then the result. */
static void show_function(const cli *c, const step *s, const char *before, const char *behind) {
  const term *t = &c->term;
  printf("  ");
  matrix_name(t, s->to);
  text_put(t, " = %s", before);
  matrix_name(t, s->from[0]);
  text_put(t, "%s\n", behind);
  show_block(t, s->to, s->digits);
}

void show_length(const cli *c, const step *s) { show_function(c, s, "‖", "‖ of each row"); }

void show_unit(const cli *c, const step *s) {
  char behind[LESSON_NAME + 32];
  snprintf(behind, sizeof behind, " / ‖%s‖, row by row", s->from[0]->name);
  show_function(c, s, "", behind);
}

void show_rope(const cli *c, const step *s) {
  char behind[120];
  int last = s->count + s->to->rows - 1;
  if (s->to->rows == 1)
    snprintf(behind, sizeof behind, " turned to place %d, base %g", s->count, (double)s->factor);
  else
    snprintf(behind, sizeof behind, " turned to places %d to %d, base %g", s->count, last,
             (double)s->factor);
  show_function(c, s, "", behind);
}

void show_norm(const cli *c, const step *s) {
  show_function(c, s, "", " / root mean square, row by row");
}

void show_gelu(const cli *c, const step *s) { show_function(c, s, "gelu(", ")"); }

void show_random(const cli *c, const step *s) {
  const term *t = &c->term;
  printf("  ");
  matrix_name(t, s->to);
  text_put(t, "   %d × %d, random, spread %.3g\n", s->to->rows, s->to->columns, (double)s->factor);
  show_block(t, s->to, s->digits);
}

/* Weights of the last row, head by head, then the heads side by side. */
void show_heads(const cli *c, const step *s) {
  const term *t = &c->term;
  const matrix *k = s->from[1], *to = s->to;
  const int rows = to->rows, keys = k->rows, shown = keys <= 8 ? keys : 8;
  const number_format fixed = {s->digits, 0};
  const label last = show_label(t, to->row_labels, rows - 1);
  text_put(t, "  %s = %d heads of width %d%s%s\n", to->name, s->count, to->columns / s->count,
           s->text[0] ? ", " : "", s->text);
  text_say(t, INK_FAINT, INDENT, "weights of row %s, head by head:", last.text);
  table *table_of = table_new(t, shown > 6 ? "rrrrrrrrrr" : "rrrrrrrr");
  const int columns = shown > 6 ? 10 : 8;
  table_head(table_of, "head");
  table_head(table_of, s->groups < s->count ? "k, v head" : "");
  for (int j = 2; j < columns; j++) {
    label name = {0};
    if (j - 2 < shown) name = show_label(t, k->row_labels, j - 2);
    table_label(table_of, INK_K, &name);
  }
  for (int h = 0; h < s->count; h++) {
    table_put(table_of, INK_FAINT, "%d", h);
    if (s->groups < s->count)
      table_put(table_of, INK_FAINT, "%d", h / (s->count / s->groups));
    else
      table_head(table_of, "");
    for (int j = 2; j < columns; j++) {
      if (j - 2 < shown)
        table_number(table_of, INK_OFF, fixed, s->terms[(h * rows + rows - 1) * keys + j - 2]);
      else
        table_head(table_of, "");
    }
  }
  table_print(table_of, INDENT);
  show_block(t, to, s->digits);
}

void show_loss(const cli *c, const step *s) {
  const term *t = &c->term;
  const matrix *from = s->from[0];
  const number_format fixed = {s->digits, 0};
  printf("  ");
  matrix_name(t, s->to);
  text_put(t, " = surprise, −log p of the target\n");
  table *rows = table_new(t, "llrrrr");
  const char *const heads[] = {"row", "target", "logit", "log Σe", "p", "−log p"};
  for (int i = 0; i < 6; i++) table_head(rows, heads[i]);
  for (int i = 0; i < s->count; i++) {
    const float *line = s->terms + i * s->groups;
    const label row = show_label(t, from->row_labels, i);
    const label target = show_label(t, from->column_labels, (int)line[0]);
    table_label(rows, INK_OFF, &row);
    table_label(rows, INK_STRONG, &target);
    for (int k = 1; k < 5; k++) table_number(rows, INK_OFF, fixed, line[k]);
  }
  table_print(rows, INDENT);
}

void show_spread(const cli *c, const step *s) {
  const term *t = &c->term;
  bool narrow = t->width < 60;
  const number_format f = {narrow && s->digits > 2 ? 2 : s->digits, 0};
  table *rows = table_new(t, "rrrrlrrr");
  const char *const above[] = {"", "q · k", "", "", "", narrow ? "scaled" : "÷ √d", "", ""};
  const char *const heads[] = {narrow ? "size" : "spread", narrow ? "max" : "largest w",
                               narrow ? "H" : "entropy"};
  for (int i = 0; i < 8; i++) table_head(rows, above[i]);
  for (int i = 0; i < 8; i++) table_head(rows, i == 0 ? "d" : i == 4 ? "" : heads[(i - 1) % 4]);
  for (int i = 0; i < s->count; i++) {
    const float *line = s->terms + i * s->groups;
    table_put(rows, INK_OFF, "%.0f", (double)line[0]);
    for (int k = 1; k < 7; k++) {
      if (k == 4) table_put(rows, INK_FAINT, narrow ? "" : "│");
      table_number(rows, k % 3 == 2 ? INK_STRONG : INK_OFF, f, line[k]);
    }
  }
  table_print(rows, INDENT);
}

void show_cached(const cli *c, const step *s) {
  table *rows = table_new(&c->term, "lrrrrr");
  const char *const above[] = {"", "", "with cache", "", "without", ""};
  const char *const heads[] = {"", "tokens", "pairs", "sum", "pairs", "sum"};
  for (int i = 0; i < 6; i++) table_head(rows, above[i]);
  for (int i = 0; i < 6; i++) table_head(rows, heads[i]);
  for (int i = 0; i < s->count; i++) {
    const float *line = s->terms + i * s->groups;
    if (i == 0)
      table_put(rows, INK_OFF, "prefill");
    else
      table_put(rows, INK_OFF, "step %d", i);
    for (int k = 0; k < 5; k++)
      table_put(rows, k == 2 || k == 4 ? INK_STRONG : INK_OFF, "%.0f", (double)line[k]);
  }
  table_print(rows, INDENT);
}
