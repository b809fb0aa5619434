/* cmd_run.c — attend run: goes on with a prompt.
 *
 * The text, prompt included, goes to stdout as it comes, byte for byte what the
 * tokens stand for; at a terminal control characters are spelled out instead,
 * and a newline follows the end. Ctrl-C stops after the current token.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/encoder.h"
#include "attend/generate.h"
#include "attend/status.h"
#include "json_out.h"
#include "memory.h"
#include "subject.h"

enum { DEFAULT_NEW = 256, MOST_NEW = 1 << 30 };

static subject what;
static att_sampler_options sampling = {.temperature = 0.8, .top_p = 1, .repetition = 1};
static int64_t most_new = DEFAULT_NEW, context;
static text_list stops;
static int cache_type;

static const option options[] = {
    SUBJECT_OPTIONS(what),
    {"tokens", 'n', OPTION_INT, &most_new, "N", 0, MOST_NEW, "at most N new tokens; default 256"},
    {"temperature", 't', OPTION_REAL, &sampling.temperature, "T", 0, 1000,
     "0: always the likeliest token; below 1 sharper, above 1 flatter; default 0.8"},
    {"top-k", 0, OPTION_INT, &sampling.top_k, "K", 0, MOST_NEW,
     "draw among the K likeliest only; default 0: all"},
    {"top-p", 0, OPTION_REAL, &sampling.top_p, "P", 1e-9, 1,
     "draw among the likeliest that together reach P; default 1: all"},
    {"min-p", 0, OPTION_REAL, &sampling.min_p, "P", 0, 0.999999,
     "draw among those with at least P times the largest probability; default 0"},
    {"repeat-penalty", 0, OPTION_REAL, &sampling.repetition, "R", 1, 1000,
     "makes tokens seen lately less likely; default 1: off"},
    {"stop", 0, OPTION_TEXTS, &stops, "TEXT", 0, 0,
     "stop when TEXT has come; may be given several times"},
    {"context", 'c', OPTION_INT, &context, "N", 1, MOST_NEW,
     "positions to make room for; default: what prompt and -n take, at most the model's own"},
    {"cache", 0, OPTION_CHOICE, &cache_type, "f32|f16|bf16", 0, 0,
     "how keys and values are kept; 16 bits take half the memory. Default f32"},
    {0}};

/* What on_token needs, and what it leaves behind. */
typedef struct stream {
  const cli *c;
  att_decoder *decoder; /* NULL: the model has no tokenizer, ids are printed */
  bool show;            /* text goes to stdout now */
  char *text;           /* all text so far, prompt included */
  size_t bytes, room;
  int32_t *new_ids;
  int64_t n_new, ids_room;
  bool failed;
} stream;

static volatile sig_atomic_t interrupted;

/* A second Ctrl-C ends the program at once. */
static void interrupt(int number) {
  interrupted = 1;
  signal(number, SIG_DFL);
}

static void put_text(stream *s, const char *text, size_t bytes) {
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

static void put_token(stream *s, int32_t id) {
  const char *text = "";
  size_t bytes = 0;
  char number[24];
  if (s->decoder) {
    s->failed = s->failed || att_decoder_push(&text, &bytes, s->decoder, id) != ATT_OK;
  } else {
    bytes = (size_t)snprintf(number, sizeof number, "%s%d", s->bytes ? " " : "", (int)id);
    text = number;
  }
  put_text(s, text, bytes);
}

static bool on_token(int32_t id, void *payload) {
  stream *s = payload;
  if (s->n_new == s->ids_room) {
    s->ids_room = 2 * s->ids_room + 64;
    s->new_ids = memory_resize(s->new_ids, (size_t)s->ids_room, sizeof *s->new_ids);
  }
  s->new_ids[s->n_new++] = id;
  put_token(s, id);
  return !interrupted && !s->failed && !ferror(stdout);
}

static double per_second(int64_t n, double seconds) {
  return seconds > 0 ? (double)n / seconds : 0;
}

static void print_json(const stream *s, const att_generate_result *r) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(what.model)->name);
  json_string(&j, "class", att_runtime_class(what.runtime));
  json_ints(&j, "prompt_tokens", what.ids, what.n);
  json_ints(&j, "tokens", s->new_ids, s->n_new);
  if (s->decoder)
    json_bytes(&j, "text", s->text ? s->text : "", s->bytes);
  else
    json_null(&j, "text");
  json_string(&j, "finish", interrupted ? "interrupted" : att_finish_name(r->finish));
  json_double(&j, "prefill_tps", per_second(what.n, r->prefill_seconds));
  json_double(&j, "decode_tps", per_second(r->n_new, r->decode_seconds));
  json_close(&j);
  json_end(&j);
}

static int report(const cli *c, const stream *s, const att_session *session,
                  const att_generate_result *r) {
  if (c->json)
    print_json(s, r);
  else if (c->term.tty && s->bytes > 0 && s->text[s->bytes - 1] != '\n')
    putchar('\n');
  cli_note(c, "%lld tokens read at %.0f tokens/s, %lld new at %.0f tokens/s (%s)",
           (long long)what.n, per_second(what.n, r->prefill_seconds), (long long)r->n_new,
           per_second(r->n_new, r->decode_seconds),
           interrupted ? "interrupted" : att_finish_name(r->finish));
  if (interrupted) return CLI_INTERRUPTED;
  if (r->finish != ATT_FINISH_CONTEXT || !option_given(&most_new)) return CLI_OK;
  return cli_fail(c,
                  "the context of %lld positions is full: %lld of the prompt, %lld new, %lld asked",
                  (long long)att_session_context(session), (long long)what.n, (long long)r->n_new,
                  (long long)most_new);
}

/* A decoder goes on with the prompt. One beside an encoder looks at the prompt and
 * begins a text of its own. */
static att_status go_on(att_generate_result *result, att_session *session, att_sampler *sampler,
                        stream *s, const att_generate_options *how) {
  const att_model_info *info = att_model_describe(what.model);
  if (info->kind != ATT_MODEL_ENCODER_DECODER) {
    for (int64_t i = 0; i < what.n; i++) put_token(s, what.ids[i]);
    return att_generate(result, session, sampler, what.ids, what.n, how);
  }
  const att_text text = {.tokens = what.ids, .n = what.n};
  att_status status = att_session_encode(session, &text, 1);
  if (status != ATT_OK) return status;
  return att_generate(result, session, sampler, &info->start_token, 1, how);
}

static int generate(const cli *c, att_session *session, att_sampler *sampler, stream *s) {
  att_generate_options how;
  att_generate_options_init(&how);
  how.max_new = most_new;
  how.on_token = on_token;
  how.payload = s;
  how.stop = stops.texts;
  how.n_stop = stops.n;
  att_generate_result result = {0};
  signal(SIGINT, interrupt);
  att_status status = go_on(&result, session, sampler, s, &how);
  signal(SIGINT, SIG_DFL);
  if (status != ATT_OK || s->failed) return cli_fail_status(c);
  const char *rest = "";
  size_t bytes = 0;
  if (s->decoder && att_decoder_finish(&rest, &bytes, s->decoder) == ATT_OK)
    put_text(s, rest, bytes);
  return report(c, s, session, &result);
}

/* Room for prompt and new tokens, at most what the model has. */
static att_session_options session_options(void) {
  static const att_dtype types[] = {ATT_F32, ATT_F16, ATT_BF16};
  const att_model_info *info = att_model_describe(what.model);
  att_session_options room;
  att_session_options_init(&room);
  room.context = context;
  if (info->kind == ATT_MODEL_ENCODER_DECODER) {
    room.encoder_tokens = what.n;
    if (context == 0) room.context = most_new + 1;
  } else if (context == 0) {
    room.context = what.n + most_new < info->context ? what.n + most_new : info->context;
  }
  room.cache_dtype = types[cache_type];
  return room;
}

static int with_model(const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  const att_session_options room = session_options();
  if (info->kind == ATT_MODEL_ENCODER)
    return cli_fail(c,
                    "%s is an encoder: it reads texts but does not write (see attend help fill "
                    "and embed)",
                    info->name);
  bool continues = info->kind == ATT_MODEL_DECODER;
  if (continues && (what.n > info->context || (context > 0 && what.n > context)))
    return cli_fail(c, "the prompt has %lld tokens, the context holds %lld", (long long)what.n,
                    (long long)(context > 0 && context < info->context ? context : info->context));
  att_session *session = NULL;
  att_sampler *sampler = NULL;
  stream s = {.c = c, .show = !c->json};
  sampling.seed = c->seed;
  bool good = att_session_create(&session, what.model, &room) == ATT_OK &&
              att_sampler_create(&sampler, what.runtime, &sampling, info->vocab) == ATT_OK;
  if (good && what.tokenizer) good = att_decoder_create(&s.decoder, what.tokenizer, NULL) == ATT_OK;
  int code = good ? generate(c, session, sampler, &s) : cli_fail_status(c);
  free(s.text);
  free(s.new_ids);
  att_decoder_free(s.decoder);
  att_sampler_free(sampler);
  att_session_free(session);
  return code;
}

static int run(const cli *c, int n, char **operands) {
  att_sampler_options defaults;
  att_sampler_options_init(&defaults);
  sampling.struct_size = defaults.struct_size;
  sampling.repetition_last = defaults.repetition_last;
  int code = subject_open(&what, c, n, operands);
  if (code == CLI_OK) code = with_model(c);
  subject_close(&what);
  return code;
}

const command cmd_run = {
    .operands = "PROMPT",
    .least = 0,
    .most = 1,
    .about = "Prints the prompt and what the model makes of it, as it comes. The same prompt, "
             "options and seed give the same text on any machine of one class, with any number "
             "of threads.\n\n"
             "A model with an encoder (T5) reads PROMPT and then writes a text of its own, such as "
             "a translation; that text alone is printed.\n\n"
             "PROMPT may be empty: the model then begins on its own. Text that begins with a "
             "dash goes behind --.\n\n"
             "Order: repeat penalty, temperature, top-k, top-p, min-p, one draw. Ctrl-C stops "
             "after the current token and exits with 130. When the context is full before the N "
             "tokens of -n have come, that is an error.",
    .options = options,
    .run = run,
};
