/* What sessions of one model share: beginnings that need not be read twice. */
#include <string.h>

#include "model/session.h"

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
  if (length > session->context)
    return att_fail(ATT_CONTEXT_FULL, "%lld positions are more than the context of %lld",
                    (long long)length, (long long)session->context);
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

att_status att_session_step(att_session *const *sessions, const int32_t *tokens, int64_t count) {
  ATT_TRY(check_step(sessions, tokens, count));
  for (int64_t i = 0; i < count; i++) ATT_TRY(att_session_eval(sessions[i], &tokens[i], 1));
  return ATT_OK;
}
