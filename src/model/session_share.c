/* What sessions of one model share: beginnings that need not be read twice, and
 * passes over the weights. */
#include <string.h>

#include "base/float_mode.h"
#include "model/session.h"

enum { GROUP = 64 }; /* sessions in a pass */

/* Rotations that depend on the length of a text follow the session's context: the
 * same keys mean the same only where the tables begin alike. */
static bool turn_alike(const att_session *a, const att_session *b, int64_t length) {
  for (int i = 0; i < 2; i++) {
    const att_rope_table *x = &a->ropes[i], *y = &b->ropes[i];
    const size_t bytes = (size_t)(length * x->pairs) * sizeof(float);
    if (x->cosine && bytes &&
        (memcmp(x->cosine, y->cosine, bytes) || memcmp(x->sine, y->sine, bytes)))
      return false;
  }
  return true;
}

static att_status check_copy(const att_session *session, const att_session *source,
                             int64_t length) {
  if (!session || !source)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", session ? "source" : "session");
  if (session->model != source->model)
    return att_fail(ATT_BAD_ARGUMENT, "a copy between sessions of two models");
  if (!session->cache || session->encoder.room)
    return att_fail(ATT_UNSUPPORTED, "a session with an encoder cannot be copied");
  if (length < 0 || length > source->length)
    return att_fail(ATT_BAD_ARGUMENT, "length is %lld, not from 0 to the %lld positions read",
                    (long long)length, (long long)source->length);
  if (session != source && source->observers && source->observers->edited && length > 0)
    return att_fail(ATT_WRONG_STATE, "the %lld positions to copy were read under edits",
                    (long long)length);
  if (length > session->context)
    return att_fail(ATT_CONTEXT_FULL, "%lld positions are more than the context of %lld",
                    (long long)length, (long long)session->context);
  if (!turn_alike(session, source, length))
    return att_fail(ATT_UNSUPPORTED,
                    "positions are turned otherwise in a context of %lld than in one of %lld",
                    (long long)session->context, (long long)source->context);
  if (session != source && session->observers && length > 0)
    return att_fail(ATT_BAD_ARGUMENT, "a capture would miss the %lld positions copied",
                    (long long)length);
  return ATT_OK;
}

att_status att_session_copy(att_session *session, const att_session *source, int64_t length) {
  ATT_TRY(check_copy(session, source, length));
  if (session == source) return att_session_truncate(session, length);
  ATT_TRY(att_cache_copy(session->cache, 0, source->cache, 0, length));
  memcpy(session->tokens, source->tokens, (size_t)length * sizeof *session->tokens);
  session->length = length;
  session->n_logits = 0;
  return ATT_OK;
}

att_status att_session_keep_common(int64_t *out_kept, att_session *session, const int32_t *tokens,
                                   int64_t n) {
  if (!out_kept || !session || !tokens)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    !out_kept  ? "out_kept"
                    : !session ? "session"
                               : "tokens");
  if (n < 1) return att_fail(ATT_BAD_ARGUMENT, "n is %lld, not at least 1", (long long)n);
  int64_t most = session->length < n - 1 ? session->length : n - 1, kept = 0;
  while (kept < most && session->tokens[kept] == tokens[kept]) kept++;
  ATT_TRY(att_session_truncate(session, kept));
  *out_kept = kept;
  return ATT_OK;
}

static att_status check_step(att_session *const *sessions, const int32_t *tokens, int64_t count) {
  if (!sessions || !tokens)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", sessions ? "tokens" : "sessions");
  if (count < 1)
    return att_fail(ATT_BAD_ARGUMENT, "count is %lld, not at least 1", (long long)count);
  for (int64_t i = 0; i < count; i++) {
    ATT_TRY(att_session_check(sessions[i], &tokens[i], 1));
    if (sessions[i]->model != sessions[0]->model)
      return att_fail(ATT_BAD_ARGUMENT, "session %lld is of another model than session 0",
                      (long long)i);
    for (int64_t k = 0; k < i; k++)
      if (sessions[k] == sessions[i])
        return att_fail(ATT_BAD_ARGUMENT, "session %lld is session %lld again", (long long)i,
                        (long long)k);
  }
  return ATT_OK;
}

/* A session that looks at more than its own cache, or that is looked at, goes alone. */
static bool goes_along(const att_session *session) {
  return !session->observers && !session->encoder.room &&
         session->model->config.position != ATT_POSITION_RELATIVE;
}

/* Row i of the leader's scratch is session i's; all but attention takes the rows
 * together. */
static att_status read_group(att_session *const *sessions, const int32_t *tokens, int64_t n) {
  att_session *leader = sessions[0];
  const att_model *model = leader->model;
  const int64_t hd = att_config_size(&model->config, ATT_SIZE_HD);
  const int64_t gd = att_config_size(&model->config, ATT_SIZE_GD);
  att_attention_pass parts[GROUP], pass = att_session_pass(leader, 0, n);
  int64_t positions[GROUP];
  float *logits[GROUP];
  for (int64_t i = 0; i < n; i++) {
    parts[i] = att_session_pass(sessions[i], 0, 1);
    parts[i].q = pass.q + i * hd;
    parts[i].k = pass.k + i * gd;
    parts[i].v = pass.v + i * gd;
    parts[i].z = pass.z + i * hd;
    positions[i] = sessions[i]->length;
  }
  pass.parts = parts;
  pass.n_parts = n;
  att_token_rows read = {.tokens = tokens, .rows = n, .positions = positions};
  att_embed_forward(model, &leader->act, &read, NULL);
  for (; pass.layer < model->config.layers; pass.layer++)
    ATT_TRY(att_block_forward(model, &model->weights.layer[pass.layer], &leader->act, &pass));
  att_final_norm_forward(model, &leader->act, 0, n, NULL);
  for (int64_t i = 0; i < n; i++) logits[i] = sessions[i]->logits;
  att_output_forward_rows(model, leader->act.normed, n, logits);
  for (int64_t i = 0; i < n; i++) {
    sessions[i]->n_logits = 1;
    ATT_TRY(att_cache_advance(sessions[i]->cache, 0, 1));
    sessions[i]->tokens[sessions[i]->length++] = tokens[i];
  }
  return ATT_OK;
}

/* As many as go along, and as the first one's scratch has rows for. */
static int64_t group_at(att_session *const *sessions, int64_t count) {
  int64_t n = 0, most = sessions[0]->chunk < GROUP ? sessions[0]->chunk : GROUP;
  while (n < count && n < most && goes_along(sessions[n])) n++;
  return n;
}

static att_status read_step(att_session *const *sessions, const int32_t *tokens, int64_t count) {
  for (int64_t i = 0, n; i < count; i += n) {
    n = group_at(sessions + i, count - i);
    if (n > 1) {
      ATT_TRY(read_group(sessions + i, tokens + i, n));
    } else {
      n = 1;
      ATT_TRY(att_session_eval(sessions[i], &tokens[i], 1));
    }
  }
  return ATT_OK;
}

att_status att_session_step(att_session *const *sessions, const int32_t *tokens, int64_t count) {
  ATT_TRY(check_step(sessions, tokens, count));
  uint64_t mode = att_float_mode_enter();
  att_status status = read_step(sessions, tokens, count);
  att_float_mode_leave(mode);
  return status;
}
