/* cmd_heads.c — attend heads: what each head does, in numbers that can be sorted. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/pattern.h"
#include "attend/status.h"
#include "heads_ablate.h"
#include "heads_copying.h"
#include "json_out.h"
#include "memory.h"
#include "reading_words.h"
#include "spark.h"
#include "table.h"
#include "watch.h"

enum { NORM = ATT_PATTERN_COUNT, COPYING, COPIED, ABLATED, METRICS };
enum { DISTANCES = 8, PROBE_MOST = 256, COPIED_TOP = 5 };

static subject what;
static reading_options way;
static dump_options source;
static int sort;
static int64_t top, probe;
static bool ascending, without_first, copying, ablate, words;

static const option options[] = {
    SUBJECT_OPTIONS(what),
    READING_OPTIONS(way),
    DUMP_OPTIONS(source),
    WORDS_OPTION(words),
    {"sort", 's', OPTION_CHOICE, &sort,
     "layer|previous|duplicate|induction|first|self|entropy|keys|distance|norm|copying|copied|"
     "ablated",
     0, 0, "largest first; default layer: in the order of the model"},
    {"ascending", 0, OPTION_FLAG, &ascending, "", 0, 0, "smallest first"},
    {"top", 0, OPTION_INT, &top, "N", 1, 1e6, "the first N rows only"},
    {"without-first", 0, OPTION_FLAG, &without_first, "", 0, 0,
     "leaves the first key out and scales the rest of a row to sum 1: many heads rest on it"},
    {"copying", 0, OPTION_FLAG, &copying, "", 0, 0,
     "of the weights alone: does the head make likelier the token that it looks at? copying: by "
     "eigenvalues, 1 copies, -1 suppresses; copied: share of the prompt's tokens that come among "
     "the 5 likeliest"},
    {"ablate", 0, OPTION_FLAG, &ablate, "", 0, 0,
     "takes every head out in turn: how far the next token's probabilities are from those "
     "without it, in nats (a run for each head)"},
    {"probe", 0, OPTION_INT, &probe, "R", 2, PROBE_MOST,
     "in place of a PROMPT: R random tokens that are there twice (--seed); induction and "
     "duplicate are then the diagonals where the first time is"},
    {0}};

typedef struct head_row {
  int64_t layer, head;
  double value[METRICS];
  double near[DISTANCES]; /* mean weight by distance, the last one all that is farther */
} head_row;

/* What is no measure of a pattern. */
static const struct {
  const char *name, *brief;
} others[] = {[NORM - NORM] = {"norm", "norm"},
              [COPYING - NORM] = {"copying", "copy"},
              [COPIED - NORM] = {"copied", "top5"},
              [ABLATED - NORM] = {"ablated", "KL"}};

static const char *metric_name(int m) {
  return m >= NORM ? others[m - NORM].name : att_pattern_name((att_pattern)m);
}
static const char *metric_brief(int m) {
  return m >= NORM ? others[m - NORM].brief : att_pattern_brief((att_pattern)m);
}

/* Some are only there where they are asked for. */
static bool is_measured(int m) {
  return m == ABLATED ? ablate : m == COPYING || m == COPIED ? copying : true;
}

/* ---- measuring ---- */

/* Row 0 at position 0 sees itself alone; at a later one, in a dump of a step, it counts. */
static int64_t first_row(const reading *r) { return r->first_query > 0 ? 0 : 1; }

static void measure_distances(head_row *row, const reading *r, att_view weights) {
  const int64_t rows = weights.shape[0], first = first_row(r);
  for (int64_t i = first; i < rows; i++)
    for (int64_t j = 0; j <= r->first_query + i && j < weights.shape[1]; j++) {
      const int64_t far = r->first_query + i - j, d = far < DISTANCES - 1 ? far : DISTANCES - 1;
      const float *x = weights.data;
      row->near[d] +=
          (double)x[i * weights.stride[0] + j * weights.stride[1]] / (double)(rows - first);
    }
}

/* Mean length of what the head adds to the stream. */
static double measure_norm(att_view result, int64_t head) {
  if (!result.data || result.shape[0] < 2) return NAN;
  double sum = 0;
  for (int64_t i = 1; i < result.shape[0]; i++) {
    const float *x = (const float *)result.data + i * result.stride[0] + head * result.stride[1];
    double square = 0;
    for (int64_t k = 0; k < result.shape[2]; k++) square += (double)x[k] * (double)x[k];
    sum += sqrt(square);
  }
  return sum / (double)(result.shape[0] - 1);
}

static void measure(head_row *row, const reading *r, att_view weights, att_view result) {
  const int32_t *tokens = r->saved && !r->saved->named ? NULL : r->query_ids;
  att_pattern_options how;
  att_pattern_options_init(&how);
  how.without_first_key = without_first;
  how.first_row = first_row(r);
  for (int m = 0; m < NORM; m++) {
    att_pattern_value v = {.value = NAN};
    const int64_t offset = m == ATT_PATTERN_INDUCTION ? probe - 1 : probe;
    if (probe && (m == ATT_PATTERN_INDUCTION || m == ATT_PATTERN_DUPLICATE))
      (void)att_pattern_diagonal(&v, weights, offset, what.n - probe);
    else /* what a pattern of cross attention, or a dump without tokens, does not have is NaN */
      (void)att_pattern_measure(&v, (att_pattern)m, weights, tokens, &how);
    row->value[m] = v.value;
  }
  row->value[NORM] = measure_norm(result, row->head);
  measure_distances(row, r, weights);
}

/* `added` is what was read of tokens, which heads add to their stream. */
static int64_t measure_all(head_row *rows, const reading *r, const reading *added) {
  int64_t n = 0;
  char site[64];
  snprintf(site, sizeof site, "%s.hook_pattern", r->part);
  for (int64_t layer = 0; layer < r->layers; layer++) {
    const att_view weights = reading_site(r, layer, site);
    const att_view result =
        r->across ? att_view_none() : reading_site(added, layer, "attn.hook_result");
    for (int64_t head = 0; weights.data && head < weights.shape[0]; head++) {
      head_row *row = &rows[n++];
      *row = (head_row){.layer = layer, .head = head};
      measure(row, r, att_view_select(weights, 0, head), result);
    }
  }
  return n;
}

/* Rows are in the order of the model here. */
static int take_out(head_row *rows, int64_t n, const cli *c) {
  double *kl = memory_get((size_t)n, sizeof *kl);
  const att_status status = heads_ablate(kl, &what);
  for (int64_t i = 0; i < n; i++) rows[i].value[ABLATED] = kl[i];
  free(kl);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

static int measure_copying(head_row *rows, int64_t n, const cli *c) {
  double *score = memory_get((size_t)(2 * n), sizeof *score), *share = score + n;
  const att_status status = heads_copying(score, share, &what, COPIED_TOP);
  for (int64_t i = 0; i < n; i++)
    rows[i].value[COPYING] = score[i], rows[i].value[COPIED] = share[i];
  free(score);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

/* ---- order ---- */

static int compare(const void *a, const void *b) {
  const head_row *x = a, *y = b;
  const int64_t place = x->layer != y->layer ? x->layer - y->layer : x->head - y->head;
  if (!sort) return place < 0 ? -1 : 1;
  const double p = x->value[sort - 1], q = y->value[sort - 1];
  if (isnan(p) || isnan(q)) return isnan(p) && isnan(q) ? (place < 0 ? -1 : 1) : isnan(p) ? 1 : -1;
  if (p == q) return place < 0 ? -1 : 1;
  return (p > q) == ascending ? 1 : -1;
}

/* ---- showing ---- */

static void print_json(const head_row *rows, int64_t n, const reading *r, const subject *shown) {
  json j = subject_json(&what);
  edit_json(&j, &r->edited);
  subject_json_ids(&j, shown, "query", r->query_ids, r->n_queries);
  if (words) json_string(&j, "words", WORDS_AGGREGATION);
  json_string(&j, "form", probe ? "probe" : "pattern");
  if (probe) json_int(&j, "period", probe);
  json_int(&j, "first_row", first_row(r));
  json_bool(&j, "without_first_key", without_first);
  if (copying) json_int(&j, "copied_top", COPIED_TOP);
  json_open(&j, "heads", '[');
  for (int64_t i = 0; i < n; i++) {
    json_open(&j, NULL, '{');
    json_int(&j, "layer", rows[i].layer);
    json_int(&j, "head", rows[i].head);
    for (int m = 0; m < METRICS; m++)
      if (is_measured(m)) json_double(&j, metric_name(m), rows[i].value[m]);
    json_open(&j, "weight_by_distance", '[');
    for (int d = 0; d < DISTANCES; d++) json_double(&j, NULL, rows[i].near[d]);
    json_close(&j);
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void print_legend(const term *t, const reading *r) {
  if (r->n_queries <= first_row(r)) {
    text_say(t, INK_FAINT, 0,
             "Means are over rows 1 and on; there is row 0 alone, which has no choice.");
    return;
  }
  text_say(t, INK_FAINT, 0,
           "Means over rows %" PRId64 " to %" PRId64
           "%s. prev: weight on the token before; dup: on earlier "
           "places of the same token; ind: on what came after these; first, self: on the first "
           "key, on itself; entr: entropy in nats; keys: e to the entropy; dist: how far back; "
           "norm: length of what it adds. The picture: weight by distance, 0 to 6 and farther.",
           r->first_query + first_row(r), r->first_query + r->n_queries - 1,
           without_first ? ", the first key left out" : "");
  if (words)
    text_say(t, INK_FAINT, 0,
             "Between words in place of tokens (" WORDS_AGGREGATION "); norm is of tokens' rows.");
  if (ablate)
    text_say(t, INK_FAINT, 0, "KL: how far the next token is from what it is without the head.");
  if (copying)
    text_say(t, INK_FAINT, 0,
             "copy: does it make likelier what it looks at, by the eigenvalues of its weights: 1 "
             "yes, -1 the opposite; top5: share of the prompt's tokens that come among its 5 "
             "likeliest.");
  if (probe)
    text_say(t, INK_FAINT, 0,
             "Probe: %" PRId64 " random tokens twice; ind and dup are the diagonals in their "
             "second half.",
             probe);
}

/* A narrow terminal shows the first ones, and what is sorted by. */
static bool is_shown(int m, const term *t) {
  enum { BESIDE = 17, COLUMN = 6 };
  if (m > NORM) return is_measured(m);
  const int asked = (copying ? 2 : 0) + (ablate ? 1 : 0); /* these are wanted, others yield */
  return m < (t->width - BESIDE) / COLUMN - asked || m == sort - 1;
}

static void print_table(const head_row *rows, int64_t n, const term *t) {
  char layout[METRICS + 3] = "l";
  for (int m = 0; m < METRICS; m++)
    if (is_shown(m, t)) strcat(layout, "r");
  table *out = table_new(t, strcat(layout, "l"));
  table_head(out, "head");
  for (int m = 0; m < METRICS; m++)
    if (is_shown(m, t)) table_head(out, metric_brief(m));
  table_head(out, "distance");
  for (int64_t i = 0; i < n; i++) {
    char picture[SPARK_BYTES];
    table_put(out, INK_STRONG, "L%" PRId64 ".H%" PRId64, rows[i].layer, rows[i].head);
    for (int m = 0; m < METRICS; m++) {
      const double x = rows[i].value[m];
      if (!is_shown(m, t)) continue;
      const ink color = sort == m + 1 ? INK_STRONG : INK_OFF;
      if (isnan(x))
        table_put(out, INK_FAINT, "-");
      else
        table_put(out, color, "%.*f",
                  m == ATT_PATTERN_KEYS || m == ATT_PATTERN_DISTANCE || m == NORM ? 1 : 2, x);
    }
    spark_write(picture, t, rows[i].near, DISTANCES);
    table_put(out, INK_OFF, "%s", picture);
  }
  table_print(out, 0);
}

/* ---- running ---- */

/* Random tokens in place of a prompt, behind what a text of the model begins with. */
static int open_probe(int32_t *ids, const cli *c, int n) {
  if (n > 0 || what.given_ids.n > 0 || what.file_path || words)
    return cli_usage(c, "--probe stands in place of a PROMPT%s", words ? ", and has no words" : "");
  int code = subject_open_model(&what, c);
  if (code != CLI_OK) return code;
  int64_t begin = 0;
  if (what.tokenizer && att_encode(&what.encoding, what.tokenizer, "", 0, NULL) == ATT_OK)
    for (; begin < what.encoding->n && begin < PROBE_MOST; begin++)
      ids[begin] = what.encoding->ids[begin];
  watch_tokens(ids + begin, probe, att_model_describe(what.model)->vocab, what.tokenizer, c->seed);
  what.ids = ids;
  what.n = begin + 2 * probe;
  return CLI_OK;
}

static int check_dump(const cli *c, int n) {
  if (n > 0 || probe) return cli_usage(c, "--dump stands in place of a model and a prompt");
  if (words) return cli_usage(c, "--words are those of a PROMPT, and a dump has none");
  if (ablate || copying)
    return cli_usage(c, "--%s needs a model, and a dump is none", ablate ? "ablate" : "copying");
  if (edit_given(&way.edits)) return cli_usage(c, "--edit needs a model, and a dump is none");
  return sort > NORM ? cli_usage(c, "--sort: a dump has no such number") : CLI_OK;
}

/* What another program has saved. */
static int read_dump(reading *r, dump *saved, const cli *c, int n) {
  int code = check_dump(c, n);
  if (code == CLI_OK) code = dump_open(saved, &what, c, &source);
  if (code == CLI_OK) reading_of_dump(r, &what, saved);
  return code;
}

static int check(const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  if (sort == ABLATED + 1 && !ablate) return cli_usage(c, "--sort ablated goes with --ablate");
  if (ablate && info->kind != ATT_MODEL_DECODER)
    return cli_usage(c, "--ablate: %s is no decoder, it has no next token", info->name);
  const bool by_copying = sort == COPYING + 1 || sort == COPIED + 1;
  if (by_copying && !copying)
    return cli_usage(c, "--sort %s goes with --copying", metric_name(sort - 1));
  if (copying && info->kind != ATT_MODEL_DECODER)
    return cli_usage(c, "--copying: %s is no decoder, it has no next token", info->name);
  if (ablate && edit_given(&way.edits))
    return cli_usage(c, "--ablate and --edit exclude each other");
  return CLI_OK;
}

static int read_model(reading *r, const cli *c, int n, char **operands) {
  static int32_t probe_ids[3 * PROBE_MOST];
  if (source.tokens) return cli_usage(c, "--tokens is for --dump");
  int code = probe ? open_probe(probe_ids, c, n) : subject_open(&what, c, n, operands);
  if (code == CLI_OK) code = check(c);
  if (code == CLI_OK) code = reading_choose(r, c, &what, &way);
  if (code != CLI_OK) return code;
  return reading_start(
      r, c, r->across ? "*.cross_attn.hook_pattern" : "*.attn.hook_pattern,*.attn.hook_result",
      r->n_queries);
}

static int run(const cli *c, int n, char **operands) {
  reading r = {0};
  dump saved = {0};
  head_row *rows = NULL;
  int code = source.path ? read_dump(&r, &saved, c, n) : read_model(&r, c, n, operands);
  const reading tokens = r;
  subject shown = what;
  if (code == CLI_OK && words) code = reading_words(&r, &saved, &shown, c);
  if (code == CLI_OK) {
    rows = memory_get((size_t)(r.layers * r.heads), sizeof *rows);
    int64_t count = measure_all(rows, &r, &tokens);
    if (copying) code = measure_copying(rows, count, c);
    if (ablate && code == CLI_OK) code = take_out(rows, count, c);
    qsort(rows, (size_t)count, sizeof *rows, compare);
    if (top && top < count) count = top;
    if (code == CLI_OK && c->json) {
      print_json(rows, count, &r, &shown);
    } else if (code == CLI_OK) {
      edit_say(&c->term, &r.edited);
      print_table(rows, count, &c->term);
      print_legend(&c->term, &r);
    }
  }
  free(rows);
  reading_close(&r);
  dump_close(&saved);
  subject_close(&what);
  return code;
}

const command cmd_heads = {
    .operands = "[PROMPT]",
    .least = 0,
    .most = 1,
    .about = "Runs the model on PROMPT and describes every head by what its weights do: a table, "
             "or --json. The numbers describe a pattern and prove nothing: whether a head matters "
             "is shown by taking it out (attend run --edit).\n\n"
             "  attend heads --sort induction     # heads that continue what was there before\n"
             "  attend heads --probe 25 -m MODEL  # the same on random tokens, the usual probe\n"
             "  attend run PROMPT --edit \"zero blocks.1.attn.hook_z head=0\"  # without L1.H0\n\n"
             "Formulas: docs/math/patterns.md, copying.md.",
    .options = options,
    .run = run,
};
