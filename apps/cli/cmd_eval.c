/* cmd_eval.c — attend eval: minimal pairs, which of two texts is more probable; or
 * (eval_halves.c) the losses of both halves of lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "edit_options.h"
#include "eval_halves.h"
#include "json_out.h"
#include "memory.h"
#include "pair_judge.h"
#include "progress.h"
#include "subject.h"
#include "table.h"

static subject what;
static const char *path, *halves_path;
static bool each;
static edit_options edits;
static edit_set edited;

static const option options[] = {
    SUBJECT_MODEL_OPTIONS(what),
    {"pairs", 'p', OPTION_TEXT, &path, "FILE", 0, 0,
     "the pairs, one a line: PREFIX, A, B and perhaps a CATEGORY with tabs between them, or JSON "
     "objects with these names (BLiMP's are known too)"},
    {"halves", 0, OPTION_TEXT, &halves_path, "FILE", 0, 0,
     "in place of pairs: reads each line alone, and tells the mean loss of the tokens of its first "
     "and of its second half"},
    {"each", 0, OPTION_FLAG, &each, "", 0, 0, "prints every pair, or line, too"},
    EDIT_OPTIONS(edits),
    {0}};

typedef struct category {
  const char *name;
  int64_t n, right, ties, right_per_byte;
} category;

/* ---- all ---- */

static int64_t category_of(category **all, int64_t *n, const char *name) {
  for (int64_t i = 0; i < *n; i++)
    if (strcmp((*all)[i].name, name) == 0) return i;
  *all = memory_resize(*all, (size_t)*n + 1, sizeof **all);
  (*all)[*n] = (category){.name = name};
  return (*n)++;
}

static void count(category *k, const verdict *v) {
  k->n++;
  k->right += v->a > v->b;
  k->ties += v->a == v->b;
  k->right_per_byte += v->a / (double)v->bytes_a > v->b / (double)v->bytes_b;
}

static double share(int64_t part, int64_t whole) {
  return whole > 0 ? (double)part / (double)whole : 0;
}

static void json_counts(json *j, const category *k) {
  json_int(j, "pairs", k->n);
  json_int(j, "right", k->right);
  json_int(j, "ties", k->ties);
  json_double(j, "accuracy", share(k->right, k->n));
  json_double(j, "accuracy_per_byte", share(k->right_per_byte, k->n));
}

static void print_json(const category *total, const category *all, int64_t n, const pair *pairs,
                       const verdict *verdicts) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(what.model)->name);
  json_string(&j, "class", att_runtime_class(what.runtime));
  edit_json(&j, &edited);
  json_counts(&j, total);
  json_open(&j, "categories", '[');
  for (int64_t i = 0; i < n; i++) {
    json_open(&j, NULL, '{');
    json_string(&j, "category", all[i].name);
    json_counts(&j, &all[i]);
    json_close(&j);
  }
  json_close(&j);
  if (each) json_open(&j, "each", '[');
  for (int64_t i = 0; each && i < total->n; i++) {
    json_open(&j, NULL, '{');
    json_int(&j, "line", pairs[i].line);
    json_double(&j, "a", verdicts[i].a);
    json_double(&j, "b", verdicts[i].b);
    json_close(&j);
  }
  if (each) json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void row_counts(table *rows, ink color, const char *name, const category *k) {
  table_put(rows, color, "%.1f %%", 100 * share(k->right, k->n));
  table_put(rows, INK_OFF, "%lld of %lld", (long long)k->right, (long long)k->n);
  table_put(rows, INK_OFF, "%.1f %%", 100 * share(k->right_per_byte, k->n));
  table_put(rows, INK_OFF, "%s", name);
}

static void print_each(const cli *c, const pair *pairs, const verdict *verdicts, int64_t n) {
  table *rows = table_new(&c->term, "rrrll");
  const char *const heads[] = {"line", "log p(A)", "log p(B)", "", "A | B"};
  for (int i = 0; i < 5; i++) table_head(rows, heads[i]);
  for (int64_t i = 0; i < n; i++) {
    const verdict *v = &verdicts[i];
    const label a = label_name(&c->term, pairs[i].fields[PAIR_A], 24);
    const label b = label_name(&c->term, pairs[i].fields[PAIR_B], 24);
    table_put(rows, INK_FAINT, "%lld", (long long)pairs[i].line);
    table_put(rows, INK_OFF, "%.4f", v->a);
    table_put(rows, INK_OFF, "%.4f", v->b);
    table_put(rows, INK_STRONG, "%s", v->a > v->b ? "A" : v->a == v->b ? "=" : "B");
    table_put(rows, INK_OFF, "%s | %s", a.text, b.text);
  }
  table_print(rows, 0);
  putchar('\n');
}

static void print_text(const cli *c, const category *total, const category *all, int64_t n) {
  table *rows = table_new(&c->term, "rrrl");
  const char *const heads[] = {"right", "pairs", "per byte", "category"};
  for (int i = 0; i < 4; i++) table_head(rows, heads[i]);
  for (int64_t i = 0; i < n && (n > 1 || all[0].name[0]); i++)
    row_counts(rows, INK_OFF, all[i].name[0] ? all[i].name : "-", &all[i]);
  row_counts(rows, INK_STRONG, "all", total);
  table_print(rows, 0);
  if (total->ties > 0) cli_note(c, "%lld ties count as wrong", (long long)total->ties);
}

static int judge_all(const cli *c, att_session *session, const pair *pairs, int64_t n) {
  category *all = NULL, total = {0};
  int64_t n_categories = 0;
  double *logs = memory_get((size_t)att_session_context(session), sizeof *logs);
  verdict *verdicts = memory_get((size_t)n, sizeof *verdicts);
  int code = CLI_OK;
  progress bar = progress_begin(c, "reading");
  for (int64_t i = 0; i < n && code == CLI_OK; i++) {
    code = pair_judge(&verdicts[i], c, what.tokenizer, session, logs, &pairs[i]);
    if (code != CLI_OK) break;
    count(&total, &verdicts[i]);
    const int64_t k = category_of(&all, &n_categories, pairs[i].fields[PAIR_CATEGORY]);
    count(&all[k], &verdicts[i]);
    progress_show((double)(i + 1) / (double)n, &bar);
  }
  progress_end(&bar);
  if (code == CLI_OK && c->json) print_json(&total, all, n_categories, pairs, verdicts);
  if (code == CLI_OK && !c->json) edit_say(&c->term, &edited);
  if (code == CLI_OK && !c->json && each) print_each(c, pairs, verdicts, n);
  if (code == CLI_OK && !c->json) print_text(c, &total, all, n_categories);
  free(all);
  free(verdicts);
  free(logs);
  return code;
}

/* The session that everything is read in, with the edits on it. */
static int open_session(att_session **session, const cli *c) {
  if (!what.tokenizer)
    return cli_fail(c, "%s has no tokenizer: give one with -z",
                    att_model_describe(what.model)->name);
  att_session_options room;
  att_session_options_init(&room);
  room.context = att_model_describe(what.model)->context;
  if (room.context > 4096) room.context = 4096; /* memory: a pair is a sentence or two */
  room.all_logits = true;
  room.logit_rows = PAIR_ROWS < room.context ? PAIR_ROWS : room.context;
  if (att_session_create(session, what.model, &room) != ATT_OK) return cli_fail_status(c);
  return edit_attach(&edited, c, what.runtime, *session, &edits);
}

static int run(const cli *c, int n, char **operands) {
  (void)n;
  (void)operands;
  pair *pairs = NULL;
  att_session *session = NULL;
  int64_t count_of_pairs = 0;
  if (!path && !halves_path) return cli_usage(c, "which pairs? Give --pairs FILE");
  if (path && halves_path) return cli_usage(c, "--pairs and --halves exclude each other");
  what.file_path = path ? path : halves_path;
  int code = subject_read_text(&what, c, 0, NULL);
  if (code == CLI_OK) {
    what.file = memory_resize(what.file, what.prompt_bytes + 1, 1);
    what.file[what.prompt_bytes] = 0;
  }
  if (code == CLI_OK && path)
    code = pairs_read(&pairs, &count_of_pairs, c, what.file, what.prompt_bytes);
  if (code == CLI_OK) code = subject_open_model(&what, c);
  if (code == CLI_OK) code = open_session(&session, c);
  if (code == CLI_OK)
    code = path ? judge_all(c, session, pairs, count_of_pairs)
                : eval_halves(c, &what, session, &edited, what.file, what.prompt_bytes, each);
  free(pairs);
  edit_detach(&edited);
  att_session_free(session);
  subject_close(&what);
  return code;
}

const command cmd_eval = {
    .operands = "",
    .least = 0,
    .most = 0,
    .about =
        "Reads minimal pairs: two texts A and B behind one PREFIX, of which A is the better one, "
        "and counts how often the model finds A more probable: log p is added up over the tokens "
        "that the two do not share. The share per byte divides each sum by the bytes of its text "
        "first, which is fairer to texts of unequal length. Ties count as wrong.\n\n"
        "With --halves, the losses of the first and the second half of each line: of a line that "
        "is one thing twice, the second half can be known from the first.\n\n"
        "Edits are those of attend run. With all scores the same, every head weighs all keys it "
        "may see alike, which is the control for what attention does:\n\n"
        "    printf 'The cat\\t sleeps\\t sleep\\tagreement\\n' | attend eval -p - -m MODEL\n"
        "    attend eval -p pairs.jsonl -m MODEL --edit 'set *.hook_attn_scores value=0'\n"
        "    attend eval --halves FILE -m MODEL --edit 'zero blocks.1.attn.hook_z head=0'",
    .options = options,
    .run = run,
};
