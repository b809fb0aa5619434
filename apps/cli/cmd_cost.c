/* cmd_cost.c — attend cost: what attention over n positions takes.
 *
 * Counts of pairs, multiplications and bytes, by formula; the workspace is what
 * the library's own plan for that size asks for. A multiply-add is two
 * operations. Nothing is run.
 */
#include <stdio.h>

#include "attend/sdpa.h"
#include "attend/status.h"
#include "json_out.h"
#include "subject.h"
#include "table.h"

static subject what;
static int64_t positions;

static const option options[] = {SUBJECT_MODEL_OPTIONS(what),
                                 {"positions", 'n', OPTION_INT, &positions, "T", 1, 1e9,
                                  "how many positions; default: the model's context"},
                                 {0}};

/* Doubles: exact up to 2^53, and no size can overflow them. */
typedef struct cost {
  double pairs_all, pairs; /* n², n(n+1)/2 */
  double attention;        /* operations for the visible pairs of all heads and layers */
  double layers;           /* those of projections and feed-forward, n positions */
  double output;           /* those of the projection to the vocabulary, one position */
  double matrix_bytes;     /* all scores of one layer, if they were kept */
  double workspace;        /* what the library's plan takes instead */
  double cache_bytes;      /* keys and values of n positions in f32 */
  double step, no_cache;   /* operations for token n+1, with the cache and without */
} cost;

/* Bytes of workspace of a plan for one layer. */
static att_status plan_bytes(double *out, const att_model_info *m, int64_t n) {
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  static float stand_in; /* a plan reads no numbers */
  const int64_t q[4] = {1, m->heads, n, m->head_dim}, k[4] = {1, m->kv_heads, n, m->head_dim};
  args.q = args.out = att_view_of(&stand_in, ATT_F32, 4, q);
  args.k = args.v = att_view_of(&stand_in, ATT_F32, 4, k);
  att_sdpa_plan *plan = NULL;
  att_status status = att_mask_add(&args.mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  if (status == ATT_OK) status = att_sdpa_plan_create(&plan, what.runtime, &args);
  if (status == ATT_OK) *out = (double)att_sdpa_plan_workspace(plan);
  att_sdpa_plan_free(plan);
  return status;
}

/* Gated feed-forward networks have three matrices, others two: told by the
 * number of weights that embeddings and attention leave. */
static double layer_weights(const att_model_info *m) {
  const double layers = (double)m->layers, width = (double)m->width, ffn = (double)m->ffn_width;
  const double heads = (double)(2 * m->heads + 2 * m->kv_heads) * (double)m->head_dim;
  const double embedding = (double)m->vocab * width * (m->tied_output ? 1 : 2);
  const double left = (double)m->parameters - embedding - layers * width * heads;
  if (ffn == 0) return layers * width * heads;
  return layers * width * (heads + ffn * (left > 2.5 * layers * width * ffn ? 3 : 2));
}

static cost cost_of(const att_model_info *m, double n) {
  const double q = (double)(m->layers * m->heads * m->head_dim);
  const double weights = layer_weights(m);
  cost c = {.pairs_all = n * n, .pairs = n * (n + 1) / 2};
  c.attention = 4 * q * (m->kind == ATT_MODEL_ENCODER ? c.pairs_all : c.pairs);
  c.layers = 2 * n * weights;
  c.output = 2 * (double)m->vocab * (double)m->width;
  c.matrix_bytes = 4 * (double)m->heads * c.pairs_all;
  c.cache_bytes = 4 * 2 * (double)(m->layers * m->kv_heads * m->head_dim) * n;
  c.step = 4 * q * (n + 1) + 2 * weights + c.output;
  c.no_cache = 4 * q * (n + 1) * (n + 2) / 2 + 2 * (n + 1) * weights + c.output;
  return c;
}

/* 1234567 as "1.235 M". */
static void row(table *rows, const char *name, double x, const char *unit, const char *formula) {
  static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int power = 0;
  double scaled = x;
  for (; scaled >= 9999.5 && power < 6; power++) scaled /= 1000;
  table_put(rows, INK_OFF, "%s", name);
  table_put(rows, INK_STRONG, scaled == (int64_t)scaled ? "%.0f" : "%.4g", scaled);
  table_put(rows, INK_OFF, "%s%s", prefixes[power], unit);
  table_put(rows, INK_FAINT, "%s", formula);
}

static void row_pairs(table *rows, const char *name, double x, const char *formula) {
  table_put(rows, INK_OFF, "%s", name);
  table_put(rows, INK_STRONG, "%.0f", x);
  table_head(rows, "");
  table_put(rows, INK_FAINT, "%s", formula);
}

static void print_text(const cli *c, const att_model_info *m, const cost *k) {
  table *rows = table_new(&c->term, "lrrl");
  text_say(&c->term, INK_OFF, 0, "%s: %lld layers × %lld heads of width %lld, n = %lld positions",
           label_name(&c->term, m->name, 30).text, (long long)m->layers, (long long)m->heads,
           (long long)m->head_dim, (long long)positions);
  putchar('\n');
  row_pairs(rows, "pairs of positions", k->pairs_all, "n²");
  bool steps = m->kind != ATT_MODEL_ENCODER; /* which sees all pairs, at once */
  if (steps) row_pairs(rows, "… that a causal mask leaves", k->pairs, "n(n+1)/2");
  row(rows, "attention, all layers", k->attention, "FLOP", "4·layers·heads·width·pairs");
  row(rows, "projections and feed-forward", k->layers, "FLOP", "2·n·weights of layers");
  row(rows, "output, one position", k->output, "FLOP", "2·vocabulary·width");
  row(rows, "scores of a layer, if kept", k->matrix_bytes, "B", "4·heads·n²");
  row(rows, "workspace of a layer, in tiles", k->workspace, "B", "this library's plan");
  if (steps) {
    row(rows, "keys and values", k->cache_bytes, "B", "8·layers·kv heads·width·n");
    row(rows, "one more token, with cache", k->step, "FLOP", "");
    row(rows, "… without", k->no_cache, "FLOP", "everything again");
  }
  table_print(rows, 2);
  if (m->kind == ATT_MODEL_ENCODER_DECODER)
    text_say(&c->term, INK_FAINT, 0,
             "The decoder's own attention; its encoder and the attention "
             "across are not counted.");
}

static void print_json(const att_model_info *m, const cost *k) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", m->name);
  json_int(&j, "n", positions);
  json_double(&j, "pairs_all", k->pairs_all);
  json_double(&j, "pairs_causal", k->pairs);
  json_double(&j, "attention_flops", k->attention);
  json_double(&j, "layer_flops", k->layers);
  json_double(&j, "output_flops", k->output);
  json_double(&j, "score_matrix_bytes", k->matrix_bytes);
  json_double(&j, "workspace_bytes", k->workspace);
  json_double(&j, "kv_bytes", k->cache_bytes);
  json_double(&j, "step_flops", k->step);
  json_double(&j, "step_without_cache_flops", k->no_cache);
  json_close(&j);
  json_end(&j);
}

static int run(const cli *c, int n, char **operands) {
  (void)n;
  (void)operands;
  int code = subject_open_model(&what, c);
  if (code == CLI_OK) {
    const att_model_info *m = att_model_describe(what.model);
    if (positions == 0) positions = m->context;
    cost k = cost_of(m, (double)positions);
    if (plan_bytes(&k.workspace, m, positions) != ATT_OK)
      code = cli_fail_status(c);
    else if (c->json)
      print_json(m, &k);
    else
      print_text(c, m, &k);
  }
  subject_close(&what);
  return code;
}

const command cmd_cost = {
    .operands = "",
    .least = 0,
    .most = 0,
    .about = "Counts what a model's attention over n positions takes: pairs, operations (a "
             "multiply-add is two), bytes. All by formula but the workspace, which the library "
             "plans for that size; nothing is run, so n may be over the model's context.",
    .options = options,
    .run = run,
};
