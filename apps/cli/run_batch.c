/* run_batch.c — attend run --batch and --copies: several texts at once.
 *
 * What all prompts begin with is read once, in the first session, and copied to
 * the others. Then all go on together, a token each at a time. Every text is the one
 * that it would be alone. Texts are printed when all are done, in their order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "memory.h"
#include "run.h"

enum { MOST_PROMPTS = 4096 };

typedef struct text {
  const int32_t *ids; /* of the prompt */
  int64_t n;
  att_encoding *encoding; /* owner of the ids, or NULL */
  uint64_t seed;
  stream stream;
  att_generate_options how;
} text;

typedef struct batch {
  const cli *c;
  run_settings *r;
  text *texts;            /* [n] */
  att_generate_job *jobs; /* [n] */
  int64_t n, shared;      /* tokens that all prompts begin with */
  double read_seconds;
} batch;

/* ---- prompts ---- */

/* Each prompt as often as --copies says, with the seeds of the copies. */
static int add(batch *b, const int32_t *ids, int64_t n, att_encoding *encoding) {
  for (int64_t copy = 0; copy < b->r->copies; copy++) {
    if (b->n == MOST_PROMPTS) return cli_fail(b->c, "more than %d texts at once", MOST_PROMPTS);
    text *t = &b->texts[b->n++];
    *t = (text){.ids = ids, .n = n, .seed = b->r->sampling.seed + (uint64_t)copy};
    t->encoding = copy == 0 ? encoding : NULL;
  }
  return CLI_OK;
}

static int add_line(batch *b, const char *line, size_t n, int64_t number) {
  att_encoding *e = NULL;
  if (att_encode(&e, b->r->what.tokenizer, line, n, NULL) != ATT_OK) return cli_fail_status(b->c);
  if (e->n == 0) {
    att_encoding_free(e);
    return cli_fail(b->c, "line %lld has no tokens and this model adds none", (long long)number);
  }
  return add(b, e->ids, e->n, e);
}

static int add_lines(batch *b) {
  subject *what = &b->r->what;
  int64_t number = 0;
  if (!what->tokenizer)
    return cli_fail(b->c, "%s has no tokenizer: give one with -z",
                    att_model_describe(what->model)->name);
  what->file_path = b->r->batch_path;
  int code = subject_read_text(what, b->c, 0, NULL);
  const char *line = what->prompt, *last = line ? line + what->prompt_bytes : NULL;
  while (code == CLI_OK && line <= last) {
    const char *end = memchr(line, '\n', (size_t)(last - line));
    if (!end) end = last;
    code = add_line(b, line, (size_t)(end - line), ++number);
    line = end + 1;
  }
  return code;
}

/* At least one token stays for every text to read of its own. */
static int64_t common_beginning(const batch *b) {
  int64_t most = b->texts[0].n - 1;
  for (int64_t i = 1; i < b->n; i++) {
    const text *t = &b->texts[i];
    int64_t same = 0;
    if (t->n - 1 < most) most = t->n - 1;
    while (same < most && t->ids[same] == b->texts[0].ids[same]) same++;
    most = same;
  }
  return most;
}

/* ---- running ---- */

static att_status prepare(batch *b, int64_t i) {
  const run_settings *r = b->r;
  text *t = &b->texts[i];
  att_generate_job *job = &b->jobs[i];
  const att_session_options room = run_session_options(r, t->n + r->most_new);
  att_sampler_options sampling = r->sampling;
  sampling.seed = t->seed;
  att_status status = att_session_create(&job->session, r->what.model, &room);
  if (status == ATT_OK)
    status = att_sampler_create(&job->sampler, r->what.runtime, &sampling,
                                att_model_describe(r->what.model)->vocab);
  t->stream = (stream){.c = b->c, .what = &r->what, .session = job->session, .k = r->alternatives};
  t->how = stream_options(&t->stream, r);
  job->prompt = t->ids + b->shared;
  job->n = t->n - b->shared;
  job->options = &t->how;
  if (status == ATT_OK) status = stream_put_prompt(&t->stream, t->ids, t->n);
  return status;
}

static att_status go(batch *b) {
  att_status status = ATT_OK;
  b->shared = common_beginning(b);
  for (int64_t i = 0; i < b->n && status == ATT_OK; i++) status = prepare(b, i);
  if (status == ATT_OK && b->shared > 0)
    status = att_session_eval(b->jobs[0].session, b->texts[0].ids, b->shared);
  for (int64_t i = 1; i < b->n && status == ATT_OK && b->shared > 0; i++) {
    status = att_session_copy(b->jobs[i].session, b->jobs[0].session, b->shared);
    if (status != ATT_UNSUPPORTED) continue;
    /* Its context gives it other positions: it reads all of its prompt. */
    b->jobs[i].prompt = b->texts[i].ids;
    b->jobs[i].n = b->texts[i].n;
    status = ATT_OK;
  }
  if (status == ATT_OK) status = att_generate_batch(b->jobs, b->n);
  return status;
}

static int64_t total_new(const batch *b) {
  int64_t n = 0;
  for (int64_t i = 0; i < b->n; i++) n += b->jobs[i].result.n_new;
  return n;
}

static double decode_seconds(const batch *b) {
  double longest = 0;
  for (int64_t i = 0; i < b->n; i++)
    if (b->jobs[i].result.decode_seconds > longest) longest = b->jobs[i].result.decode_seconds;
  return longest;
}

static void print_json(const batch *b) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(b->r->what.model)->name);
  json_string(&j, "class", att_runtime_class(b->r->what.runtime));
  json_int(&j, "shared_tokens", b->shared);
  json_double(&j, "decode_tps", run_per_second(total_new(b), decode_seconds(b)));
  json_open(&j, "texts", '[');
  for (int64_t i = 0; i < b->n; i++) {
    json_open(&j, NULL, '{');
    json_uint(&j, "seed", b->texts[i].seed);
    stream_json(&j, &b->texts[i].stream, b->texts[i].ids, b->texts[i].n, &b->jobs[i].result);
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

/* A rule between texts, since texts may hold empty lines. */
static void print_texts(const batch *b) {
  const term *t = &b->c->term;
  for (int64_t i = 0; i < b->n; i++) {
    const stream *s = &b->texts[i].stream;
    text_say(t, INK_FAINT, 0, "── %lld ── seed %llu ──", (long long)i,
             (unsigned long long)b->texts[i].seed);
    if (t->tty)
      text_print(stdout, t, s->text ? s->text : "", s->bytes);
    else
      fwrite(s->text ? s->text : "", 1, s->bytes, stdout);
    if (s->bytes == 0 || s->text[s->bytes - 1] != '\n') putchar('\n');
    if (s->k > 0) stream_print_alternatives(s);
  }
}

int run_batch(const cli *c, run_settings *r) {
  batch b = {.c = c, .r = r};
  b.texts = memory_get(MOST_PROMPTS, sizeof *b.texts);
  b.jobs = memory_get(MOST_PROMPTS, sizeof *b.jobs);
  int code = r->batch_path ? add_lines(&b) : add(&b, r->what.ids, r->what.n, NULL);
  if (code == CLI_OK) {
    signal(SIGINT, run_interrupt);
    att_status status = go(&b);
    signal(SIGINT, SIG_DFL);
    code = status == ATT_OK                             ? CLI_OK
           : status == ATT_CANCELLED && run_interrupted ? CLI_INTERRUPTED
                                                        : cli_fail_status(c);
  }
  if (code == CLI_OK && c->json) print_json(&b);
  if (code == CLI_OK && !c->json) print_texts(&b);
  if (code == CLI_OK)
    cli_note(c, "%lld texts, %lld tokens shared, %lld new at %.0f tokens/s together",
             (long long)b.n, (long long)b.shared, (long long)total_new(&b),
             run_per_second(total_new(&b), decode_seconds(&b)));
  if (code == CLI_OK && run_interrupted) code = CLI_INTERRUPTED;
  for (int64_t i = 0; i < b.n; i++) {
    att_session_free(b.jobs[i].session);
    att_sampler_free(b.jobs[i].sampler);
    stream_free(&b.texts[i].stream);
    att_encoding_free(b.texts[i].encoding);
  }
  free(b.texts);
  free(b.jobs);
  return code;
}
