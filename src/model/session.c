/* A timeline of tokens: creation, reading, forgetting. */
#include "model/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/float_mode.h"

void att_session_options_init(att_session_options *options) {
  if (options)
    *options = (att_session_options){.struct_size = sizeof *options,
                                     .chunk = 128,
                                     .cache_dtype = ATT_F32,
                                     .block = 128,
                                     .span = 512};
}

/* ---- creation ---- */

att_attention_pass att_session_pass(const att_session *session, int64_t layer, int64_t rows) {
  att_position_kind position = session->model->config.position;
  if (!session->cache)
    return att_encoder_pass(&session->encoder, session->model, layer, session->block,
                            session->span);
  return (att_attention_pass){.runtime = session->runtime,
                              .ropes = session->ropes,
                              .distance =
                                  position == ATT_POSITION_RELATIVE ? &session->distance : NULL,
                              .memory = session->encoder.room ? &session->encoder.memory : NULL,
                              .cache = session->cache,
                              .plan = session->plan,
                              .block = session->block,
                              .span = session->span,
                              .layer = layer,
                              .position = session->length,
                              .rows = rows,
                              .q = session->act.q,
                              .k = session->act.k,
                              .v = session->act.v,
                              .z = session->act.z,
                              .tap = session->observers ? &session->observers->tap : NULL};
}

static att_status check_options(const att_session_options *options, const att_config *config) {
  if (options->struct_size != sizeof *options)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_session_options_init");
  bool bounded = config->position != ATT_POSITION_RELATIVE;
  if (options->context < 0 || (bounded && options->context > config->context))
    return att_fail(ATT_BAD_ARGUMENT, "context is %lld, but the model has %lld positions",
                    (long long)options->context, (long long)config->context);
  if (options->encoder_tokens < 0)
    return att_fail(ATT_BAD_ARGUMENT, "encoder_tokens is %lld, negative",
                    (long long)options->encoder_tokens);
  if (options->logit_rows < 0)
    return att_fail(ATT_BAD_ARGUMENT, "logit_rows is %lld, not 0 or more",
                    (long long)options->logit_rows);
  if (options->chunk < 1)
    return att_fail(ATT_BAD_ARGUMENT, "chunk is %lld, not at least 1", (long long)options->chunk);
  return ATT_OK;
}

static att_status create_attention(att_session *session, att_dtype cache_dtype) {
  const att_model *model = session->model;
  const att_config *config = &model->config;
  att_cache_shape shape = {.layers = config->layers,
                           .sequences = 1,
                           .kv_heads = config->kv_heads,
                           .head_dim = config->head_dim,
                           .value_dim = config->head_dim,
                           .capacity = session->context,
                           .dtype = cache_dtype};
  ATT_TRY(att_cache_create(&session->cache, session->runtime, &shape));
  if (config->position == ATT_POSITION_ROPE)
    ATT_TRY(att_weights_rope(&session->ropes[0], &model->weights, session->runtime, &config->rope,
                             session->context));
  if (config->has_local_rope)
    ATT_TRY(att_weights_rope(&session->ropes[1], &model->weights, session->runtime,
                             &config->local_rope, session->context));
  if (config->position == ATT_POSITION_RELATIVE)
    ATT_TRY(att_distance_rows_create(&session->distance, session->runtime, &model->weights.distance,
                                     att_cache_describe(session->cache)->capacity));
  att_attention_pass pass = att_session_pass(session, 0, session->chunk);
  att_sdpa_args args;
  att_self_attention_args(&args, &model->weights.layer[0].attention, &pass);
  ATT_TRY(att_sdpa_plan_create(&session->plan, session->runtime, &args));
  if (!pass.memory) return ATT_OK;
  att_cross_attention_args(&args, &model->weights.layer[0].cross, &pass);
  return att_sdpa_plan_create(&session->encoder.memory.plan, session->runtime, &args);
}

/* Room for texts: an encoder's only memory, the lesser part beside a decoder. */
static att_status create_encoder(att_session *session, int64_t tokens) {
  const att_config *config = &session->model->config;
  if (!config->bidirectional && !config->encoder_layers) return ATT_OK;
  int64_t room = tokens ? tokens : session->context;
  session->text_limit = config->encoder_layers ? room : session->context;
  return att_encoder_create(&session->encoder, session->model, room, session->block, session->span);
}

static att_status fill(att_session *session, att_dtype cache_dtype, int64_t encoder_tokens) {
  const att_runtime *runtime = session->runtime;
  const att_config *config = &session->model->config;
  ATT_TRY(create_encoder(session, encoder_tokens));
  if (config->bidirectional) return ATT_OK;
  ATT_TRY(att_activations_create(&session->act, runtime, config, session->chunk));
  ATT_TRY(create_attention(session, cache_dtype));
  ATT_TRY(att_alloc((void **)&session->tokens, runtime, session->context, sizeof(int32_t),
                    "token ids"));
  int64_t rows = session->all_logits ? session->logit_rows : 1, count;
  if (!att_mul_checked(&count, rows, config->vocab))
    return att_fail(ATT_TOO_LARGE, "logits of %lld rows overflow", (long long)rows);
  ATT_TRY(att_alloc((void **)&session->logits, runtime, count, sizeof(float), "logits"));
  session->logit_rows = rows;
  return ATT_OK;
}

att_status att_session_create(att_session **out, const att_model *model,
                              const att_session_options *options) {
  if (!out || !model) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", out ? "model" : "out");
  att_session_options all;
  att_session_options_init(&all);
  if (options) all = *options;
  ATT_TRY(check_options(&all, &model->config));
  att_session *session;
  ATT_TRY(att_alloc((void **)&session, model->runtime, 1, sizeof *session, "a session"));
  session->model = model;
  session->runtime = model->runtime;
  session->context = all.context ? all.context : model->config.context;
  session->chunk = all.chunk < session->context ? all.chunk : session->context;
  session->block = all.block;
  session->span = all.span;
  session->all_logits = all.all_logits;
  session->logit_rows = all.logit_rows ? all.logit_rows : session->context;
  uint64_t mode = att_float_mode_enter(); /* tables of rotation are numbers too */
  att_status status = fill(session, all.cache_dtype, all.encoder_tokens);
  att_float_mode_leave(mode);
  if (status == ATT_OK)
    *out = session;
  else
    att_session_free(session);
  return status;
}

void att_session_free(att_session *session) {
  if (!session) return;
  const att_runtime *runtime = session->runtime;
  for (att_observer *o = session->observers, *next; o; o = next) {
    next = o->next;
    o->closed(o->tap.payload);
  }
  att_release(runtime, session->logits, session->logit_rows * session->model->config.vocab,
              sizeof(float));
  att_release(runtime, session->tokens, session->context, sizeof(int32_t));
  att_sdpa_plan_free(session->plan);
  for (int i = 0; i < 2; i++) att_rope_table_release(&session->ropes[i], runtime);
  if (session->distance.biases) att_distance_rows_release(&session->distance, runtime);
  att_cache_free(session->cache);
  att_encoder_release(&session->encoder, session->model);
  att_activations_release(&session->act, runtime);
  att_release(runtime, session, 1, sizeof *session);
}

/* ---- watching ---- */

static void chain_taps(att_session *session) {
  for (att_observer *o = session->observers; o; o = o->next)
    o->tap.next = o->next ? &o->next->tap : NULL;
}

void att_session_attach(att_session *session, att_observer *observer) {
  att_observer **link = &session->observers;
  if (!observer->edited)
    while (*link && (*link)->edited) link = &(*link)->next;
  observer->next = *link;
  *link = observer;
  chain_taps(session);
}

void att_session_detach(att_session *session, att_observer *observer) {
  att_observer **link = &session->observers;
  while (*link != observer) link = &(*link)->next;
  *link = observer->next;
  chain_taps(session);
}

void att_session_tell(const att_session *session) {
  for (att_observer *o = session->observers; o; o = o->next)
    o->moved(o->tap.payload, session->length, session->encoder.rows);
}

/* ---- reading ---- */

/* Logits of the rows just passed: all, the last, or none. With a tap the final
 * norm is taken of every row, for it to see. */
static void read_out(att_session *session, int64_t rows, bool last_chunk) {
  const att_model *model = session->model;
  int64_t c = model->config.width, v = model->config.vocab;
  const att_tap *tap = session->observers ? &session->observers->tap : NULL;
  int64_t wanted = session->all_logits ? rows : last_chunk ? 1 : 0;
  int64_t normed = tap ? rows : wanted;
  if (!normed) return;
  att_final_norm_forward(model, &session->act, rows - normed, rows, tap);
  if (!wanted) return;
  att_output_forward(model, session->act.normed + (normed - wanted) * c, wanted,
                     session->logits + session->n_logits * v);
  session->n_logits += wanted;
}

/* One pass of at most `chunk` tokens. */
static att_status read_chunk(att_session *session, const int32_t *tokens, int64_t rows,
                             bool last_chunk) {
  const att_model *model = session->model;
  att_attention_pass pass = att_session_pass(session, 0, rows);
  att_token_rows read = {.tokens = tokens, .rows = rows, .position = session->length};
  att_embed_forward(model, &session->act, &read, pass.tap);
  for (; pass.layer < model->config.layers; pass.layer++)
    ATT_TRY(att_block_forward(model, &model->weights.layer[pass.layer], &session->act, &pass));
  read_out(session, rows, last_chunk);
  ATT_TRY(att_cache_advance(session->cache, 0, rows));
  memmove(session->tokens + session->length, tokens, (size_t)rows * sizeof *tokens);
  session->length += rows;
  att_session_tell(session);
  return ATT_OK;
}

att_status att_session_check(const att_session *session, const int32_t *tokens, int64_t n) {
  if (!session || !tokens)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", session ? "tokens" : "session");
  if (!session->cache)
    return att_fail(ATT_WRONG_STATE, "an encoder reads whole texts, with att_session_encode");
  if (session->encoder.room && !session->encoder.memory.length)
    return att_fail(ATT_WRONG_STATE, "the encoder has read nothing that the decoder could look at");
  if (n < 1) return att_fail(ATT_BAD_ARGUMENT, "n is %lld, not at least 1", (long long)n);
  int64_t vocab = session->model->config.vocab;
  for (int64_t i = 0; i < n; i++)
    if (tokens[i] < 0 || tokens[i] >= vocab)
      return att_fail(ATT_BAD_ARGUMENT, "token %lld is id %d, outside the vocabulary of %lld",
                      (long long)i, (int)tokens[i], (long long)vocab);
  if (n > session->context - session->length)
    return att_fail(ATT_CONTEXT_FULL,
                    "%lld tokens after the %lld already read are more than the context of %lld",
                    (long long)n, (long long)session->length, (long long)session->context);
  if (session->all_logits && n > session->logit_rows)
    return att_fail(ATT_BAD_ARGUMENT, "%lld tokens at once, with room for the logits of %lld",
                    (long long)n, (long long)session->logit_rows);
  for (const att_observer *o = session->observers; o; o = o->next)
    if (n > o->limit - session->length)
      return att_fail(ATT_CONTEXT_FULL,
                      "%lld tokens after the %lld already read are more than a capture's %lld "
                      "positions",
                      (long long)n, (long long)session->length, (long long)o->limit);
  return ATT_OK;
}

static att_status read_all(att_session *session, const int32_t *tokens, int64_t n) {
  for (int64_t i = 0, rows; i < n; i += rows) {
    rows = n - i < session->chunk ? n - i : session->chunk;
    ATT_TRY(read_chunk(session, tokens + i, rows, i + rows == n));
  }
  return ATT_OK;
}

att_status att_session_eval(att_session *session, const int32_t *tokens, int64_t n) {
  ATT_TRY(att_session_check(session, tokens, n));
  session->n_logits = 0;
  uint64_t mode = att_float_mode_enter();
  att_status status = read_all(session, tokens, n);
  att_float_mode_leave(mode);
  return status;
}

att_status att_session_truncate(att_session *session, int64_t length) {
  if (!session) return att_fail(ATT_BAD_ARGUMENT, "session is NULL");
  if (length < 0 || length > session->length)
    return att_fail(ATT_BAD_ARGUMENT, "length is %lld, not from 0 to the %lld positions read",
                    (long long)length, (long long)session->length);
  if (session->cache) ATT_TRY(att_cache_truncate(session->cache, 0, length));
  if (!session->cache && length != session->length && length)
    return att_fail(ATT_UNSUPPORTED, "an encoder forgets its text as a whole, not from %lld on",
                    (long long)length);
  if (!session->cache && !length) session->encoder.rows = 0;
  session->length = length;
  session->n_logits = 0;
  att_session_tell(session);
  return ATT_OK;
}

/* ---- looking ---- */

att_view att_session_logits(const att_session *session) {
  if (!session || !session->n_logits) return att_view_none();
  int64_t shape[2] = {session->n_logits, session->model->config.vocab};
  if (session->all_logits) return att_view_of(session->logits, ATT_F32, 2, shape);
  return att_view_of(session->logits, ATT_F32, 1, shape + 1);
}

const att_model *att_session_model(const att_session *session) {
  return session ? session->model : NULL;
}

int64_t att_session_length(const att_session *session) { return session ? session->length : 0; }

int64_t att_session_context(const att_session *session) { return session ? session->context : 0; }

const int32_t *att_session_tokens(const att_session *session) {
  if (!session) return NULL;
  return session->cache ? session->tokens : session->encoder.tokens;
}

int64_t att_session_bytes(const att_session *session) {
  if (!session) return 0;
  int64_t watched = 0;
  for (const att_observer *o = session->observers; o; o = o->next) watched += o->bytes;
  if (!session->cache) return watched + att_encoder_bytes(&session->encoder);
  int64_t floats = session->act.floats + session->distance.heads * 2 * session->distance.length +
                   session->logit_rows * session->model->config.vocab;
  for (int i = 0; i < 2; i++) floats += 2 * session->ropes[i].positions * session->ropes[i].pairs;
  return watched + att_encoder_bytes(&session->encoder) + att_cache_bytes(session->cache) +
         att_sdpa_plan_workspace(session->plan) + floats * (int64_t)sizeof(float) +
         session->context * (int64_t)sizeof(int32_t);
}
