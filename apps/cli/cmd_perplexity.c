/* cmd_perplexity.c — attend perplexity: how well a model predicts a text.
 *
 * The text is read in windows. Each begins anew, with BOS where the tokenizer adds
 * one, and overlaps the one before by all but `stride` tokens, so that every token
 * but the first ones is predicted from at least window - stride others. Every token
 * counts once, in the first window that has it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/describe.h"
#include "attend/score.h"
#include "attend/status.h"
#include "bench.h"
#include "json_out.h"
#include "memory.h"
#include "progress.h"
#include "subject.h"
#include "table.h"

enum { MOST_WINDOW = 1 << 30, USUAL_WINDOW = 1024, ROWS = 64 };

static subject what;
static text_list others;
static int64_t window, stride;

static const option options[] = {
    SUBJECT_MODEL_OPTIONS(what),
    {"beside", 0, OPTION_TEXTS, &others, "MODEL", 0, 0,
     "another model on the same text and windows, such as a quantised file of the first; may be "
     "given several times"},
    {"window", 'w', OPTION_INT, &window, "N", 2, MOST_WINDOW,
     "tokens of a window, BOS included; default 1024, at most the smallest context of the models"},
    {"stride", 0, OPTION_INT, &stride, "N", 1, MOST_WINDOW,
     "tokens from one window's beginning to the next; default half a window"},
    {0}};

typedef struct sums {
  char name[128], dtype[16]; /* of the model, of most of its weights */
  double nats;
  int64_t tokens, bytes, windows; /* that were predicted; bytes of text */
  double seconds;
} sums;

static double perplexity_of(const sums *s) { return exp(s->nats / (double)s->tokens); }
static double bits_of(const sums *s) { return s->nats / log(2); }

/* Reads tokens from … to of the text behind BOS; those before `from + skip` are
 * only read. Adds what the others cost. */
static att_status read_window(sums *s, att_session *session, double *logs, int32_t bos,
                              int64_t from, int64_t to, int64_t skip) {
  const att_encoding *e = what.encoding;
  const int32_t *ids = e->ids + from;
  int64_t n = to - from;
  att_status status = att_session_truncate(session, 0);
  if (status == ATT_OK && bos >= 0)
    status = att_session_eval(session, &bos, 1);
  else if (status == ATT_OK)
    status = att_session_eval(session, ids, 1), logs[0] = NAN;
  int64_t read = bos >= 0 ? 0 : 1;
  if (status == ATT_OK && n > read)
    status = att_session_score(logs + read, session, ids + read, n - read);
  if (status != ATT_OK) return status;
  for (int64_t i = skip > read ? skip : read; i < n; i++) {
    s->nats -= logs[i];
    s->tokens++;
  }
  s->windows++;
  return ATT_OK;
}

static att_status read_text(sums *s, att_session *session, double *logs, int32_t bos,
                            progress *bar) {
  const int64_t n = what.encoding->n, room = window - (bos >= 0);
  const double start = bench_now();
  att_status status = ATT_OK;
  for (int64_t from = 0, done = 0; done < n && status == ATT_OK; from += stride) {
    int64_t to = from + room < n ? from + room : n;
    status = read_window(s, session, logs, bos, from, to, done - from);
    done = to;
    progress_show((double)done / (double)n, bar);
  }
  s->seconds = bench_now() - start;
  /* Without BOS nothing predicts the first token. */
  s->bytes = (int64_t)what.prompt_bytes - (bos < 0 && n > 0 ? what.encoding->end[0] : 0);
  return status;
}

static void json_sums(json *j, const sums *s) {
  json_string(j, "model", s->name);
  json_string(j, "dtype", s->dtype);
  json_int(j, "tokens", s->tokens);
  json_int(j, "bytes", s->bytes);
  json_double(j, "nats", s->nats);
  json_double(j, "perplexity", perplexity_of(s));
  json_double(j, "bits_per_token", bits_of(s) / (double)s->tokens);
  if (s->bytes > 0)
    json_double(j, "bits_per_byte", bits_of(s) / (double)s->bytes);
  else
    json_null(j, "bits_per_byte");
  json_int(j, "windows", s->windows);
  json_double(j, "seconds", s->seconds);
}

/* The first model's numbers, and those of the others in a list. */
static void print_json(const sums *all, int64_t n) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_sums(&j, &all[0]);
  json_string(&j, "class", att_runtime_class(what.runtime));
  json_int(&j, "window", window);
  json_int(&j, "stride", stride);
  if (n > 1) json_open(&j, "beside", '[');
  for (int64_t i = 1; i < n; i++) {
    json_open(&j, NULL, '{');
    json_sums(&j, &all[i]);
    json_close(&j);
  }
  if (n > 1) json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void print_text(const cli *c, const sums *s) {
  table *rows = table_new(&c->term, "ll");
  table_head(rows, "perplexity");
  table_put(rows, INK_STRONG, "%.4f", perplexity_of(s));
  table_head(rows, "per token");
  table_put(rows, INK_OFF, "%.4f bits, %lld tokens predicted", bits_of(s) / (double)s->tokens,
            (long long)s->tokens);
  table_head(rows, "per byte");
  table_put(rows, INK_OFF, "%.4f bits, %lld bytes", bits_of(s) / (double)(s->bytes ? s->bytes : 1),
            (long long)s->bytes);
  table_head(rows, "windows");
  table_put(rows, INK_OFF, "%lld of %lld tokens, one every %lld", (long long)s->windows,
            (long long)window, (long long)stride);
  table_print(rows, 0);
  cli_note(c, "%.0f tokens/s", s->seconds > 0 ? (double)s->tokens / s->seconds : 0);
}

/* Models side by side; bits per byte compare those of different tokenizers too. */
static void print_table(const cli *c, const sums *all, int64_t n) {
  static const char *const heads[] = {"model", "weights", "perplexity", "bits/byte", "more bits"};
  table *rows = table_new(&c->term, "llrrr");
  for (int i = 0; i < 5; i++) table_head(rows, heads[i]);
  for (int64_t i = 0; i < n; i++) {
    const sums *s = &all[i];
    const double bits = bits_of(s) / (double)(s->bytes ? s->bytes : 1);
    const double first = bits_of(&all[0]) / (double)(all[0].bytes ? all[0].bytes : 1);
    const label name = label_of(&c->term, s->name, strlen(s->name), 40);
    table_label(rows, INK_OFF, &name);
    table_put(rows, INK_OFF, "%s", s->dtype);
    table_put(rows, INK_STRONG, "%.4f", perplexity_of(s));
    table_put(rows, INK_OFF, "%.4f", bits);
    if (i)
      table_put(rows, INK_FAINT, "%+.3f %%", 100 * (bits / first - 1));
    else
      table_put(rows, INK_FAINT, "%s", "");
  }
  table_print(rows, 0);
  cli_note(c, "windows of %lld tokens, one every %lld", (long long)window, (long long)stride);
}

static int measure(sums *s, const cli *c, int32_t bos) {
  const att_model_info *info = att_model_describe(what.model);
  att_session_options room;
  att_session *session = NULL;
  snprintf(s->name, sizeof s->name, "%s", info->name);
  snprintf(s->dtype, sizeof s->dtype, "%s", info->dtype);
  att_session_options_init(&room);
  room.context = window;
  room.all_logits = true;
  room.logit_rows = ROWS < window ? ROWS : window;
  double *logs = memory_get((size_t)window, sizeof *logs);
  progress bar = progress_begin(c, "reading");
  att_status status = att_session_create(&session, what.model, &room);
  if (status == ATT_OK) status = read_text(s, session, logs, bos, &bar);
  progress_end(&bar);
  att_session_free(session);
  free(logs);
  if (status != ATT_OK) return cli_fail_status(c);
  if (s->tokens == 0) return cli_fail(c, "the text has no token that another one predicts");
  return CLI_OK;
}

/* The window and the stride that fit the model. */
static int fit(const cli *c) {
  const int64_t context = att_model_describe(what.model)->context;
  if (window > context)
    return cli_usage(c, "--window: the model has %lld positions", (long long)context);
  if (window == 0) window = context < USUAL_WINDOW ? context : USUAL_WINDOW;
  if (stride == 0) stride = window > 3 ? window / 2 : 1;
  if (stride >= window)
    return cli_usage(c, "--stride: less than the window of %lld, so that every token is predicted",
                     (long long)window);
  return CLI_OK;
}

/* What is none, or more, than a model that goes on with a text. */
static int check_kind(const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  if (info->kind == ATT_MODEL_ENCODER)
    return cli_fail(c,
                    "%s is an encoder: it reads texts but does not write (see attend help fill "
                    "and embed)",
                    info->name);
  if (info->kind == ATT_MODEL_ENCODER_DECODER)
    return cli_fail(c, "%s has an encoder: perplexity needs a model without one", info->name);
  return CLI_OK;
}

/* One model on the text, which stays. */
static int run_model(sums *s, const cli *c) {
  int code = subject_open_model(&what, c);
  if (code == CLI_OK) code = check_kind(c);
  if (code == CLI_OK && !what.tokenizer)
    code =
        cli_fail(c, "%s has no tokenizer: give one with -z", att_model_describe(what.model)->name);
  if (code == CLI_OK) code = fit(c);
  const att_encode_options plain = {.add_special = false};
  att_encoding *whole = NULL;
  if (code == CLI_OK && (att_encode(&what.encoding, what.tokenizer, what.prompt, what.prompt_bytes,
                                    &plain) != ATT_OK ||
                         att_encode(&whole, what.tokenizer, "", 0, NULL) != ATT_OK))
    code = cli_fail_status(c);
  /* BOS goes in front if the tokenizer puts it there of its own. */
  const bool begins = whole && whole->n > 0 && whole->ids[0] == att_tokenizer_bos(what.tokenizer);
  if (code == CLI_OK) code = measure(s, c, begins ? whole->ids[0] : -1);
  att_encoding_free(whole);
  return code;
}

/* Makes room for the next model, but keeps the text. */
static void close_model(void) {
  char *file = what.file;
  what.file = NULL;
  subject_close(&what);
  what.file = file;
  what.encoding = NULL;
  what.model = NULL;
  what.runtime = NULL;
}

/* Models side by side read the same windows, so the usual one fits the smallest
 * context. What cannot be described is refused when its turn comes. */
static int choose_window(const cli *c) {
  int code = cli_runtime(&what.runtime, c);
  int64_t usual = USUAL_WINDOW;
  for (int64_t i = -1; i < others.n && code == CLI_OK; i++) {
    att_description *d = NULL;
    if (att_describe(&d, what.runtime, i < 0 ? what.model_path : others.texts[i]) != ATT_OK)
      continue;
    const att_model_info *info = att_description_model(d);
    if (info && info->context < usual) usual = info->context;
    att_description_free(d);
  }
  att_runtime_free(what.runtime);
  what.runtime = NULL;
  window = usual;
  return code;
}

static int run(const cli *c, int n, char **operands) {
  (void)n;
  const int64_t models = 1 + others.n;
  sums *all = memory_get((size_t)models, sizeof *all);
  what.file_path = operands[0];
  int code = subject_read_text(&what, c, 0, NULL);
  if (code == CLI_OK && window == 0 && others.n > 0) code = choose_window(c);
  for (int64_t i = 0; i < models && code == CLI_OK; i++) {
    if (i > 0) {
      close_model();
      what.model_path = others.texts[i - 1];
    }
    code = run_model(&all[i], c);
  }
  if (code == CLI_OK && c->json)
    print_json(all, models);
  else if (code == CLI_OK && models > 1)
    print_table(c, all, models);
  else if (code == CLI_OK)
    print_text(c, &all[0]);
  free(all);
  subject_close(&what);
  return code;
}

const command cmd_perplexity = {
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .about =
        "Measures how well a model predicts the text in FILE (- for standard input): exp of the "
        "mean of -log p over its tokens, each given those before it, and the same in bits per "
        "token and per byte (which tokenizers do not change).\n\n"
        "A text longer than a window is read in windows that overlap; every token counts once, "
        "and but for the first window it is predicted from at least window - stride others. A "
        "smaller stride gives a better and slower measure. A newline at the end does not count.\n\n"
        "With --beside, models are measured on the same text and windows and shown together: "
        "what a quantised file loses against the original; \"more bits\" is by what part it needs "
        "more "
        "of them than the first.",
    .options = options,
    .run = run,
};
