/* The loop: read, pick, hand out. */
#include "attend/generate.h"

#include <time.h>

#include "base/alloc.h"
#include "base/status.h"
#include "generate/stream.h"

enum { PIECE = 256 }; /* tokens of a prompt between two words about it */

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
  att_generate_options own_options;
  att_stream own_stream;
  att_generate_result result;
  bool done;
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

static bool is_end(const generation *g, int32_t id) {
  for (int64_t i = 0; i < g->options->n_ends; i++)
    if (g->options->ends[i] == id) return true;
  return att_model_is_end(g->model, id);
}

/* Chooses the next token and hands it out. *id is to be read before there can be
 * another one; -1 if this generation is over. */
static att_status choose(int32_t *id, generation *g) {
  int32_t chosen;
  bool go_on;
  *id = -1;
  g->result.finish = ATT_FINISH_LENGTH;
  if (g->result.n_new == g->options->max_new) return ATT_OK;
  int64_t length = att_session_length(g->session);
  ATT_TRY(att_sampler_pick(&chosen, g->sampler, last_logits(g->session),
                           att_session_tokens(g->session), length));
  if (is_end(g, chosen)) {
    g->result.finish = ATT_FINISH_END;
    return ATT_OK;
  }
  ATT_TRY(hand_out(&go_on, g, chosen));
  if (!go_on || g->result.n_new == g->options->max_new) return ATT_OK;
  if (length < att_session_context(g->session))
    *id = chosen;
  else
    g->result.finish = ATT_FINISH_CONTEXT;
  return ATT_OK;
}

/* Reads the prompt, in pieces if somebody wants to know how far it is. */
static att_status read_pieces(const generation *g, const int32_t *prompt, int64_t n) {
  const att_generate_options *o = g->options;
  if (!o->on_read || n > att_session_context(g->session) - att_session_length(g->session))
    return att_session_eval(g->session, prompt, n); /* which says if it does not fit */
  for (int64_t first = 0, rows; first < n; first += rows) {
    rows = n - first < PIECE ? n - first : PIECE;
    ATT_TRY(att_session_eval(g->session, prompt + first, rows));
    if (!o->on_read((double)(first + rows) / (double)n, o->payload))
      return att_fail(ATT_CANCELLED, "reading a prompt of %lld tokens was cancelled after %lld",
                      (long long)n, (long long)(first + rows));
  }
  return ATT_OK;
}

static att_status read_prompt(generation *g, const int32_t *prompt, int64_t n) {
  double start = seconds();
  ATT_TRY(read_pieces(g, prompt, n));
  g->result.prefill_seconds = seconds() - start;
  if (!g->stream) return ATT_OK;
  return att_stream_prime(g->stream, att_session_tokens(g->session),
                          att_session_length(g->session));
}

static att_status finish(generation *g, double start) {
  if (g->stream) ATT_TRY(att_stream_finish(g->stream));
  g->result.decode_seconds = seconds() - start;
  return ATT_OK;
}

static att_status run(generation *g, const int32_t *prompt, int64_t n) {
  ATT_TRY(read_prompt(g, prompt, n));
  double start = seconds();
  for (int32_t id;;) {
    ATT_TRY(choose(&id, g));
    if (id < 0) return finish(g, start);
    ATT_TRY(att_session_eval(g->session, &id, 1));
  }
}

static att_status check_options(const att_generate_options *o) {
  if (o->struct_size != sizeof *o)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_generate_options_init");
  if (o->max_new < 0)
    return att_fail(ATT_BAD_ARGUMENT, "max_new is %lld, not 0 or more", (long long)o->max_new);
  if (o->n_stop < 0 || (o->n_stop && !o->stop))
    return att_fail(ATT_BAD_ARGUMENT, "n_stop is %lld with %s stop strings", (long long)o->n_stop,
                    o->stop ? "some" : "no");
  if (o->n_ends < 0 || (o->n_ends && !o->ends))
    return att_fail(ATT_BAD_ARGUMENT, "n_ends is %lld with %s ids", (long long)o->n_ends,
                    o->ends ? "some" : "no");
  return ATT_OK;
}

/* Prepares a generation; end_generation must follow whatever it answers. */
static att_status begin(generation *g, att_session *session, att_sampler *sampler,
                        const att_generate_options *options) {
  *g = (generation){.session = session, .sampler = sampler};
  att_generate_options_init(&g->own_options);
  if (options) g->own_options = *options;
  g->options = &g->own_options;
  if (!session || !sampler)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", session ? "sampler" : "session");
  ATT_TRY(check_options(g->options));
  g->model = att_session_model(session);
  if (!g->options->on_text && !g->options->n_stop) return ATT_OK;
  const att_tokenizer *tokenizer = att_model_tokenizer(g->model);
  if (!tokenizer)
    return att_fail(ATT_BAD_ARGUMENT, "text and stop strings need a tokenizer, but the model "
                                      "was opened without one");
  ATT_TRY(att_stream_create(&g->own_stream, att_model_runtime(g->model), tokenizer, g->options));
  g->stream = &g->own_stream;
  return ATT_OK;
}

static void end(generation *g) {
  if (g->stream) att_stream_release(g->stream);
}

att_status att_generate(att_generate_result *out, att_session *session, att_sampler *sampler,
                        const int32_t *prompt, int64_t n, const att_generate_options *options) {
  generation g;
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "out is NULL");
  att_status status = begin(&g, session, sampler, options);
  if (status == ATT_OK) status = run(&g, prompt, n);
  end(&g);
  if (status == ATT_OK) *out = g.result;
  return status;
}

/* ---- several at once ---- */

typedef struct batch {
  generation *all;        /* [count] */
  att_session **sessions; /* of those that go on, and their next tokens */
  int32_t *ids;
  int64_t count;
} batch;

static att_status run_batch(batch *b, const att_generate_job *jobs) {
  for (int64_t i = 0; i < b->count; i++)
    ATT_TRY(begin(&b->all[i], jobs[i].session, jobs[i].sampler, jobs[i].options));
  for (int64_t i = 0; i < b->count; i++)
    ATT_TRY(read_prompt(&b->all[i], jobs[i].prompt, jobs[i].n));
  double start = seconds();
  for (int64_t live = b->count; live > 0;) {
    live = 0;
    for (int64_t i = 0; i < b->count; i++) {
      generation *g = &b->all[i];
      if (g->done) continue;
      ATT_TRY(choose(&b->ids[live], g));
      g->done = b->ids[live] < 0;
      if (g->done)
        ATT_TRY(finish(g, start));
      else
        b->sessions[live++] = g->session;
    }
    if (live > 0) ATT_TRY(att_session_step(b->sessions, b->ids, live));
  }
  return ATT_OK;
}

att_status att_generate_batch(att_generate_job *jobs, int64_t count) {
  if (!jobs || count < 1)
    return att_fail(ATT_BAD_ARGUMENT, "%lld jobs", jobs ? (long long)count : 0);
  if (!jobs[0].session) return att_fail(ATT_BAD_ARGUMENT, "session is NULL");
  const att_runtime *r = att_model_runtime(att_session_model(jobs[0].session));
  batch b = {.count = count};
  att_status status = att_alloc((void **)&b.all, r, count, sizeof *b.all, "generations");
  if (status == ATT_OK)
    status = att_alloc((void **)&b.sessions, r, count, sizeof *b.sessions, "sessions");
  if (status == ATT_OK) status = att_alloc((void **)&b.ids, r, count, sizeof *b.ids, "next tokens");
  if (status == ATT_OK) status = run_batch(&b, jobs);
  for (int64_t i = 0; i < count && b.all; i++) {
    end(&b.all[i]);
    if (status == ATT_OK) jobs[i].result = b.all[i].result;
  }
  att_release(r, b.all, count, sizeof *b.all);
  att_release(r, b.sessions, count, sizeof *b.sessions);
  att_release(r, b.ids, count, sizeof *b.ids);
  return status;
}
