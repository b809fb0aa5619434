/* cmd_trace.c — attend trace: what flows through a model, kept by name. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/generate.h"
#include "attend/status.h"
#include "json_out.h"
#include "table.h"
#include "trace.h"

static subject what;
static reading_options way;
static trace choices = {.select = "*.hook_pattern", .budget = 1024};

static const option options[] = {
    SUBJECT_OPTIONS(what),
    READING_OPTIONS(way),
    {"select", 's', OPTION_TEXT, &choices.select, "NAMES", 0, 0,
     "names, or patterns with * and ?, separated by commas; default \"*.hook_pattern\""},
    {"layer", 'L', OPTION_RANGE, &choices.layers, "l", 0, 1e6, "this layer, or l-m"},
    {"head", 'H', OPTION_RANGE, &choices.heads, "h", 0, 1e6,
     "this head, or h-k; keys and values are those that it reads"},
    {"positions", 'p', OPTION_RANGE, &choices.positions, "i", 0, 1e9,
     "this position, or i-j; weights and scores keep all keys of these queries"},
    {"target", 0, OPTION_TEXT, &choices.target, "TOKEN", 0, 0,
     "names that end in _grad are gradients of a loss: of this token behind the prompt; default: "
     "of each of the prompt's tokens by those before it, their mean"},
    {"new", 'n', OPTION_INT, &choices.n_new, "N", 0, 1e6,
     "goes on with N likeliest tokens, whose rows come after the prompt's; the last one is not "
     "read"},
    {"output", 'o', OPTION_TEXT, &choices.output, "FILE", 0, 0,
     ".safetensors (with metadata), .npz, .npy (of one tensor) or .csv (a line for each number); "
     "- is CSV on standard output"},
    {"budget", 0, OPTION_INT, &choices.budget, "MB", 1, 1e9,
     "refuses to keep more than so many megabytes; default 1024"},
    {"plan", 0, OPTION_FLAG, &choices.plan, "", 0, 0,
     "says what would be kept and its bytes, and does not run the model"},
    {0}};

/* ---- tensors ---- */

/* The layer in a name: the first number between points. */
static int64_t layer_of(const char *name) {
  const char *point = strchr(name, '.');
  return point && point[1] >= '0' && point[1] <= '9' ? strtoll(point + 1, NULL, 10) : -1;
}

int64_t trace_count(const trace *t) {
  return att_capture_count(t->read.capture) + att_gradients_count(t->back.kept);
}

int64_t trace_bytes(const trace *t) {
  return att_capture_bytes(t->read.capture) + att_gradients_bytes(t->back.kept);
}

/* Name, axes and numbers of a value or a gradient. */
static trace_tensor find(const trace *t, int64_t index) {
  const att_capture *values = t->read.capture;
  const att_gradients *gradients = t->back.kept;
  const int64_t n = att_capture_count(values);
  trace_tensor out = {0};
  if (index < n) {
    out.name = att_capture_name(values, index);
    out.axes = att_capture_axes(values, index);
    if (att_capture_get(&out.values, values, out.name) != ATT_OK) out.values = att_view_none();
  } else {
    out.name = att_gradients_name(gradients, index - n);
    out.axes = trace_gradient_axes(out.name);
    if (!t->back.ran || att_gradients_get(&out.values, gradients, out.name) != ATT_OK)
      out.values = att_view_none();
  }
  return out;
}

trace_tensor trace_tensor_at(const trace *t, int64_t index) {
  const reading *r = &t->read;
  trace_tensor out = find(t, index);
  const char letter = out.axes[2];
  bool heads = letter == 'H' || letter == 'G' || out.axes[0] == 'H';
  bool of_text = out.axes[0] == 'S' || !strncmp(out.name, "encoder.", 8) || !r->n_answer;
  const att_model_info *info = att_model_describe(t->what->model);
  out.pairs = !strcmp(out.axes, "H T S");
  out.layer = layer_of(out.name);
  out.head = !heads ? -1 : t->heads.first / (letter == 'G' ? info->heads / info->kv_heads : 1);
  out.position = t->positions.first;
  const int32_t *read = att_session_tokens(r->session);
  out.row_ids = of_text && r->n_answer ? t->what->ids : read;
  out.key_ids = strstr(out.name, ".cross_attn.") ? t->what->ids : out.row_ids;
  return out;
}

/* ---- running ---- */

static att_status go_on(trace *t) {
  const att_model_info *info = att_model_describe(t->what->model);
  att_sampler_options likeliest;
  att_sampler_options_init(&likeliest);
  likeliest.temperature = 0;
  att_generate_options how;
  att_generate_options_init(&how);
  how.max_new = t->n_new;
  att_sampler *sampler = NULL;
  att_generate_result result;
  const int32_t *last = t->read.query_ids + t->read.n_queries - 1;
  att_status status = att_sampler_create(&sampler, t->what->runtime, &likeliest, info->vocab);
  if (status == ATT_OK) status = att_generate(&result, t->read.session, sampler, last, 1, &how);
  att_sampler_free(sampler);
  return status;
}

static att_capture_options parts_of(const trace *t) {
  att_capture_options parts;
  att_capture_options_init(&parts);
  parts.layers = (att_range){t->layers.first, t->layers.end};
  parts.heads = (att_range){t->heads.first, t->heads.end};
  parts.positions = (att_range){t->positions.first, t->positions.end};
  parts.budget_bytes = t->budget << 20;
  return parts;
}

/* Gradients are those of the whole prompt, by the model as it is. */
static int check_gradients(const trace *t, const cli *c) {
  if (!trace_names_gradients(t->select))
    return t->target ? cli_usage(c, "--target is for names that end in _grad") : CLI_OK;
  if (t->layers.end || t->heads.end || t->positions.end || t->n_new > 0)
    return cli_usage(c, "names that end in _grad exclude -L, -H, -p and -n: choose by name");
  if (edit_given(&way.edits))
    return cli_usage(c, "names that end in _grad and --edit exclude "
                        "each other: the way back is the model's own");
  return CLI_OK;
}

static int check(trace *t, const cli *c) {
  const att_model_info *info = att_model_describe(t->what->model);
  int refused = check_gradients(t, c);
  if (refused) return refused;
  if (t->output && !trace_can_write(t->output))
    return cli_usage(c, "-o %s: ends in none of .safetensors, .npz, .npy, .csv", t->output);
  if (c->json && t->output && !strcmp(t->output, "-"))
    return cli_usage(c, "--json and CSV on standard output exclude each other");
  if (t->n_new > 0 && info->kind != ATT_MODEL_DECODER) return cli_usage(c, "-n is for a decoder");
  if (t->n_new > info->context - t->what->n && info->kind == ATT_MODEL_DECODER)
    return cli_usage(c, "-n %" PRId64 ": the context of %" PRId64 " has room for %" PRId64,
                     t->n_new, info->context, info->context - t->what->n);
  /* The last new token is not read. */
  const int64_t rows = t->read.n_queries + (t->n_new > 0 ? t->n_new - 1 : 0);
  if (t->positions.end > rows)
    return cli_usage(c, "-p %" PRId64 ": the positions are 0 to %" PRId64, t->positions.end - 1,
                     rows - 1);
  if (t->heads.end > info->heads)
    return cli_usage(c, "-H %" PRId64 ": the heads are 0 to %" PRId64, t->heads.end - 1,
                     info->heads - 1);
  if (t->layers.end > t->read.layers)
    return cli_usage(c, "-L %" PRId64 ": the layers are 0 to %" PRId64, t->layers.end - 1,
                     t->read.layers - 1);
  return CLI_OK;
}

/* New tokens: the last one of the prompt is read when the first of them is made. */
static int evaluate(trace *t, const cli *c) {
  const att_capture_options parts = parts_of(t);
  const int64_t n = t->read.n_queries, end = t->plan ? 0 : t->n_new > 0 ? n - 1 : n;
  char *values, *gradients;
  trace_split(&values, &gradients, t->select);
  t->read.more = t->n_new;
  int code = CLI_OK;
  if (*gradients) code = trace_gradients_open(&t->back, c, t->what, gradients, parts.budget_bytes);
  bool any = *values || !*gradients; /* an empty list is the library's to refuse */
  if (code == CLI_OK)
    code = reading_start_part(&t->read, c, any && !*values ? t->select : values, &parts, end);
  free(values), free(gradients);
  if (code != CLI_OK || t->plan) return code;
  cli_note(c, "keeping %" PRId64 " bytes", trace_bytes(t));
  if (t->back.kept) code = trace_gradients_run(&t->back, c, t->what, t->target);
  if (t->back.ran) cli_note(c, "loss %.6g", t->back.loss);
  if (code != CLI_OK || !t->n_new) return code;
  return go_on(t) == ATT_OK ? CLI_OK : cli_fail_status(c);
}

/* ---- showing ---- */

/* Bytes of one tensor, and of what its parts are taken from. */
static int64_t bytes_of(const trace *t, const char *name) {
  int64_t bytes = 0;
  const att_capture_options parts = parts_of(t);
  if (trace_names_gradients(name))
    return att_gradients_measure(&bytes, t->back.learner, name) == ATT_OK ? bytes : 0;
  return att_capture_measure(&bytes, t->read.session, name, &parts) == ATT_OK ? bytes : 0;
}

static void print_plan(const trace *t, const term *out) {
  table *rows = table_new(out, "llr");
  table_head(rows, "name");
  table_head(rows, "axes");
  table_head(rows, "bytes");
  for (int64_t i = 0; i < trace_count(t); i++) {
    const trace_tensor tensor = trace_tensor_at(t, i);
    table_put(rows, INK_OFF, "%s", tensor.name);
    table_put(rows, INK_FAINT, "%s", tensor.axes);
    table_put(rows, INK_OFF, "%" PRId64, bytes_of(t, tensor.name));
  }
  table_print(rows, 0);
  printf("%" PRId64 " tensors, %" PRId64 " bytes in all\n", trace_count(t), trace_bytes(t));
}

/* The least and greatest of what is not hidden. */
static void range_of(float range[2], att_view v) {
  range[0] = INFINITY;
  range[1] = -INFINITY;
  for (int64_t a = 0; a < v.shape[0]; a++)
    for (int64_t b = 0; b < v.shape[1]; b++)
      for (int64_t i = 0; i < (v.ndim == 3 ? v.shape[2] : 1); i++) {
        int64_t at = a * v.stride[0] + b * v.stride[1] + (v.ndim == 3 ? i * v.stride[2] : 0);
        float x = ((const float *)v.data)[at];
        if (x == -INFINITY) continue;
        if (x < range[0]) range[0] = x;
        if (x > range[1]) range[1] = x;
      }
}

static void print_summary(const trace *t, const term *out) {
  table *rows = table_new(out, "llrrr");
  static const char *const heads[] = {"name", "axes", "sizes", "least", "greatest"};
  for (int i = 0; i < 5; i++) table_head(rows, heads[i]);
  for (int64_t i = 0; i < trace_count(t); i++) {
    const trace_tensor tensor = trace_tensor_at(t, i);
    const att_view *v = &tensor.values;
    float range[2];
    range_of(range, *v);
    table_put(rows, INK_OFF, "%s", tensor.name);
    table_put(rows, INK_FAINT, "%s", tensor.axes);
    if (v->ndim == 3)
      table_put(rows, INK_OFF, "%" PRId64 " %" PRId64 " %" PRId64, v->shape[0], v->shape[1],
                v->shape[2]);
    else
      table_put(rows, INK_OFF, "%" PRId64 " %" PRId64, v->shape[0], v->shape[1]);
    table_put(rows, INK_OFF, "%.5g", (double)range[0]);
    table_put(rows, INK_OFF, "%.5g", (double)range[1]);
  }
  table_print(rows, 0);
}

static void print_json(const trace *t) {
  const att_session *session = t->read.session;
  json j = subject_json(t->what);
  edit_json(&j, &t->read.edited);
  json_ints(&j, "tokens", att_session_tokens(session), att_session_length(session));
  json_int(&j, "bytes", trace_bytes(t));
  if (t->back.ran) json_double(&j, "loss", t->back.loss);
  if (t->back.ran) json_string(&j, "loss_of", t->target ? "target" : "prompt");
  if (t->back.ran && t->target) json_string(&j, "target", t->target);
  json_open(&j, "tensors", '[');
  for (int64_t i = 0; i < trace_count(t); i++) {
    const trace_tensor tensor = trace_tensor_at(t, i);
    json_open(&j, NULL, '{');
    json_string(&j, "name", tensor.name);
    json_string(&j, "axes", tensor.axes);
    json_int(&j, "first_position", tensor.position);
    if (tensor.head >= 0) json_int(&j, "first_head", tensor.head);
    if (t->plan) json_int(&j, "bytes", bytes_of(t, tensor.name));
    if (!t->plan && !t->output) json_view(&j, "values", tensor.values);
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static int show(const trace *t, const cli *c) {
  bool listed = t->output && strcmp(t->output, "-") == 0;
  if (c->json)
    print_json(t);
  else if (t->plan)
    print_plan(t, &c->term);
  else if (!listed) {
    edit_say(&c->term, &t->read.edited);
    print_summary(t, &c->term);
  }
  return t->output && !t->plan ? trace_write(t, c) : CLI_OK;
}

static int run(const cli *c, int n, char **operands) {
  trace t = choices;
  t.what = &what;
  what.f32_weights = trace_names_gradients(t.select); /* the way back has no other */
  int code = subject_open(&what, c, n, operands);
  if (code == CLI_OK) code = reading_choose(&t.read, c, &what, &way);
  if (code == CLI_OK) code = check(&t, c);
  if (code == CLI_OK) code = evaluate(&t, c);
  if (code == CLI_OK) code = show(&t, c);
  reading_close(&t.read);
  trace_gradients_close(&t.back);
  subject_close(&what);
  return code;
}

const command cmd_trace = {
    .operands = "[PROMPT]",
    .least = 0,
    .most = 1,
    .about = "Runs the model on PROMPT and keeps what passes the places that --select names: "
             "queries, keys, values, scores, weights, head outputs, the residual stream, logits. "
             "Prints a table of them, --json all numbers, -o writes those to a file.\n\n"
             "  attend trace --plan --select \"*\"    # all names of the model, with bytes\n"
             "  attend trace -L 1 -H 0 -o head.csv  # the weights of one head\n\n"
             "Names are those of TransformerLens (docs/sites.md has the table): "
             "blocks.1.attn.hook_pattern are weights [heads, queries, keys], a hidden key having "
             "weight 0 and score -inf. Row i stands at position i and predicts token i + 1. Keys "
             "and values have as many heads as the model keeps. With _grad behind it a name is the "
             "gradient of a loss there: blocks.1.attn.hook_pattern_grad.",
    .options = options,
    .run = run,
};
