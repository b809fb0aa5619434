/* cmd_run.c — attend run: goes on with a prompt.
 *
 * The text, prompt included, goes to stdout as it comes, byte for byte what the
 * tokens stand for; at a terminal control characters are spelled out instead,
 * and a newline follows the end. Ctrl-C stops after the current token.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/encoder.h"
#include "attend/status.h"
#include "distribution.h"
#include "memory.h"
#include "run.h"

enum { DEFAULT_NEW = 256, MOST_NEW = 1 << 30, MOST_COPIES = 1024, MOST_ALTERNATIVES = 1000 };

static run_settings r = {.sampling = {.temperature = 0.8, .top_p = 1, .repetition = 1},
                         .most_new = DEFAULT_NEW,
                         .copies = 1};

static const option options[] = {
    SUBJECT_OPTIONS(r.what),
    {"tokens", 'n', OPTION_INT, &r.most_new, "N", 0, MOST_NEW, "at most N new tokens; default 256"},
    {"temperature", 't', OPTION_REAL, &r.sampling.temperature, "T", 0, 1000,
     "0: always the likeliest token; below 1 sharper, above 1 flatter; default 0.8"},
    {"top-k", 0, OPTION_INT, &r.sampling.top_k, "K", 0, MOST_NEW,
     "draw among the K likeliest only; default 0: all"},
    {"top-p", 0, OPTION_REAL, &r.sampling.top_p, "P", 1e-9, 1,
     "draw among the likeliest that together reach P; default 1: all"},
    {"min-p", 0, OPTION_REAL, &r.sampling.min_p, "P", 0, 0.999999,
     "draw among those with at least P times the largest probability; default 0"},
    {"repeat-penalty", 0, OPTION_REAL, &r.sampling.repetition, "R", 1, 1000,
     "makes tokens seen lately less likely; default 1: off"},
    {"stop", 0, OPTION_TEXTS, &r.stops, "TEXT", 0, 0,
     "stop when TEXT has come; may be given several times"},
    {"context", 'c', OPTION_INT, &r.context, "N", 1, MOST_NEW,
     "positions to make room for; default: what prompt and -n take, at most the model's own"},
    {"cache", 0, OPTION_CHOICE, &r.cache_type, "f32|f16|bf16", 0, 0,
     "how keys and values are kept; 16 bits take half the memory. Default f32"},
    {"logprobs", 0, OPTION_INT, &r.alternatives, "K", 1, MOST_ALTERNATIVES,
     "keeps the logarithm of the probability of each new token, and of the K likeliest in its "
     "place, before temperature and the like"},
    {"copies", 0, OPTION_INT, &r.copies, "N", 1, MOST_COPIES,
     "goes on N times, with the seeds --seed, --seed + 1 …; the prompt is read once"},
    {"batch", 0, OPTION_TEXT, &r.batch_path, "FILE", 0, 0,
     "a prompt a line in place of PROMPT, all at once; what they share is read once"},
    {"chat", 0, OPTION_FLAG, &r.chat, "", 0, 0,
     "PROMPT is a message and the answer is printed, in the spelling of the model's chat "
     "template; without PROMPT a conversation, a message a line"},
    {"system", 0, OPTION_TEXT, &r.system, "TEXT", 0, 0, "with --chat: the system message"},
    {"chat-format", 0, OPTION_TEXT, &r.format, "NAME", 0, 0,
     "with --chat: writes this format, whatever the template says (a wrong NAME lists them)"},
    EDIT_OPTIONS(r.edits),
    {0}};

static int report(const cli *c, const stream *s, const att_session *session,
                  const att_generate_result *result) {
  const subject *what = &r.what;
  if (c->json) {
    json j = json_begin(stdout);
    json_open(&j, NULL, '{');
    json_string(&j, "model", att_model_describe(what->model)->name);
    json_string(&j, "class", att_runtime_class(what->runtime));
    edit_json(&j, &r.edited);
    stream_json(&j, s, what->ids, what->n, result);
    json_double(&j, "prefill_tps", run_per_second(what->n, result->prefill_seconds));
    json_double(&j, "decode_tps", run_per_second(result->n_new, result->decode_seconds));
    json_close(&j);
    json_end(&j);
  } else if ((c->term.tty || s->k > 0) && s->bytes > 0 && s->text[s->bytes - 1] != '\n') {
    putchar('\n');
  }
  if (!c->json && s->k > 0) stream_print_alternatives(s);
  cli_note(c, "%lld tokens read at %.0f tokens/s, %lld new at %.0f tokens/s (%s)",
           (long long)what->n, run_per_second(what->n, result->prefill_seconds),
           (long long)result->n_new, run_per_second(result->n_new, result->decode_seconds),
           run_finish_name(result));
  if (run_interrupted) return CLI_INTERRUPTED;
  if (result->finish != ATT_FINISH_CONTEXT || !option_given(&r.most_new)) return CLI_OK;
  return cli_fail(c,
                  "the context of %lld positions is full: %lld of the prompt, %lld new, %lld asked",
                  (long long)att_session_context(session), (long long)what->n,
                  (long long)result->n_new, (long long)r.most_new);
}

/* A decoder goes on with the prompt. One beside an encoder looks at the prompt and
 * begins a text of its own. */
static att_status go_on(att_generate_result *result, att_session *session, att_sampler *sampler,
                        stream *s, const att_generate_options *how) {
  const att_model_info *info = att_model_describe(r.what.model);
  if (info->kind != ATT_MODEL_ENCODER_DECODER) {
    s->prompt = r.what.ids;
    s->n_prompt = r.what.n;
    return att_generate(result, session, sampler, r.what.ids, r.what.n, how);
  }
  const att_text text = {.tokens = r.what.ids, .n = r.what.n};
  att_status status = att_session_encode(session, &text, 1);
  if (status != ATT_OK) return status;
  return att_generate(result, session, sampler, &info->start_token, 1, how);
}

static int generate(const cli *c, att_session *session, att_sampler *sampler, stream *s) {
  const att_generate_options how = stream_options(s, &r);
  att_generate_result result = {0};
  progress bar = progress_begin(c, "reading");
  s->reading = &bar;
  signal(SIGINT, run_interrupt);
  att_status status = go_on(&result, session, sampler, s, &how);
  signal(SIGINT, SIG_DFL);
  progress_end(&bar);
  if (status == ATT_CANCELLED && run_interrupted) {
    cli_note(c, "interrupted while reading the prompt");
    return CLI_INTERRUPTED;
  }
  if (status != ATT_OK || s->failed) return cli_fail_status(c);
  return report(c, s, session, &result);
}

/* Room for prompt and new tokens, at most what the model has. */
att_session_options run_session_options(const run_settings *settings, int64_t positions) {
  static const att_dtype types[] = {ATT_F32, ATT_F16, ATT_BF16};
  const int64_t most = att_model_describe(settings->what.model)->context;
  att_session_options room;
  att_session_options_init(&room);
  room.context = settings->context;
  if (room.context == 0) room.context = positions < most ? positions : most;
  room.cache_dtype = types[settings->cache_type];
  return room;
}

/* What the edits do to the next token, before anything is written. */
static att_status say_effect(const cli *c, att_session *session, const distribution *before) {
  const att_model_info *info = att_model_describe(r.what.model);
  distribution after = {0};
  att_status status = att_session_truncate(session, 0);
  if (status == ATT_OK) status = att_session_eval(session, r.what.ids, r.what.n);
  if (status == ATT_OK)
    status = distribution_of(&after, r.what.runtime, att_session_logits(session).data, info->vocab);
  if (status == ATT_OK) {
    const likely *was = &before->top[0], *is = &after.top[0];
    const label a = subject_label(&r.what, &c->term, was->id, 16);
    const label b = subject_label(&r.what, &c->term, is->id, 16);
    cli_note(c, "edited: next %s %.2f, then %.2f; now likeliest %s %.2f; KL %.3f nats", a.text,
             (double)was->probability, (double)after.p[was->id], b.text, (double)is->probability,
             distribution_kl(before, &after));
  }
  distribution_free(&after);
  return status == ATT_OK ? att_session_truncate(session, 0) : status;
}

/* Attaches the edits; what they change is said where there is somebody to read it. */
static int edit(edit_set *set, const cli *c, att_session *session) {
  if (!edit_given(&r.edits)) return edit_attach(set, c, r.what.runtime, session, &r.edits);
  const att_model_info *info = att_model_describe(r.what.model);
  const bool said = !c->quiet && info->kind == ATT_MODEL_DECODER;
  const int64_t bytes = info->vocab * (int64_t)sizeof(float);
  float *logits = memory_get((size_t)info->vocab, sizeof *logits);
  distribution before = {0};
  att_status status = said ? att_session_eval(session, r.what.ids, r.what.n) : ATT_OK;
  if (said && status == ATT_OK) {
    memcpy(logits, att_session_logits(session).data, (size_t)bytes);
    status = distribution_of(&before, r.what.runtime, logits, info->vocab);
    if (status == ATT_OK) status = att_session_truncate(session, 0);
  }
  int code = status == ATT_OK ? edit_attach(set, c, r.what.runtime, session, &r.edits)
                              : cli_fail_status(c);
  if (code == CLI_OK && said && say_effect(c, session, &before) != ATT_OK)
    code = cli_fail_status(c);
  distribution_free(&before);
  free(logits);
  return code;
}

static int with_model(const cli *c) {
  const att_model_info *info = att_model_describe(r.what.model);
  const bool continues = info->kind == ATT_MODEL_DECODER;
  att_session_options room = run_session_options(&r, r.what.n + r.most_new);
  if (!continues) room.encoder_tokens = r.what.n;
  if (!continues && r.context == 0) room.context = r.most_new + 1;
  if (continues && (r.what.n > info->context || (r.context > 0 && r.what.n > r.context)))
    return cli_fail(
        c, "the prompt has %lld tokens, the context holds %lld", (long long)r.what.n,
        (long long)(r.context > 0 && r.context < info->context ? r.context : info->context));
  att_session *session = NULL;
  att_sampler *sampler = NULL;
  stream s = {.c = c, .what = &r.what, .show = !c->json, .k = r.alternatives};
  bool good = att_session_create(&session, r.what.model, &room) == ATT_OK &&
              att_sampler_create(&sampler, r.what.runtime, &r.sampling, info->vocab) == ATT_OK;
  s.session = session;
  int code = good ? edit(&r.edited, c, session) : cli_fail_status(c);
  if (code == CLI_OK) code = generate(c, session, sampler, &s);
  edit_detach(&r.edited);
  stream_free(&s);
  att_sampler_free(sampler);
  att_session_free(session);
  return code;
}

/* What the model can do. */
static int check_model(const cli *c) {
  const att_model_info *info = att_model_describe(r.what.model);
  if (info->kind == ATT_MODEL_ENCODER)
    return cli_fail(c,
                    "%s is an encoder: it reads texts but does not write (see attend help fill "
                    "and embed)",
                    info->name);
  const bool single = !r.chat && !r.batch_path && r.copies == 1;
  if (info->kind == ATT_MODEL_ENCODER_DECODER && !single)
    return cli_fail(c, "%s has an encoder: --batch, --copies and --chat need a model without one",
                    info->name);
  if (info->rounded)
    cli_note(c, "%s: matrices of 4 and 6 bits meet activations rounded to 8 bits", info->name);
  return CLI_OK;
}

/* Options that go together, and those that do not. */
static int check(const cli *c, int n) {
  const bool source = n > 0 || r.what.file_path || r.what.given_ids.n > 0;
  if (!r.chat && (r.system || r.format))
    return cli_usage(c, "%s goes with --chat", r.system ? "--system" : "--chat-format");
  if (r.chat && r.what.given_ids.n > 0) return cli_usage(c, "--chat and --ids exclude each other");
  if (r.chat && (r.batch_path || r.copies > 1))
    return cli_usage(c, "--chat is one conversation, without --batch and --copies");
  if ((edit_given(&r.edits) || r.edits.source) && (r.chat || r.batch_path || r.copies > 1))
    return cli_usage(c, "--edit is for one text, without --chat, --batch and --copies");
  if (r.chat && r.alternatives > 0) return cli_usage(c, "--logprobs and --chat exclude each other");
  if (r.batch_path && source)
    return cli_usage(c, "--batch stands in place of PROMPT, --ids and --file");
  return CLI_OK;
}

static int run(const cli *c, int n, char **operands) {
  att_sampler_options defaults;
  att_sampler_options_init(&defaults);
  r.sampling.struct_size = defaults.struct_size;
  r.sampling.repetition_last = defaults.repetition_last;
  r.sampling.seed = c->seed;
  int code = check(c, n);
  if (code != CLI_OK) return code;
  if (r.chat) code = subject_read_text(&r.what, c, n, operands);
  if (code == CLI_OK)
    code = r.chat || r.batch_path ? subject_open_model(&r.what, c)
                                  : subject_open(&r.what, c, n, operands);
  if (code == CLI_OK) code = check_model(c);
  if (code == CLI_OK)
    code = r.chat                         ? run_chat(c, &r)
           : r.batch_path || r.copies > 1 ? run_batch(c, &r)
                                          : with_model(c);
  subject_close(&r.what);
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
             "tokens of -n have come, that is an error.\n\n"
             "With --batch or --copies every text is the one that it would be alone, with its "
             "seed. With --chat the prompt is spelled as the model's makers did, if attend knows "
             "the template; what a message says never becomes a special token. Without PROMPT it "
             "is a conversation: Ctrl-C ends an answer, Ctrl-D the conversation; /clear begins "
             "anew.",
    .options = options,
    .run = run,
};
