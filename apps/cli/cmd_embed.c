/* cmd_embed.c — attend embed: texts as vectors, and how near they are. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/encoder.h"
#include "engine.h"
#include "json_out.h"
#include "memory.h"
#include "subject.h"
#include "table.h"

enum { LABEL_ROOM = 32, SHOWN_NUMBERS = 5, MOST_COLUMNS = 10, MOST_ROWS = 24, NARROW = 60 };

static subject what;
enum { AS_THE_MODEL = 0 }; /* behind it the ways of att_pooling */
static int chosen = AS_THE_MODEL;
static int pooling; /* an att_pooling */
static bool unit_length, any_length;

static const option options[] = {
    SUBJECT_OPTIONS(what),
    {"pool", 0, OPTION_CHOICE, &chosen, "model|cls|mean|head", 0, 0,
     "one vector of a text: as the model's files say; its first token's; the mean of all tokens'; "
     "the first token's through the model's own pooling layer. Default model, which is mean where "
     "they say nothing"},
    {"normalize", 0, OPTION_FLAG, &unit_length, "", 0, 0,
     "vectors of length 1; also where the model's files ask for them"},
    {"no-normalize", 0, OPTION_FLAG, &any_length, "", 0, 0,
     "vectors as long as they come, whatever the files say"},
    {0}};

/* All texts of the command, read. */
typedef struct texts {
  int64_t n, width, tokens; /* tokens: of all together */
  const char **text;        /* NULL with --ids */
  size_t *bytes;
  att_encoding **encoding; /* NULL with --ids */
  att_text *ids;
  float *vectors, *cosines; /* [n,width], [n,n] */
} texts;

/* Each operand is a text; of a file, each line. */
static void collect(texts *t, int n, char **operands) {
  t->text = memory_get((size_t)(n > 0 ? n : 1), sizeof *t->text);
  t->bytes = memory_get((size_t)(n > 0 ? n : 1), sizeof *t->bytes);
  for (; t->n < n; t->n++) {
    t->text[t->n] = operands[t->n];
    t->bytes[t->n] = strlen(operands[t->n]);
  }
}

static void collect_lines(texts *t) {
  const char *at = what.prompt, *end = at + what.prompt_bytes;
  int64_t lines = 1;
  for (const char *c = at; c < end; c++) lines += *c == '\n';
  t->text = memory_get((size_t)lines, sizeof *t->text);
  t->bytes = memory_get((size_t)lines, sizeof *t->bytes);
  for (; t->n < lines; t->n++) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    t->text[t->n] = at;
    t->bytes[t->n] = (size_t)((newline ? newline : end) - at);
    at = newline ? newline + 1 : end;
  }
}

static int tokenize(texts *t, const cli *c) {
  t->encoding = memory_get((size_t)t->n, sizeof *t->encoding);
  t->ids = memory_get((size_t)t->n, sizeof *t->ids);
  if (!what.tokenizer)
    return cli_fail(c, "%s has no tokenizer: give one with -z, or tokens with --ids",
                    att_model_describe(what.model)->name);
  for (int64_t i = 0; i < t->n; i++) {
    if (att_encode(&t->encoding[i], what.tokenizer, t->text[i], t->bytes[i], NULL) != ATT_OK)
      return cli_fail_status(c);
    t->ids[i] = (att_text){.tokens = t->encoding[i]->ids, .n = t->encoding[i]->n};
    t->tokens += t->ids[i].n;
    if (!t->ids[i].n) return cli_fail(c, "text %lld has no tokens", (long long)i);
  }
  return CLI_OK;
}

static int read_texts(texts *t, const cli *c, int n, char **operands) {
  if ((what.given_ids.n > 0) + (what.file_path != NULL) + (n > 0) > 1)
    return cli_usage(c, "TEXT, --ids and --file exclude each other");
  if (what.given_ids.n > 0) {
    t->n = 1;
    t->tokens = what.given_ids.n;
    t->ids = memory_get(1, sizeof *t->ids);
    *t->ids = (att_text){.tokens = what.given_ids.ids, .n = what.given_ids.n};
    return CLI_OK;
  }
  if (!what.file_path && n == 0)
    return cli_usage(c, "needs a TEXT, --ids or --file (attend help embed)");
  int code = subject_read_text(&what, c, 0, operands);
  if (code != CLI_OK) return code;
  if (what.file_path)
    collect_lines(t);
  else
    collect(t, n, operands);
  return tokenize(t, c);
}

/* Cosines are products of vectors that the root mean square norm has made equally
 * long; the same, scaled, are the unit vectors. */
static att_status compare(texts *t) {
  att_runtime *runtime = what.runtime;
  float *equal = memory_get((size_t)(t->n * t->width), sizeof *equal);
  t->cosines = memory_get((size_t)(t->n * t->n), sizeof *t->cosines);
  att_status status = engine_norm(runtime, equal, t->vectors, t->n, t->width);
  double factor = 1 / (double)t->width;
  if (status == ATT_OK)
    status = engine_scores(runtime, t->cosines, equal, equal, t->n, t->n, t->width, factor);
  if (status == ATT_OK && unit_length)
    status = engine_scale(runtime, t->vectors, equal, t->n * t->width, sqrt(factor));
  free(equal);
  return status;
}

static int check_model(const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  if (info->kind != ATT_MODEL_DECODER) return CLI_OK;
  return cli_fail(c, "%s reads from left to right; embed needs an encoder such as BERT (-m)",
                  info->name);
}

/* What the command line leaves to the model. */
static int settle(const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  if (unit_length && any_length)
    return cli_usage(c, "--normalize and --no-normalize exclude each other");
  if (info->unit_length && !any_length) unit_length = true;
  pooling = chosen != AS_THE_MODEL ? chosen - 1 : info->pooling;
  if (pooling == ATT_POOL_NOT_SAID) pooling = ATT_POOL_MEAN;
  if (pooling != ATT_POOL_OTHER) return CLI_OK;
  return cli_fail(c, "%s asks for a pooling that attend has not; choose one with --pool",
                  info->name);
}

/* Tokens of the longest text; one too long for the model is refused when it is read. */
static int64_t longest(const texts *t, int64_t most) {
  int64_t n = 1;
  for (int64_t i = 0; i < t->n; i++)
    if (t->ids[i].n > n) n = t->ids[i].n;
  return n < most ? n : most;
}

static int evaluate(texts *t, const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  bool together = info->kind == ATT_MODEL_ENCODER; /* a decoder looks at one text */
  att_session_options room;
  att_session_options_init(&room);
  room.encoder_tokens = t->tokens;
  room.context = longest(t, info->context);
  t->width = info->width;
  t->vectors = memory_get((size_t)(t->n * t->width), sizeof *t->vectors);
  att_session *session = NULL;
  att_status status = att_session_create(&session, what.model, &room);
  for (int64_t i = 0, step; status == ATT_OK && i < t->n; i += step) {
    step = together ? t->n : 1;
    att_view out = att_view_of(t->vectors + i * t->width, ATT_F32, 2, (int64_t[]){step, t->width});
    status = att_session_encode(session, t->ids + i, step);
    if (status == ATT_OK) status = att_session_pool(session, out, (att_pooling)pooling);
  }
  if (status == ATT_OK) status = compare(t);
  att_session_free(session);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

static const char *pooling_name(void) {
  static const char *const names[] = {"cls", "mean", "head"};
  return names[pooling];
}

static void print_json(const texts *t) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(what.model)->name);
  json_string(&j, "class", att_runtime_class(what.runtime));
  json_string(&j, "pool", pooling_name());
  json_bool(&j, "normalized", unit_length);
  json_open(&j, "texts", '[');
  for (int64_t i = 0; i < t->n; i++) {
    json_open(&j, NULL, '{');
    if (t->text)
      json_bytes(&j, "text", t->text[i], t->bytes[i]);
    else
      json_null(&j, "text");
    json_ints(&j, "tokens", t->ids[i].tokens, t->ids[i].n);
    json_view(&j, "vector", att_view_of(t->vectors + i * t->width, ATT_F32, 1, &t->width));
    json_close(&j);
  }
  json_close(&j);
  json_view(&j, "cosine", att_view_of(t->cosines, ATT_F32, 2, (int64_t[]){t->n, t->n}));
  json_close(&j);
  json_end(&j);
}

static label text_label(const texts *all, const term *t, int64_t i) {
  if (all->text) return label_of(t, all->text[i], all->bytes[i], LABEL_ROOM);
  return label_name(t, "(ids)", LABEL_ROOM);
}

static void print_vectors(const texts *all, const term *t) {
  const number_format f = number_fit(all->vectors, all->n * all->width, 4);
  const int64_t room = t->width < NARROW ? 2 : SHOWN_NUMBERS;
  const int64_t shown = all->width < room ? all->width : room;
  char layout[SHOWN_NUMBERS + 5] = "rlr";
  for (int64_t k = 0; k <= shown; k++) strcat(layout, "r");
  table *rows = table_new(t, layout);
  table_head(rows, "");
  table_head(rows, "text");
  table_head(rows, "tokens");
  for (int64_t k = 0; k < shown; k++) table_head(rows, k ? "" : "vector");
  table_head(rows, "");
  for (int64_t i = 0; i < all->n; i++) {
    const label name = text_label(all, t, i);
    table_put(rows, INK_FAINT, "%lld", (long long)i);
    table_label(rows, INK_OFF, &name);
    table_put(rows, INK_OFF, "%lld", (long long)all->ids[i].n);
    for (int64_t k = 0; k < shown; k++)
      table_number(rows, INK_OFF, f, all->vectors[i * all->width + k]);
    table_put(rows, INK_FAINT, "%s", shown < all->width ? "…" : "");
  }
  table_print(rows, 0);
}

/* As many columns as the table and the terminal have room for. */
static void print_cosines(const texts *all, const term *t) {
  char layout[MOST_COLUMNS + 2] = "r", number[24];
  const int64_t room = (t->width - 6) / 8 < MOST_COLUMNS ? (t->width - 6) / 8 : MOST_COLUMNS;
  const int64_t columns = all->n < room ? all->n : room;
  const int64_t lines = all->n < MOST_ROWS ? all->n : MOST_ROWS;
  for (int64_t j = 0; j < columns; j++) strcat(layout, "r");
  putchar('\n');
  text_say(t, INK_STRONG, 0, "cosine of each two");
  table *rows = table_new(t, layout);
  table_head(rows, "");
  for (int64_t j = 0; j < columns; j++) {
    snprintf(number, sizeof number, "%lld", (long long)j);
    table_head(rows, number);
  }
  for (int64_t i = 0; i < lines; i++) {
    table_put(rows, INK_FAINT, "%lld", (long long)i);
    for (int64_t j = 0; j < columns; j++)
      table_number(rows, INK_OFF, (number_format){3, 6}, all->cosines[i * all->n + j]);
  }
  table_print(rows, 0);
  if (columns < all->n)
    text_say(t, INK_FAINT, 0, "%lld × %lld of %lld × %lld; --json has all", (long long)lines,
             (long long)columns, (long long)all->n, (long long)all->n);
}

static void print_text(const texts *t, const cli *c) {
  static const char *const ways[] = {"the first token's vector", "the mean of the tokens' vectors",
                                     "the model's pooling of the first token's vector"};
  text_say(&c->term, INK_STRONG, 0, "%lld text%s, %lld numbers each: %s%s", (long long)t->n,
           t->n == 1 ? "" : "s", (long long)t->width, ways[pooling],
           unit_length ? ", made 1 long" : "");
  print_vectors(t, &c->term);
  if (t->n > 1) print_cosines(t, &c->term);
}

static void free_texts(texts *t) {
  for (int64_t i = 0; t->encoding && i < t->n; i++) att_encoding_free(t->encoding[i]);
  free(t->encoding);
  free(t->ids);
  free(t->text);
  free(t->bytes);
  free(t->vectors);
  free(t->cosines);
}

static int run(const cli *c, int n, char **operands) {
  texts t = {0};
  int code = subject_open_model(&what, c);
  if (code == CLI_OK) code = check_model(c);
  if (code == CLI_OK) code = settle(c);
  if (code == CLI_OK) code = read_texts(&t, c, n, operands);
  if (code == CLI_OK) code = evaluate(&t, c);
  if (code == CLI_OK && c->json) print_json(&t);
  if (code == CLI_OK && !c->json) print_text(&t, c);
  free_texts(&t);
  subject_close(&what);
  return code;
}

const command cmd_embed = {
    .operands = "TEXT…",
    .least = 0,
    .most = INT_MAX,
    .about = "Makes one vector of each TEXT with an encoder (BERT, RoBERTa, DistilBERT, the "
             "encoder of T5), and shows how near they are to each other: the cosine of the angle "
             "between two, 1 for the same direction.\n\n"
             "Texts are read together, but never padded: what stands beside a text changes no bit "
             "of its vector. With --file each line is a text. --json prints all numbers.",
    .options = options,
    .run = run,
};
