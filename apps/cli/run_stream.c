/* run_stream.c — takes what a generation hands out: shows it, keeps it, prints it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/score.h"
#include "memory.h"
#include "run.h"
#include "table.h"

volatile sig_atomic_t run_interrupted;

void run_interrupt(int number) {
  run_interrupted = 1;
  signal(number, SIG_DFL);
}

void stream_put(stream *s, const char *text, size_t bytes) {
  if (bytes == 0) return;
  if (s->bytes + bytes > s->room) {
    s->room = 2 * (s->bytes + bytes);
    s->text = memory_resize(s->text, s->room, 1);
  }
  memcpy(s->text + s->bytes, text, bytes);
  s->bytes += bytes;
  if (!s->show) return;
  if (s->c->term.tty)
    text_print(stdout, &s->c->term, text, bytes);
  else
    fwrite(text, 1, bytes, stdout);
  fflush(stdout);
}

/* Without a tokenizer the ids stand for themselves. */
static void put_id(stream *s, int32_t id) {
  char number[24];
  int n = snprintf(number, sizeof number, "%s%d", s->bytes ? " " : "", (int)id);
  stream_put(s, number, (size_t)n);
}

att_status stream_put_prompt(stream *s, const int32_t *ids, int64_t n) {
  att_decoder *decoder = NULL;
  att_status status = ATT_OK;
  const char *text;
  size_t bytes;
  if (s->what->tokenizer) status = att_decoder_create(&decoder, s->what->tokenizer, NULL);
  for (int64_t i = 0; i < n && status == ATT_OK; i++) {
    if (!decoder) {
      put_id(s, ids[i]);
      continue;
    }
    status = att_decoder_push(&text, &bytes, decoder, ids[i]);
    if (status == ATT_OK) stream_put(s, text, bytes);
  }
  att_decoder_free(decoder);
  return status;
}

/* The logits that the token was chosen from are still there. */
static void keep_alternatives(stream *s, int32_t id) {
  const int64_t at = s->n_new - 1, room = s->ids_room;
  const att_view logits = att_session_logits(s->session);
  s->logs = memory_resize(s->logs, (size_t)room, sizeof *s->logs);
  s->top_ids = memory_resize(s->top_ids, (size_t)(room * s->k), sizeof *s->top_ids);
  s->top_logs = memory_resize(s->top_logs, (size_t)(room * s->k), sizeof *s->top_logs);
  if (att_log_probability(s->logs + at, s->what->runtime, logits, id) != ATT_OK ||
      att_likeliest(s->top_ids + at * s->k, s->top_logs + at * s->k, s->k, s->what->runtime,
                    logits) != ATT_OK)
    s->failed = true;
}

static bool on_token(int32_t id, void *payload) {
  stream *s = payload;
  if (s->n_new == s->ids_room) {
    s->ids_room = 2 * s->ids_room + 64;
    s->new_ids = memory_resize(s->new_ids, (size_t)s->ids_room, sizeof *s->new_ids);
  }
  s->new_ids[s->n_new++] = id;
  if (s->k > 0) keep_alternatives(s, id);
  if (!s->what->tokenizer) put_id(s, id);
  return !run_interrupted && !s->failed && !ferror(stdout);
}

static bool on_text(const char *text, size_t bytes, void *payload) {
  stream_put(payload, text, bytes);
  return true; /* on_token is asked too */
}

static bool on_read(double done, void *payload) {
  stream *s = payload;
  if (s->reading) progress_show(done, s->reading);
  if (done < 1) return !run_interrupted;
  if (s->reading) progress_end(s->reading);
  if (s->prompt && stream_put_prompt(s, s->prompt, s->n_prompt) != ATT_OK) s->failed = true;
  return !s->failed; /* what was asked for begins: it ends as any text does */
}

att_generate_options stream_options(stream *s, const run_settings *r) {
  att_generate_options how;
  att_generate_options_init(&how);
  how.max_new = r->most_new;
  how.stop = r->stops.texts;
  how.n_stop = r->stops.n;
  how.on_token = on_token;
  how.on_text = s->what->tokenizer ? on_text : NULL;
  how.on_read = on_read;
  how.payload = s;
  return how;
}

void stream_clear(stream *s) {
  s->bytes = 0;
  s->n_new = 0;
}

void stream_free(stream *s) {
  free(s->text);
  free(s->new_ids);
  free(s->logs);
  free(s->top_ids);
  free(s->top_logs);
}

/* ---- printing ---- */

const char *run_finish_name(const att_generate_result *result) {
  return run_interrupted ? "interrupted" : att_finish_name(result->finish);
}

double run_per_second(int64_t n, double seconds) { return seconds > 0 ? (double)n / seconds : 0; }

static void json_token(json *j, const stream *s, int32_t id, double log) {
  subject_json_token(j, s->what, id);
  json_double(j, "logprob", log);
}

static void json_alternatives(json *j, const stream *s) {
  json_open(j, "logprobs", '[');
  for (int64_t i = 0; i < s->n_new; i++) {
    json_open(j, NULL, '{');
    json_token(j, s, s->new_ids[i], s->logs[i]);
    json_open(j, "top", '[');
    for (int64_t a = 0; a < s->k; a++) {
      json_open(j, NULL, '{');
      json_token(j, s, s->top_ids[i * s->k + a], s->top_logs[i * s->k + a]);
      json_close(j);
    }
    json_close(j);
    json_close(j);
  }
  json_close(j);
}

void stream_json(json *j, const stream *s, const int32_t *prompt, int64_t n,
                 const att_generate_result *result) {
  json_ints(j, "prompt_tokens", prompt, n);
  json_ints(j, "tokens", s->new_ids, s->n_new);
  if (s->what->tokenizer)
    json_bytes(j, "text", s->text ? s->text : "", s->bytes);
  else
    json_null(j, "text");
  json_string(j, "finish", run_finish_name(result));
  if (s->k > 0) json_alternatives(j, s);
}

void stream_print_alternatives(const stream *s) {
  char layout[64] = "lr";
  const int64_t shown = s->k < 20 ? s->k : 20;
  for (int64_t a = 0; a < shown; a++) strcat(layout, "lr");
  table *rows = table_new(&s->c->term, layout);
  table_head(rows, "token");
  table_head(rows, "log p");
  for (int64_t a = 0; a < shown; a++) {
    table_head(rows, a == 0 ? "likeliest" : "");
    table_head(rows, "");
  }
  for (int64_t i = 0; i < s->n_new; i++) {
    const label token = subject_label(s->what, &s->c->term, s->new_ids[i], 16);
    table_label(rows, INK_STRONG, &token);
    table_put(rows, INK_STRONG, "%.3f", s->logs[i]);
    for (int64_t a = 0; a < shown; a++) {
      const int64_t at = i * s->k + a;
      const label other = subject_label(s->what, &s->c->term, s->top_ids[at], 12);
      table_label(rows, INK_OFF, &other);
      table_put(rows, INK_FAINT, "%.3f", s->top_logs[at]);
    }
  }
  table_print(rows, 0);
}
