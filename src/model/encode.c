/* Reading whole texts: checks, the way through the encoder, and what is made of
 * its vectors.
 *
 * Texts of a batch lie one after the other in the rows of one pass. Everything but
 * attention works row by row, and attention keeps to a text, so the bits of a text
 * do not depend on its neighbours. */
#include <string.h>

#include "base/float_mode.h"
#include "kernels/kernels.h"
#include "model/session.h"
#include "tensor/shape.h"

/* ---- checks ---- */

static att_status check_text(const att_session *session, const att_text *text, int64_t t) {
  const att_config *config = &session->model->config;
  int64_t types = config->token_types ? config->token_types : 1;
  int64_t most = config->position == ATT_POSITION_LEARNED ? config->context : INT32_MAX;
  if (!text->tokens)
    return att_fail(ATT_BAD_ARGUMENT, "tokens of text %lld are NULL", (long long)t);
  if (text->n < 1)
    return att_fail(ATT_BAD_ARGUMENT, "text %lld has %lld tokens, not at least 1", (long long)t,
                    (long long)text->n);
  if (text->n > session->text_limit)
    return att_fail(ATT_CONTEXT_FULL, "text %lld has %lld tokens, but the context is %lld",
                    (long long)t, (long long)text->n, (long long)session->text_limit);
  for (int64_t i = 0; i < text->n; i++) {
    if (text->tokens[i] < 0 || text->tokens[i] >= config->vocab)
      return att_fail(ATT_BAD_ARGUMENT,
                      "token %lld of text %lld is id %d, outside the vocabulary of %lld",
                      (long long)i, (long long)t, (int)text->tokens[i], (long long)config->vocab);
    if (text->types && (text->types[i] < 0 || text->types[i] >= types))
      return att_fail(ATT_BAD_ARGUMENT, "token %lld of text %lld has type %d of %lld", (long long)i,
                      (long long)t, (int)text->types[i], (long long)types);
    if (text->positions && (text->positions[i] < 0 || text->positions[i] >= most))
      return att_fail(ATT_BAD_ARGUMENT, "token %lld of text %lld stands at position %lld of %lld",
                      (long long)i, (long long)t, (long long)text->positions[i], (long long)most);
  }
  if (text->positions && config->position != ATT_POSITION_LEARNED)
    return att_fail(ATT_UNSUPPORTED, "positions of text %lld for a model without a table of them",
                    (long long)t);
  return ATT_OK;
}

static att_status check_texts(const att_session *session, const att_text *texts, int64_t n_texts) {
  if (!session || !texts)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", session ? "texts" : "session");
  const att_encoder *encoder = &session->encoder;
  if (!encoder->room)
    return att_fail(ATT_WRONG_STATE, "the model has no encoder: it reads with att_session_eval");
  if (n_texts < 1)
    return att_fail(ATT_BAD_ARGUMENT, "n_texts is %lld, not at least 1", (long long)n_texts);
  if (n_texts > 1 && encoder->memory.cache)
    return att_fail(ATT_WRONG_STATE, "%lld texts at once: a decoder looks at one",
                    (long long)n_texts);
  int64_t total = 0;
  for (int64_t t = 0; t < n_texts; t++) {
    ATT_TRY(check_text(session, &texts[t], t));
    total += texts[t].n;
    if (total > encoder->room)
      return att_fail(ATT_CONTEXT_FULL, "texts 0 to %lld have %lld tokens, the encoder takes %lld",
                      (long long)t, (long long)total, (long long)encoder->room);
  }
  for (const att_observer *o = session->observers; o; o = o->next)
    if (total > o->text_limit)
      return att_fail(ATT_CONTEXT_FULL, "%lld tokens are more than a capture's %lld positions",
                      (long long)total, (long long)o->text_limit);
  return ATT_OK;
}

/* ---- reading ---- */

/* Keys and values of what was read, for each layer of the decoder. */
static att_status remember(att_session *session, const att_tap *tap) {
  const att_model *model = session->model;
  att_encoder *encoder = &session->encoder;
  att_cache *cache = encoder->memory.cache;
  ATT_TRY(att_cache_truncate(cache, 0, 0));
  for (int64_t l = 0; l < model->config.layers; l++)
    ATT_TRY(att_cross_attention_read(&model->weights.layer[l].cross, model->runtime, cache, l,
                                     encoder->act.normed, encoder->rows, encoder->act.k,
                                     encoder->act.v, tap));
  ATT_TRY(att_cache_advance(cache, 0, encoder->rows));
  encoder->memory.length = encoder->rows;
  return ATT_OK;
}

/* The encoder of an encoder-decoder ends with a norm of its own. */
static att_status finish(att_session *session, const att_tap *tap) {
  const att_model *model = session->model;
  att_encoder *encoder = &session->encoder;
  if (!model->config.encoder_layers) return ATT_OK;
  att_norm_forward(model->runtime, &model->weights.encoder_norm, encoder->act.resid, encoder->rows,
                   encoder->act.normed);
  att_tap_rows(tap, ATT_SITE_LN_FINAL, 0, encoder->act.normed, encoder->rows, model->config.width);
  session->in_encoder = false;
  return remember(session, tap);
}

static att_status read_texts(att_session *session, const att_text *texts, int64_t n_texts) {
  const att_model *model = session->model;
  att_encoder *encoder = &session->encoder;
  int64_t layers = model->config.encoder_layers;
  const att_layer_weights *stack = layers ? model->weights.encoder : model->weights.layer;
  if (!layers) layers = model->config.layers;
  att_encoder_gather(encoder, texts, n_texts);
  att_attention_pass pass = att_encoder_pass(encoder, model, 0, session->block, session->span);
  pass.tap = session->observers ? &session->observers->tap : NULL;
  att_token_rows rows = {.tokens = encoder->tokens,
                         .types = encoder->types,
                         .positions = encoder->positions,
                         .rows = encoder->rows};
  att_embed_forward(model, &encoder->act, &rows, pass.tap);
  for (; pass.layer < layers; pass.layer++)
    ATT_TRY(att_block_forward(model, &stack[pass.layer], &encoder->act, &pass));
  ATT_TRY(finish(session, pass.tap));
  if (pass.tap && model->config.fill_head)
    att_final_norm_forward(model, &encoder->act, 0, encoder->rows, pass.tap);
  return ATT_OK;
}

att_status att_session_encode(att_session *session, const att_text *texts, int64_t n_texts) {
  ATT_TRY(check_texts(session, texts, n_texts));
  ATT_TRY(att_session_truncate(session, 0));
  uint64_t mode = att_float_mode_enter();
  session->encoder.rows = 0;
  session->in_encoder = session->model->config.encoder_layers > 0;
  att_status status = read_texts(session, texts, n_texts);
  session->in_encoder = false;
  att_float_mode_leave(mode);
  if (status != ATT_OK) {
    session->encoder.rows = session->encoder.memory.length = 0;
    return status;
  }
  if (!session->cache) session->length = session->encoder.rows;
  att_session_tell(session);
  return ATT_OK;
}

/* ---- what is made of it ---- */

att_view att_session_hidden(const att_session *session) {
  if (!session || !session->encoder.rows) return att_view_none();
  const att_encoder *encoder = &session->encoder;
  bool normed = session->model->config.encoder_layers > 0;
  return att_view_of(normed ? encoder->act.normed : encoder->act.resid, ATT_F32, 2,
                     (int64_t[]){encoder->rows, session->model->config.width});
}

static att_status check_encoded(const att_session *session) {
  if (!session) return att_fail(ATT_BAD_ARGUMENT, "session is NULL");
  if (session->encoder.rows) return ATT_OK;
  return att_fail(ATT_WRONG_STATE, "the session has encoded nothing");
}

/* y [C] = mean of rows begin … end-1 of x [.,C], one chain over ascending rows. */
static void mean_rows(float *y, const float *x, int64_t begin, int64_t end, int64_t c) {
  for (int64_t k = 0; k < c; k++) {
    float sum = 0;
    for (int64_t r = begin; r < end; r++) sum += x[r * c + k];
    y[k] = sum / (float)(end - begin);
  }
}

/* One text's vector, in the first row of `branch`. */
static const float *pool_text(const att_session *session, int64_t text, att_pooling pooling) {
  const att_encoder *encoder = &session->encoder;
  const att_model *model = session->model;
  int64_t c = model->config.width;
  const float *x = att_session_hidden(session).data;
  const int32_t *begin = encoder->text_begin + text;
  float *y = encoder->act.branch;
  if (pooling == ATT_POOL_CLS) return x + begin[0] * c;
  if (pooling == ATT_POOL_MEAN) {
    mean_rows(y, x, begin[0], begin[1], c);
    return y;
  }
  att_linear_forward(model->runtime, &model->weights.pooler, x + begin[0] * c, 1, y);
  model->runtime->kernels->map_tanh(y, y, c);
  return y;
}

att_status att_session_pool(att_session *session, att_view out, att_pooling pooling) {
  ATT_TRY(check_encoded(session));
  const att_encoder *encoder = &session->encoder;
  int64_t c = session->model->config.width;
  ATT_TRY(att_view_check_shape(&out, "out", 2, (int64_t[]){encoder->n_texts, c}));
  if (out.dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "out is %s, not f32", att_dtype_name(out.dtype));
  if (att_view_repeats(&out)) return att_fail(ATT_BAD_ARGUMENT, "out names an element twice");
  if (pooling != ATT_POOL_CLS && pooling != ATT_POOL_MEAN && pooling != ATT_POOL_HEAD)
    return att_fail(ATT_BAD_ARGUMENT, "pooling %d is not one of cls, mean, head", (int)pooling);
  if (pooling == ATT_POOL_HEAD && !session->model->config.pooler)
    return att_fail(ATT_UNSUPPORTED, "%s has no pooling head", session->model->name);
  uint64_t mode = att_float_mode_enter();
  for (int64_t t = 0; t < encoder->n_texts; t++) {
    const float *y = pool_text(session, t, pooling);
    float *to = (float *)out.data + t * out.stride[0];
    for (int64_t k = 0; k < c; k++) to[k * out.stride[1]] = y[k];
  }
  att_float_mode_leave(mode);
  return ATT_OK;
}

static att_status check_predict(const att_session *session, const att_view *logits,
                                const int64_t *rows, int64_t n) {
  ATT_TRY(check_encoded(session));
  int64_t vocab = session->model->config.vocab, have = session->encoder.rows;
  if (!session->model->config.fill_head)
    return att_fail(ATT_UNSUPPORTED, "%s does not fill gaps: it has no head for tokens",
                    session->model->name);
  if (n < 1 || (!rows && n > have))
    return att_fail(ATT_BAD_ARGUMENT, "n is %lld of %lld rows", (long long)n, (long long)have);
  for (int64_t i = 0; rows && i < n; i++)
    if (rows[i] < 0 || rows[i] >= have)
      return att_fail(ATT_BAD_ARGUMENT, "rows[%lld] is %lld of %lld rows", (long long)i,
                      (long long)rows[i], (long long)have);
  ATT_TRY(att_view_check_shape(logits, "logits", 2, (int64_t[]){n, vocab}));
  if (logits->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "logits are %s, not f32", att_dtype_name(logits->dtype));
  if (!att_view_is_contiguous(logits))
    return att_fail(ATT_BAD_SHAPE, "logits do not lie one after the other");
  return ATT_OK;
}

att_status att_session_predict(att_session *session, att_view logits, const int64_t *rows,
                               int64_t n) {
  ATT_TRY(check_predict(session, &logits, rows, n));
  const att_model *model = session->model;
  att_activations *act = &session->encoder.act;
  float *out = logits.data;
  uint64_t mode = att_float_mode_enter();
  if (!rows) {
    att_final_norm_forward(model, act, 0, n, NULL);
    att_output_forward(model, act->normed, n, out);
  }
  for (int64_t i = 0; rows && i < n; i++) {
    att_final_norm_forward(model, act, rows[i], rows[i] + 1, NULL);
    att_output_forward(model, act->normed, 1, out + i * model->config.vocab);
  }
  att_float_mode_leave(mode);
  return ATT_OK;
}
