/* eval_halves.c — see the header.
 *
 * A line's tokens are cut in the middle; of an odd number the second half has one more.
 * Without BOS nothing predicts the first token, so it counts in neither. Lines are read
 * alone, and losses are means over all tokens of all lines that were predicted.
 */
#include "eval_halves.h"

#include <stdlib.h>
#include <string.h>

#include "attend/score.h"
#include "attend/status.h"
#include "json_out.h"
#include "memory.h"
#include "progress.h"
#include "table.h"

typedef struct half {
  double nats;
  int64_t tokens;
} half;

typedef struct halves {
  half part[2];
  int64_t line; /* its number in the file */
  const char *text;
} halves;

static double loss(const half *h) { return h->tokens > 0 ? h->nats / (double)h->tokens : 0; }

/* What the second half costs of the first. */
static double ratio(const halves *h) {
  const double first = loss(&h->part[0]);
  return first > 0 ? loss(&h->part[1]) / first : 0;
}

/* ---- reading ---- */

/* logs[0 … n-1] of ids, the first being NaN where nothing predicts it. */
static att_status score(double *logs, att_session *session, const int32_t *ids, int64_t n,
                        int32_t bos) {
  const int64_t read = bos >= 0 ? 0 : 1;
  att_status status = att_session_truncate(session, 0);
  if (status == ATT_OK) status = att_session_eval(session, bos >= 0 ? &bos : ids, 1);
  return status == ATT_OK ? att_session_score(logs + read, session, ids + read, n - read) : status;
}

static int measure(halves *h, const cli *c, const subject *s, att_session *session, double *logs,
                   int32_t bos) {
  const att_encode_options plain = {.add_special = false};
  const int64_t least = bos >= 0 ? 2 : 3, most = att_session_context(session) - (bos >= 0);
  att_encoding *e;
  if (att_encode(&e, s->tokenizer, h->text, strlen(h->text), &plain) != ATT_OK)
    return cli_fail_status(c);
  int code = CLI_OK;
  if (e->n < least)
    code = cli_fail(c, "line %lld: too short to be cut into halves", (long long)h->line);
  else if (e->n > most)
    code = cli_fail(c, "line %lld is longer than the model's context", (long long)h->line);
  else if (score(logs, session, e->ids, e->n, bos) != ATT_OK)
    code = cli_fail_status(c);
  for (int64_t i = bos >= 0 ? 0 : 1; i < e->n && code == CLI_OK; i++) {
    half *part = &h->part[i >= e->n / 2];
    part->nats -= logs[i];
    part->tokens++;
  }
  att_encoding_free(e);
  return code;
}

/* BOS if the tokenizer puts it in front of its own, else -1. */
static int32_t begins_with(const subject *s) {
  att_encoding *e;
  const int32_t bos = att_tokenizer_bos(s->tokenizer);
  if (bos < 0 || att_encode(&e, s->tokenizer, "", 0, NULL) != ATT_OK) return -1;
  const bool begins = e->n > 0 && e->ids[0] == bos;
  att_encoding_free(e);
  return begins ? bos : -1;
}

/* ---- showing ---- */

static void json_halves(json *j, const halves *h) {
  static const char *const names[] = {"first", "second"};
  for (int i = 0; i < 2; i++) {
    json_open(j, names[i], '{');
    json_int(j, "tokens", h->part[i].tokens);
    json_double(j, "nats", h->part[i].nats);
    json_double(j, "loss", loss(&h->part[i]));
    json_close(j);
  }
  json_double(j, "ratio", ratio(h));
}

static void print_json(const subject *s, const edit_set *edits, const halves *total,
                       const halves *lines, int64_t n, bool each) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(s->model)->name);
  json_string(&j, "class", att_runtime_class(s->runtime));
  edit_json(&j, edits);
  json_int(&j, "lines", n);
  json_halves(&j, total);
  if (each) json_open(&j, "each", '[');
  for (int64_t i = 0; each && i < n; i++) {
    json_open(&j, NULL, '{');
    json_int(&j, "line", lines[i].line);
    json_halves(&j, &lines[i]);
    json_close(&j);
  }
  if (each) json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void put_row(table *rows, ink color, const halves *h) {
  table_put(rows, INK_OFF, "%.4f", loss(&h->part[0]));
  table_put(rows, color, "%.4f", loss(&h->part[1]));
  table_put(rows, color, "%.1f %%", 100 * ratio(h));
}

static void print_text(const cli *c, const edit_set *edits, const halves *total,
                       const halves *lines, int64_t n, bool each) {
  edit_say(&c->term, edits);
  table *rows = table_new(&c->term, "rrrl");
  const char *const heads[] = {"first half", "second half", "of the first", "line"};
  for (int i = 0; i < 4; i++) table_head(rows, heads[i]);
  for (int64_t i = 0; each && i < n; i++) {
    const label text = label_name(&c->term, lines[i].text, 40);
    put_row(rows, INK_OFF, &lines[i]);
    table_put(rows, INK_FAINT, "%lld: %s", (long long)lines[i].line, text.text);
  }
  put_row(rows, INK_STRONG, total);
  table_put(rows, INK_OFF, "all %lld", (long long)n);
  table_print(rows, 0);
  cli_note(c, "losses in nats per token; %lld and %lld tokens predicted",
           (long long)total->part[0].tokens, (long long)total->part[1].tokens);
}

/* ---- all ---- */

/* Lines that are not empty, to be freed; their texts point into `text`. */
static halves *cut(int64_t *count, char *text, size_t n) {
  halves *lines = NULL;
  int64_t room = 0, number = 0;
  *count = 0;
  for (char *line = text, *end; line < text + n; line = end + 1) {
    end = strchr(line, '\n');
    if (!end) end = text + n;
    number++;
    if (end > line && end[-1] == '\r') end[-1] = 0;
    *end = 0;
    if (!line[0]) continue;
    if (*count == room) lines = memory_resize(lines, (size_t)(room = 2 * room + 64), sizeof *lines);
    lines[(*count)++] = (halves){.line = number, .text = line};
  }
  return lines;
}

int eval_halves(const cli *c, const subject *s, att_session *session, const edit_set *edits,
                char *text, size_t n, bool each) {
  if (memchr(text, 0, n)) return cli_fail(c, "the file has a zero byte: it is no text");
  int64_t count;
  halves total = {0}, *lines = cut(&count, text, n);
  if (count == 0) return cli_fail(c, "the file has no lines");
  double *logs = memory_get((size_t)att_session_context(session), sizeof *logs);
  const int32_t bos = begins_with(s);
  progress bar = progress_begin(c, "reading");
  int code = CLI_OK;
  for (int64_t i = 0; i < count && code == CLI_OK; i++) {
    code = measure(&lines[i], c, s, session, logs, bos);
    for (int k = 0; k < 2; k++) {
      total.part[k].nats += lines[i].part[k].nats;
      total.part[k].tokens += lines[i].part[k].tokens;
    }
    progress_show((double)(i + 1) / (double)count, &bar);
  }
  progress_end(&bar);
  if (code == CLI_OK && c->json) print_json(s, edits, &total, lines, count, each);
  if (code == CLI_OK && !c->json) print_text(c, edits, &total, lines, count, each);
  free(logs);
  free(lines);
  return code;
}
