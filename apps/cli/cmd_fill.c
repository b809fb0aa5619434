/* cmd_fill.c — attend fill: what may stand in a text's gaps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/encoder.h"
#include "json_out.h"
#include "likely.h"
#include "memory.h"
#include "subject.h"
#include "table.h"

enum { MOST_CANDIDATES = 1000, LABEL_ROOM = 24 };

static subject what;
static int64_t most = 5, mask_id = -1;

static const option options[] = {
    SUBJECT_OPTIONS(what),
    {"top", 0, OPTION_INT, &most, "N", 1, MOST_CANDIDATES, "candidates for each gap; default 5"},
    {"mask-id", 0, OPTION_INT, &mask_id, "ID", 0, INT32_MAX,
     "the token that means a gap; default: [MASK] or <mask> of the tokenizer"},
    {0}};

/* The text's gaps and what may fill them. */
typedef struct gaps {
  int64_t n;
  int64_t *rows;   /* [n] their positions */
  likely *found;   /* [n,most] */
  int64_t n_found; /* for each gap */
} gaps;

/* The two spellings of a gap, of BERT's kind and of RoBERTa's. */
static const char *const spellings[] = {"[MASK]", "<mask>"};

/* The one that the tokenizer has as a special token, or -1. */
static int own_spelling(void) {
  for (int i = 0; i < 2; i++) {
    int32_t id = att_tokenizer_find(what.tokenizer, spellings[i], strlen(spellings[i]));
    if (id >= 0 && att_tokenizer_is_special(what.tokenizer, id)) {
      if (mask_id < 0) mask_id = id;
      return i;
    }
  }
  return -1;
}

/* The prompt with every gap in the model's own spelling; both are as long. */
static char *respelled(int own) {
  const char *from = spellings[1 - own], *to = spellings[own];
  const size_t length = strlen(to);
  char *text = memory_get(what.prompt_bytes + 1, 1);
  memcpy(text, what.prompt, what.prompt_bytes);
  for (size_t i = 0; i + length <= what.prompt_bytes; i++)
    if (!memcmp(text + i, from, length)) memcpy(text + i, to, length);
  return text;
}

static int read_text(const cli *c, int n, char **operands) {
  if ((what.given_ids.n > 0) + (what.file_path != NULL) + (n > 0) != 1)
    return cli_usage(c, "needs a TEXT with gaps, or --ids, or --file (attend help fill)");
  int own = what.tokenizer ? own_spelling() : -1;
  if (what.given_ids.n > 0) {
    what.ids = what.given_ids.ids;
    what.n = what.given_ids.n;
    return CLI_OK;
  }
  if (!what.tokenizer)
    return cli_fail(c, "%s has no tokenizer: give one with -z, or tokens with --ids",
                    att_model_describe(what.model)->name);
  if (own < 0 && mask_id < 0)
    return cli_fail(c, "the tokenizer has neither [MASK] nor <mask>: say with --mask-id what a "
                       "gap is");
  int code = subject_read_text(&what, c, n, operands);
  if (code != CLI_OK) return code;
  char *text = own < 0 ? NULL : respelled(own);
  const att_encode_options how = {.add_special = true, .parse_special = true};
  att_status status = att_encode(&what.encoding, what.tokenizer, text ? text : what.prompt,
                                 what.prompt_bytes, &how);
  free(text);
  if (status != ATT_OK) return cli_fail_status(c);
  what.ids = what.encoding->ids;
  what.n = what.encoding->n;
  return CLI_OK;
}

static int find_gaps(gaps *g, const cli *c) {
  if (mask_id < 0) return cli_fail(c, "say with --mask-id which token is a gap");
  g->rows = memory_get((size_t)what.n, sizeof *g->rows);
  for (int64_t i = 0; i < what.n; i++)
    if (what.ids[i] == mask_id) g->rows[g->n++] = i;
  if (g->n > 0) return CLI_OK;
  return cli_fail(c, "the text has no gap: write %s where one is",
                  what.given_ids.n > 0 ? "the id of --mask-id" : "[MASK]");
}

static att_status predict(gaps *g, att_session *session, int64_t vocab) {
  const att_text text = {.tokens = what.ids, .n = what.n};
  float *logits = memory_get((size_t)(g->n * vocab), sizeof *logits);
  att_status status = att_session_encode(session, &text, 1);
  if (status == ATT_OK)
    status = att_session_predict(session, att_view_of(logits, ATT_F32, 2, (int64_t[]){g->n, vocab}),
                                 g->rows, g->n);
  for (int64_t i = 0; status == ATT_OK && i < g->n; i++)
    status = likely_find(g->found + i * most, &g->n_found, most, what.runtime, logits + i * vocab,
                         vocab);
  free(logits);
  return status;
}

static int check_model(const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  if (info->fills_gaps) return CLI_OK;
  return cli_fail(c,
                  "%s does not fill gaps; that needs an encoder with a masked-language-model "
                  "head, such as BERT (-m)",
                  info->name);
}

static int evaluate(gaps *g, const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  g->found = memory_get((size_t)(g->n * most), sizeof *g->found);
  att_session_options room;
  att_session_options_init(&room);
  room.encoder_tokens = what.n;
  att_session *session = NULL;
  att_status status = att_session_create(&session, what.model, &room);
  if (status == ATT_OK) status = predict(g, session, info->vocab);
  att_session_free(session);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

static void json_token(json *j, int32_t id) {
  const char *bytes;
  size_t n;
  if (what.tokenizer && att_tokenizer_piece(&bytes, &n, what.tokenizer, id) == ATT_OK)
    json_bytes(j, "token", bytes, n);
  else
    json_null(j, "token");
}

static void print_json(const gaps *g) {
  json j = subject_json(&what);
  json_open(&j, "gaps", '[');
  for (int64_t i = 0; i < g->n; i++) {
    json_open(&j, NULL, '{');
    json_int(&j, "position", g->rows[i]);
    json_open(&j, "candidates", '[');
    for (int64_t k = 0; k < g->n_found; k++) {
      const likely *candidate = &g->found[i * most + k];
      json_open(&j, NULL, '{');
      json_int(&j, "id", candidate->id);
      json_token(&j, candidate->id);
      json_float(&j, "probability", candidate->probability);
      json_close(&j);
    }
    json_close(&j);
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void print_gap(const gaps *g, const term *t, int64_t i) {
  const float best = g->found[i * most].probability;
  text_say(t, INK_STRONG, 0, "gap at position %lld", (long long)g->rows[i]);
  table *rows = table_new(t, "lrrb");
  table_head(rows, "token");
  table_head(rows, "id");
  table_head(rows, "probability");
  table_head(rows, "");
  for (int64_t k = 0; k < g->n_found; k++) {
    const likely *candidate = &g->found[i * most + k];
    const label name = subject_label(&what, t, candidate->id, LABEL_ROOM);
    table_label(rows, INK_OFF, &name);
    table_put(rows, INK_FAINT, "%d", (int)candidate->id);
    table_number(rows, INK_OFF, (number_format){4, 6}, candidate->probability);
    table_bar(rows, best > 0 ? (double)candidate->probability / (double)best : 0);
  }
  table_print(rows, 2);
}

static void print_text(const gaps *g, const cli *c) {
  for (int64_t i = 0; i < g->n; i++) {
    if (i > 0) putchar('\n');
    print_gap(g, &c->term, i);
  }
  if (g->n > 1)
    text_say(&c->term, INK_FAINT, 0, "each gap by itself: the others are gaps for it too");
}

static int run(const cli *c, int n, char **operands) {
  gaps g = {0};
  int code = subject_open_model(&what, c);
  if (code == CLI_OK) code = check_model(c);
  if (code == CLI_OK) code = read_text(c, n, operands);
  if (code == CLI_OK) code = find_gaps(&g, c);
  if (code == CLI_OK) code = evaluate(&g, c);
  if (code == CLI_OK && c->json) print_json(&g);
  if (code == CLI_OK && !c->json) print_text(&g, c);
  free(g.rows);
  free(g.found);
  subject_close(&what);
  return code;
}

const command cmd_fill = {
    .operands = "TEXT",
    .least = 0,
    .most = 1,
    .about = "Shows what an encoder (BERT, RoBERTa, DistilBERT) holds likely in the gaps of TEXT, "
             "with probabilities. A gap is written [MASK] or <mask>, whatever the model itself "
             "calls it: attend fill \"Paris is the [MASK] of France.\" -m bert-base-uncased",
    .options = options,
    .run = run,
};
