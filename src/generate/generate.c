/* The loop: read, pick, hand out. */
#include "attend/generate.h"

#include <time.h>

#include "base/status.h"
#include "generate/stream.h"

void att_generate_options_init(att_generate_options *options) {
  if (options) *options = (att_generate_options){.struct_size = sizeof *options, .max_new = 256};
}

const char *att_finish_name(att_finish finish) {
  switch (finish) {
  case ATT_FINISH_LENGTH: return "length";
  case ATT_FINISH_END: return "end";
  case ATT_FINISH_CONTEXT: return "context";
  case ATT_FINISH_STOP: return "stop";
  case ATT_FINISH_STOP_STRING: return "stop_string";
  }
  return "unknown";
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct generation {
  att_session *session;
  att_sampler *sampler;
  const att_model *model;
  const att_generate_options *options;
  att_stream *stream; /* or NULL */
  att_generate_result result;
} generation;

/* Logits of the last token. */
static att_view last_logits(const att_session *session) {
  att_view logits = att_session_logits(session);
  return logits.ndim == 2 ? att_view_select(logits, 0, logits.shape[0] - 1) : logits;
}

/* Hands a token out; *go_on tells whether anyone objects to more. */
static att_status hand_out(bool *go_on, generation *g, int32_t id) {
  const att_generate_options *o = g->options;
  g->result.n_new++;
  if (g->stream) ATT_TRY(att_stream_push(g->stream, id));
  bool found = g->stream && g->stream->found;
  bool refused = g->stream && g->stream->refused;
  if (o->on_token) refused |= !o->on_token(id, o->payload);
  if (found || refused) g->result.finish = found ? ATT_FINISH_STOP_STRING : ATT_FINISH_STOP;
  *go_on = !found && !refused;
  return ATT_OK;
}

static att_status go_on_from_prompt(generation *g) {
  for (bool go_on = true;;) {
    if (g->result.n_new == g->options->max_new) {
      g->result.finish = ATT_FINISH_LENGTH;
      return ATT_OK;
    }
    int64_t length = att_session_length(g->session);
    int32_t id;
    ATT_TRY(att_sampler_pick(&id, g->sampler, last_logits(g->session),
                             att_session_tokens(g->session), length));
    if (att_model_is_end(g->model, id)) {
      g->result.finish = ATT_FINISH_END;
      return ATT_OK;
    }
    ATT_TRY(hand_out(&go_on, g, id));
    if (!go_on) return ATT_OK;
    if (g->result.n_new == g->options->max_new) continue;
    if (length == att_session_context(g->session)) {
      g->result.finish = ATT_FINISH_CONTEXT;
      return ATT_OK;
    }
    ATT_TRY(att_session_eval(g->session, &id, 1));
  }
}

static att_status run(generation *g, const int32_t *prompt, int64_t n) {
  double start = seconds();
  ATT_TRY(att_session_eval(g->session, prompt, n));
  double read = seconds();
  if (g->stream)
    ATT_TRY(att_stream_prime(g->stream, att_session_tokens(g->session),
                             att_session_length(g->session)));
  ATT_TRY(go_on_from_prompt(g));
  if (g->stream) ATT_TRY(att_stream_finish(g->stream));
  g->result.prefill_seconds = read - start;
  g->result.decode_seconds = seconds() - read;
  return ATT_OK;
}

static att_status check_options(const att_generate_options *o) {
  if (o->struct_size != sizeof *o)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_generate_options_init");
  if (o->max_new < 0)
    return att_fail(ATT_BAD_ARGUMENT, "max_new is %lld, not 0 or more", (long long)o->max_new);
  if (o->n_stop < 0 || (o->n_stop && !o->stop))
    return att_fail(ATT_BAD_ARGUMENT, "n_stop is %lld with %s stop strings", (long long)o->n_stop,
                    o->stop ? "some" : "no");
  return ATT_OK;
}

att_status att_generate(att_generate_result *out, att_session *session, att_sampler *sampler,
                        const int32_t *prompt, int64_t n, const att_generate_options *options) {
  if (!out || !session || !sampler)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    !out       ? "out"
                    : !session ? "session"
                               : "sampler");
  att_generate_options all;
  att_generate_options_init(&all);
  if (options) all = *options;
  ATT_TRY(check_options(&all));
  const att_model *model = att_session_model(session);
  generation g = {.session = session, .sampler = sampler, .model = model, .options = &all};

  att_stream stream;
  if (all.on_text || all.n_stop) {
    const att_tokenizer *tokenizer = att_model_tokenizer(model);
    if (!tokenizer)
      return att_fail(ATT_BAD_ARGUMENT, "text and stop strings need a tokenizer, but the model "
                                        "was opened without one");
    ATT_TRY(att_stream_create(&stream, att_model_runtime(model), tokenizer, &all));
    g.stream = &stream;
  }
  att_status status = run(&g, prompt, n);
  if (g.stream) att_stream_release(&stream);
  if (status == ATT_OK) *out = g.result;
  return status;
}
