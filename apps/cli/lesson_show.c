/* lesson_show.c — a show_ function for each kind of step (more of them in
 * lesson_show_more.c).
 *
 * Nothing is computed here: every number was left in the step by the library.
 * Each step begins with its formula, then the arithmetic of one row, then the
 * whole result where that says more.
 */
#include "lesson_show_step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "sums_show.h"
#include "table.h"
#include "textshow.h"

enum { INDENT = SHOW_INDENT, PROSE = 76, LABEL_ROOM = 14, NARROW = 60 };

static int prose_width(const term *t) { return t->width < PROSE ? t->width : PROSE; }

static label text_label(const term *t, const char *text) { return label_name(t, text, LABEL_ROOM); }

label show_label(const term *t, const char *const *labels, int i) {
  char number[16];
  snprintf(number, sizeof number, "%d", i);
  return text_label(t, labels ? labels[i] : number);
}

void show_heading(const term *t, const step *s, const char *between, const char *behind) {
  printf("  ");
  matrix_name(t, s->to);
  printf(" = ");
  matrix_name(t, s->from[0]);
  if (s->from[1]) {
    text_put(t, " %s ", between);
    matrix_name(t, s->from[1]);
  }
  text_put(t, "%s\n", behind);
}

void show_block(const term *t, const matrix *m, int digits) {
  const matrix_block b = matrix_layout(t, m, digits, t->width - INDENT);
  for (int i = 0; i < b.lines; i++) {
    printf("%*s", INDENT, "");
    matrix_line(&b, i, false);
    putchar('\n');
  }
  if (b.shown_rows < m->rows || b.shown_columns < m->columns)
    text_put(t, "%*s(%d of %d rows, %d of %d columns)\n", INDENT, "", b.shown_rows, m->rows,
             b.shown_columns, m->columns);
}

bool show_equation(const term *t, const step *s, const char *sign) {
  const matrix *const m[3] = {s->from[0], s->from[1], s->to};
  matrix_block b[3];
  int width = INDENT + 6, rows = 0;
  bool head = false;
  for (int i = 0; i < 3; i++) {
    b[i] = matrix_layout(t, m[i], s->digits, t->width);
    if (b[i].shown_columns < m[i]->columns || b[i].shown_rows < m[i]->rows) return false;
    width += b[i].width;
    head = head || b[i].head;
    if (b[i].shown_rows > rows) rows = b[i].shown_rows;
  }
  if (width > t->width) return false;
  for (int i = 0; i < 3; i++) b[i].head = head;
  for (int line = 0; line < rows + head; line++) {
    bool middle = line == head + (rows - 1) / 2;
    int last = 2;
    while (last > 0 && matrix_line_is_empty(&b[last], line)) last--;
    printf("%*s", INDENT, "");
    for (int i = 0; i <= last; i++) {
      if (i > 0) text_put(t, "%s", !middle ? "   " : i == 1 ? sign : " = ");
      matrix_line(&b[i], line, i < last);
    }
    putchar('\n');
  }
  return true;
}

static void paragraphs(const term *t, const char *text, int indent) {
  for (bool first = true; *text; first = false) {
    size_t length = strcspn(text, "\n");
    char *copy = malloc(length + 1);
    if (!copy) return;
    memcpy(copy, text, length);
    copy[length] = 0;
    if (!first) putchar('\n');
    text_wrap(stdout, t, copy, indent, prose_width(t));
    free(copy);
    text += length + (text[length] != 0);
  }
}

void show_say(const cli *c, const step *s) { paragraphs(&c->term, s->text, 0); }

void show_ask(const cli *c, const step *s) {
  const term *t = &c->term;
  printf("%s", t->inks[INK_STRONG]);
  text_put(t, "  ? ");
  text_wrap_from(stdout, t, s->text, 4, prose_width(t));
  printf("%s", t->inks[INK_OFF]);
  if (!t->asks || feof(stdin)) return;
  printf("%s    (Enter shows the answer) %s", t->inks[INK_FAINT], t->inks[INK_OFF]);
  fflush(stdout);
  for (int c1 = getchar(); c1 != '\n' && c1 != EOF;) c1 = getchar();
}

void show_matrix(const cli *c, const step *s) {
  printf("  ");
  matrix_name(&c->term, s->to);
  printf("\n");
  show_block(&c->term, s->to, s->digits);
}

void show_show(const cli *c, const step *s) { show_matrix(c, s); }

void show_row(const cli *c, const step *s) {
  const label name = show_label(&c->term, s->from[0]->row_labels, s->work);
  char behind[sizeof name.text + 16];
  snprintf(behind, sizeof behind, ", row %s", name.text);
  show_heading(&c->term, s, "", behind);
  show_block(&c->term, s->to, s->digits);
}

static void work_title(const term *t, const step *s) {
  if (s->to->rows == 1) return;
  const label name = show_label(t, s->from[0]->row_labels, s->work);
  printf("%*srow %s:\n", INDENT, "", name.text);
}

/* The worked row of a product: one line for each column of the result. */
static void work_out(const cli *c, const step *s, bool transposed) {
  const term *t = &c->term;
  const matrix *a = s->from[0], *b = s->from[1], *m = s->to;
  label *names = malloc((size_t)m->columns * sizeof *names);
  if (!names || s->work < 0) {
    free(names);
    return;
  }
  for (int i = 0; i < m->columns; i++) {
    char place[LESSON_NAME + 16];
    snprintf(place, sizeof place, "%s[%d]", m->name, i);
    names[i] = text_label(t, m->column_labels ? m->column_labels[i] : place);
  }
  work_title(t, s);
  const sums lines = {.n = m->columns,
                      .terms = a->columns,
                      .a = a->data + s->work * a->columns,
                      .b = b->data,
                      .b_step = transposed ? b->columns : 1,
                      .b_term_step = transposed ? 1 : b->columns,
                      .products = s->terms,
                      .results = m->data + s->work * m->columns,
                      .ink_a = matrix_ink(a),
                      .ink_b = matrix_ink(b),
                      .names = names,
                      .digits = s->digits,
                      .indent = INDENT};
  sums_show(t, &lines);
  free(names);
}

void show_matmul(const cli *c, const step *s) {
  show_heading(&c->term, s, "·", "");
  if (!show_equation(&c->term, s, " · ")) show_block(&c->term, s->to, s->digits);
  work_out(c, s, false);
}

void show_dot(const cli *c, const step *s) {
  show_heading(&c->term, s, "·", s->to->rows > 1 ? "   (each row with each row)" : "");
  if (s->to->rows > 1) show_block(&c->term, s->to, s->digits);
  work_out(c, s, true);
  if (s->to->rows == 1 && s->work < 0) show_block(&c->term, s->to, s->digits);
}

/* x, what is done to it, and the result; one line for each number of a row. */
static void show_elementwise(const cli *c, const step *s, const char *doing, const char *behind) {
  const term *t = &c->term;
  const matrix *from = s->from[0], *to = s->to;
  show_heading(t, s, "", behind);
  if (to->rows > 1 || to->columns > 16) {
    show_block(t, to, s->digits);
    return;
  }
  const number_format fx = number_fit(from->data, from->columns, s->digits);
  const number_format fy = number_fit(to->data, to->columns, s->digits);
  table *rows = table_new(t, "lrllr");
  for (int i = 0; i < to->columns; i++) {
    const label name = show_label(t, to->column_labels, i);
    if (to->columns > 1 || to->column_labels)
      table_label(rows, INK_OFF, &name);
    else
      table_head(rows, "");
    table_number(rows, INK_OFF, fx, from->data[i]);
    table_put(rows, INK_OFF, "%s", doing);
    table_put(rows, INK_OFF, number_is_exact(fy, to->data[i]) ? "=" : "≈");
    table_number(rows, INK_OFF, fy, to->data[i]);
  }
  table_print(rows, INDENT);
}

/* "÷ √2" in the formula, "÷ 1.41" in the lines. */
void show_scale(const cli *c, const step *s) {
  const number_format f = number_fit(&s->factor, 1, s->digits);
  char number[NUMBER_BYTES], doing[NUMBER_BYTES + 8], behind[2 * NUMBER_BYTES + 64];
  number_write(number, f, s->factor);
  snprintf(doing, sizeof doing, "%s %s", strncmp(s->text, "÷", strlen("÷")) ? "×" : "÷", number);
  const char *root = strstr(s->text, "√");
  const char *equal = number_is_exact(f, s->factor) ? "=" : "≈";
  if (root)
    snprintf(behind, sizeof behind, " %s     %s %s %s", s->text, root, equal, number);
  else
    snprintf(behind, sizeof behind, " %s", s->text);
  show_elementwise(c, s, doing, behind);
}

void show_shift(const cli *c, const step *s) {
  char behind[160];
  snprintf(behind, sizeof behind, " %s", s->text);
  show_elementwise(c, s, s->text, behind);
}

void show_mask(const cli *c, const step *s) {
  const term *t = &c->term;
  bool causal = !strcmp(s->text, "causal");
  show_heading(t, s, "", "");
  text_wrap(stdout, t, causal ? "causal: a row sees itself and what came before" : s->text, INDENT,
            prose_width(t));
  show_block(t, s->to, s->digits);
  text_put(t, "%*s· hidden    %d of %d pairs are left\n", INDENT, "", s->count,
           s->to->rows * s->to->columns);
}

/* One row: score, distance to the largest, e to that, and the weight. */
static void softmax_row(const cli *c, const step *s) {
  const term *t = &c->term;
  const matrix *from = s->from[0], *to = s->to;
  const int n = to->columns;
  const size_t row = (size_t)s->work * (size_t)n;
  const number_format score = number_fit(from->data + row, n, s->digits);
  const number_format shifted = number_fit(s->shifted + row, n, s->digits);
  const number_format fixed = {s->digits, 0};
  char max[NUMBER_BYTES];
  number_write(max, (number_format){score.decimals, 0}, s->max[s->work]);
  work_title(t, s);
  table *rows = table_new(t, "lrrrrb");
  bool narrow = t->width < NARROW || s->max[s->work] == -INFINITY;
  table_head(rows, "");
  table_head(rows, from->name);
  table_put(rows, INK_FAINT, narrow ? "−max" : "%s − %s", from->name, max);
  table_put(rows, INK_FAINT, narrow ? "e^" : "e^(%s − %s)", from->name, max);
  table_put(rows, INK_FAINT, narrow ? "÷sum" : "÷ sum = %s", to->name);
  table_head(rows, "");
  for (int i = 0; i < n; i++) {
    const label name = show_label(t, to->column_labels, i);
    table_label(rows, INK_OFF, &name);
    table_number(rows, INK_OFF, score, from->data[row + (size_t)i]);
    table_number(rows, INK_OFF, shifted, s->shifted[row + (size_t)i]);
    table_number(rows, INK_OFF, fixed, s->exps[row + (size_t)i]);
    table_number(rows, INK_STRONG, fixed, to->data[row + (size_t)i]);
    table_bar(rows, to->data[row + (size_t)i]);
  }
  table_head(rows, "sum");
  table_head(rows, "");
  table_head(rows, "");
  table_number(rows, INK_OFF, fixed, s->sum[s->work]);
  table_head(rows, "");
  table_head(rows, "");
  table_print(rows, INDENT);
}

void show_softmax(const cli *c, const step *s) {
  const term *t = &c->term;
  printf("  ");
  matrix_name(t, s->to);
  printf(" = softmax(");
  matrix_name(t, s->from[0]);
  printf(")\n");
  if (s->work >= 0) softmax_row(c, s);
  if (s->to->rows > 1) show_block(t, s->to, s->digits);
}

/* "[a b c]": the numbers x[0], x[stride] … */
static void vector_cell(table *rows, ink color, number_format f, const float *x, int n,
                        int stride) {
  char text[256] = "[";
  for (int i = 0; i < n; i++) {
    char number[NUMBER_BYTES];
    number_write(number, f, x[i * stride]);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", i ? "  " : "", number);
  }
  size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, "]");
  table_put(rows, color, "%s", text);
}

/* weight × value vector = weighted vector, key by key, and their sum below. */
static void mix_row(const cli *c, const step *s) {
  const term *t = &c->term;
  const matrix *w = s->from[0], *v = s->from[1], *to = s->to;
  const float *weights = w->data + s->work * w->columns;
  const number_format fw = number_fit(weights, w->columns, s->digits);
  const number_format fv = number_fit(v->data, (int64_t)v->rows * v->columns, s->digits);
  const number_format ft =
      number_both(number_fit(s->terms, (int64_t)to->columns * w->columns, s->digits),
                  number_fit(to->data + s->work * to->columns, to->columns, s->digits));
  work_title(t, s);
  bool narrow = t->width < NARROW;
  table *rows = table_new(t, "lrllrl");
  for (int j = 0; j < w->columns; j++) {
    const label name = show_label(t, w->column_labels ? w->column_labels : v->row_labels, j);
    table_label(rows, INK_OFF, &name);
    table_number(rows, INK_OFF, fw, weights[j]);
    table_put(rows, INK_OFF, narrow ? "" : "×");
    vector_cell(rows, INK_V, fv, v->data + j * v->columns, v->columns, 1);
    table_put(rows, INK_OFF, narrow ? "" : "=");
    vector_cell(rows, INK_OFF, ft, s->terms + j, to->columns, w->columns);
  }
  table_head(rows, "sum");
  for (int i = 0; i < 3; i++) table_head(rows, "");
  table_put(rows, INK_OFF, narrow ? "" : "=");
  vector_cell(rows, INK_STRONG, ft, to->data + s->work * to->columns, to->columns, 1);
  table_print(rows, INDENT);
}

void show_mix(const cli *c, const step *s) {
  show_heading(&c->term, s, "·", "");
  bool narrow = s->to->columns <= 6 && s->from[0]->columns <= 16;
  if (s->work >= 0 && narrow) mix_row(c, s);
  if (s->to->rows > 1 || s->work < 0 || !narrow) show_block(&c->term, s->to, s->digits);
}

void lesson_show(const cli *c, const lesson *l) {
  static void (*const functions[])(const cli *, const step *) = {
#define ATT_STEP(name, syntax, doc) show_##name,
#include "lesson_steps.inc"
#undef ATT_STEP
  };
  const term *t = &c->term;
  printf("%s", t->inks[INK_STRONG]);
  text_wrap(stdout, t, l->title, 0, prose_width(t));
  printf("%s", t->inks[INK_OFF]);
  for (int i = 0; i < text_width(t, l->title) && i < prose_width(t); i++) text_put(t, "─");
  putchar('\n');
  for (const step *s = l->steps; s; s = s->next) {
    putchar('\n');
    functions[s->kind](c, s);
  }
}
