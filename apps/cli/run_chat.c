/* run_chat.c — attend run --chat: one answer, or a conversation.
 *
 * Each turn spells the whole conversation anew and keeps of the session what is
 * still the same, so nothing is read twice. Only the answer is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "line_edit.h"
#include "memory.h"
#include "run.h"

enum { USUAL_CONTEXT = 8192 };

typedef struct conversation {
  const cli *c;
  run_settings *r;
  att_session *session;
  att_sampler *sampler;
  att_chat_message *messages; /* their texts are owned */
  int64_t n, room;
  stream answer;
  int64_t kept, read; /* tokens of the last turn that were there, and new ones */
} conversation;

static void add(conversation *k, const char *role, const char *text, size_t bytes) {
  if (k->n == k->room) {
    k->room = 2 * k->room + 8;
    k->messages = memory_resize(k->messages, (size_t)k->room, sizeof *k->messages);
  }
  char *copy = memory_get(bytes + 1, 1);
  memcpy(copy, text, bytes);
  k->messages[k->n++] = (att_chat_message){role, copy, bytes};
}

static void drop(conversation *k, int64_t n) {
  while (k->n > n) free((char *)(uintptr_t)k->messages[--k->n].text);
}

static void begin(conversation *k) {
  drop(k, 0);
  if (k->r->system) add(k, "system", k->r->system, strlen(k->r->system));
}

/* Reads the conversation and lets the model answer; the answer is in k->answer. */
static att_status answer(conversation *k, const att_chat_prompt *prompt, const att_encoding *e,
                         att_generate_result *result) {
  stream *s = &k->answer;
  progress bar = progress_begin(k->c, "reading");
  const int32_t end = att_chat_end(prompt);
  stream_clear(s);
  s->reading = &bar;
  att_generate_options how = stream_options(s, k->r);
  how.ends = &end;
  how.n_ends = end >= 0 ? 1 : 0;
  run_interrupted = 0;
  att_status status = att_session_keep_common(&k->kept, k->session, e->ids, e->n);
  k->read = e->n - k->kept;
  signal(SIGINT, run_interrupt);
  if (status == ATT_OK)
    status = att_generate(result, k->session, k->sampler, e->ids + k->kept, k->read, &how);
  signal(SIGINT, SIG_DFL);
  progress_end(&bar);
  s->reading = NULL;
  return status;
}

static void print_json(const conversation *k, const att_encoding *e,
                       const att_generate_result *result) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(k->r->what.model)->name);
  json_string(&j, "class", att_runtime_class(k->r->what.runtime));
  stream_json(&j, &k->answer, e->ids, e->n, result);
  json_int(&j, "kept_tokens", k->kept);
  json_double(&j, "prefill_tps", run_per_second(k->read, result->prefill_seconds));
  json_double(&j, "decode_tps", run_per_second(result->n_new, result->decode_seconds));
  json_close(&j);
  json_end(&j);
}

static void report(const conversation *k, const att_encoding *e,
                   const att_generate_result *result) {
  const stream *s = &k->answer;
  if (k->c->json)
    print_json(k, e, result);
  else if (s->bytes == 0 || s->text[s->bytes - 1] != '\n')
    putchar('\n');
  fflush(stdout);
  if (run_interrupted || result->finish != ATT_FINISH_END)
    cli_note(k->c, "(%s after %lld tokens)", run_finish_name(result), (long long)result->n_new);
}

/* One message of the user and what the model says. A turn that fails leaves the
 * conversation as it was. */
static int turn(conversation *k, const char *text, size_t bytes) {
  att_chat_prompt *prompt = NULL;
  att_encoding *e = NULL;
  att_generate_result result = {0};
  const int64_t before = k->n;
  add(k, "user", text, bytes);
  att_status status =
      att_chat_write(&prompt, k->r->what.tokenizer, k->r->format, k->messages, k->n);
  if (status == ATT_OK) status = att_chat_encode(&e, prompt);
  if (status == ATT_OK) status = answer(k, prompt, e, &result);
  const bool cancelled = status == ATT_CANCELLED && run_interrupted;
  int code = status == ATT_OK && !k->answer.failed ? CLI_OK
             : cancelled                           ? CLI_INTERRUPTED
                                                   : cli_fail_status(k->c);
  if (code == CLI_OK) {
    report(k, e, &result);
    add(k, "assistant", k->answer.text ? k->answer.text : "", k->answer.bytes);
  } else {
    drop(k, before);
  }
  att_encoding_free(e);
  att_chat_prompt_free(prompt);
  return code;
}

/* Messages, one a line, until the end of the input. */
static int converse(conversation *k) {
  line_editor *editor = line_editor_open(&k->c->term);
  int code = CLI_OK;
  if (k->c->term.asks && k->c->term.tty)
    cli_note(k->c, "a message a line; Ctrl-C ends an answer, Ctrl-D the conversation, /clear "
                   "begins anew");
  for (const char *line; (line = line_editor_read(editor, "> ")) != NULL;) {
    if (line[0] == 0) continue;
    if (strcmp(line, "/clear") == 0) {
      begin(k);
      continue;
    }
    code = turn(k, line, strlen(line));
    /* At a terminal there is always another try. */
    if (code != CLI_OK && !k->c->term.asks) break;
    code = CLI_OK;
  }
  line_editor_close(editor);
  return code;
}

int run_chat(const cli *c, run_settings *r) {
  conversation k = {.c = c, .r = r};
  const att_model_info *info = att_model_describe(r->what.model);
  const att_session_options room = run_session_options(r, USUAL_CONTEXT);
  if (!r->what.tokenizer) return cli_fail(c, "%s has no tokenizer: give one with -z", info->name);
  k.answer = (stream){.c = c, .what = &r->what, .show = !c->json};
  int code =
      att_session_create(&k.session, r->what.model, &room) == ATT_OK &&
              att_sampler_create(&k.sampler, r->what.runtime, &r->sampling, info->vocab) == ATT_OK
          ? CLI_OK
          : cli_fail_status(c);
  k.answer.session = k.session;
  begin(&k);
  if (code == CLI_OK)
    code = r->what.prompt ? turn(&k, r->what.prompt, r->what.prompt_bytes) : converse(&k);
  drop(&k, 0);
  free(k.messages);
  stream_free(&k.answer);
  att_sampler_free(k.sampler);
  att_session_free(k.session);
  if (code == CLI_OK && r->what.prompt && run_interrupted) return CLI_INTERRUPTED;
  return code;
}
