/* Log-probabilities from logits. */
#include "attend/score.h"

#include <math.h>

#include "base/float_mode.h"
#include "base/status.h"
#include "kernels/function64.h"
#include "kernels/kernels.h"
#include "model/session.h"

enum { BLOCK = 256 };

static att_status check_logits(const att_runtime *runtime, const att_view *logits) {
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "runtime is NULL");
  if (!logits->data || logits->dtype != ATT_F32)
    return att_fail(logits->data ? ATT_BAD_DTYPE : ATT_BAD_ARGUMENT, "logits are %s",
                    logits->data ? "not f32" : "absent");
  if (logits->ndim != 1 || logits->shape[0] < 1 || logits->shape[0] > INT32_MAX)
    return att_fail(ATT_BAD_SHAPE, "logits are not [V]");
  return ATT_OK;
}

static float at(const att_view *logits, int64_t id) {
  return ((const float *)logits->data)[id * logits->stride[0]];
}

/* max + log sum exp(x - max): what to take off a logit. */
static att_status normalizer(double *out, const att_runtime *runtime, const att_view *logits) {
  int64_t v = logits->shape[0];
  float top = -INFINITY, block[BLOCK];
  double sum = 0;
  for (int64_t id = 0; id < v; id++) {
    float x = at(logits, id);
    if (isnan(x) || x == INFINITY)
      return att_fail(ATT_BAD_ARGUMENT, "the logit of token %lld is %g", (long long)id, (double)x);
    top = x > top ? x : top;
  }
  if (top == -INFINITY)
    return att_fail(ATT_BAD_ARGUMENT, "every logit is -inf: no token is possible");
  for (int64_t first = 0; first < v; first += BLOCK) {
    int64_t n = v - first < BLOCK ? v - first : BLOCK;
    for (int64_t i = 0; i < n; i++) block[i] = at(logits, first + i) - top;
    runtime->kernels->map_exp(block, block, n);
    for (int64_t i = 0; i < n; i++) sum += (double)block[i];
  }
  *out = (double)top + att_log64(sum);
  return ATT_OK;
}

static att_status log_probability(double *out, const att_runtime *runtime, const att_view *logits,
                                  int32_t id) {
  double taken_off;
  if (id < 0 || id >= logits->shape[0])
    return att_fail(ATT_BAD_ARGUMENT, "id %d is outside the vocabulary of %lld", (int)id,
                    (long long)logits->shape[0]);
  ATT_TRY(normalizer(&taken_off, runtime, logits));
  *out = (double)at(logits, id) - taken_off;
  return ATT_OK;
}

att_status att_log_probability(double *out, const att_runtime *runtime, att_view logits,
                               int32_t id) {
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "out is NULL");
  ATT_TRY(check_logits(runtime, &logits));
  uint64_t mode = att_float_mode_enter();
  att_status status = log_probability(out, runtime, &logits, id);
  att_float_mode_leave(mode);
  return status;
}

/* ---- the likeliest ---- */

static bool before(const att_view *logits, int32_t a, int32_t b) {
  float x = at(logits, a), y = at(logits, b);
  return x > y || (x == y && a < b);
}

/* Lets the last of heap[0 … n-1]'s parents hold nothing that comes before its
 * children: the heap's first is the last of those kept. */
static void sink(const att_view *logits, int32_t *heap, int64_t i, int64_t n) {
  int32_t id = heap[i];
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && before(logits, heap[child], heap[child + 1])) child++;
    if (!before(logits, id, heap[child])) break;
    heap[i] = heap[child];
  }
  heap[i] = id;
}

/* The first k in order, through a heap of those that may still be. */
static void choose(int32_t *ids, int64_t k, const att_view *logits) {
  for (int32_t id = 0; id < k; id++) ids[id] = id;
  for (int64_t i = k / 2; i-- > 0;) sink(logits, ids, i, k);
  for (int32_t id = (int32_t)k; id < logits->shape[0]; id++) {
    if (!before(logits, id, ids[0])) continue;
    ids[0] = id;
    sink(logits, ids, 0, k);
  }
  for (int64_t n = k; n > 1; n--) {
    int32_t last = ids[0];
    ids[0] = ids[n - 1];
    ids[n - 1] = last;
    sink(logits, ids, 0, n - 1);
  }
}

att_status att_likeliest(int32_t *ids, double *logs, int64_t k, const att_runtime *runtime,
                         att_view logits) {
  double taken_off;
  if (!ids || !logs) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", ids ? "logs" : "ids");
  ATT_TRY(check_logits(runtime, &logits));
  if (k < 1 || k > logits.shape[0])
    return att_fail(ATT_BAD_ARGUMENT, "k is %lld, not from 1 to the vocabulary of %lld",
                    (long long)k, (long long)logits.shape[0]);
  uint64_t mode = att_float_mode_enter();
  att_status status = normalizer(&taken_off, runtime, &logits);
  if (status == ATT_OK) {
    choose(ids, k, &logits);
    for (int64_t i = 0; i < k; i++) logs[i] = (double)at(&logits, ids[i]) - taken_off;
  }
  att_float_mode_leave(mode);
  return status;
}

/* ---- a text ---- */

/* Row `row` of the last eval's logits. */
static att_view logits_row(const att_session *session, int64_t row) {
  att_view logits = att_session_logits(session);
  return logits.ndim == 2 ? att_view_select(logits, 0, row) : logits;
}

static att_status score_rows(double *logs, att_session *session, const int32_t *tokens, int64_t n) {
  ATT_TRY(att_log_probability(logs, session->runtime, logits_row(session, session->n_logits - 1),
                              tokens[0]));
  ATT_TRY(att_session_eval(session, tokens, n));
  for (int64_t i = 1; i < n; i++)
    ATT_TRY(att_log_probability(logs + i, session->runtime, logits_row(session, i - 1), tokens[i]));
  return ATT_OK;
}

att_status att_session_score(double *logs, att_session *session, const int32_t *tokens, int64_t n) {
  if (!logs || !session || !tokens)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    !logs      ? "logs"
                    : !session ? "session"
                               : "tokens");
  if (n < 1) return att_fail(ATT_BAD_ARGUMENT, "n is %lld, not at least 1", (long long)n);
  if (n > session->context - session->length)
    return att_fail(ATT_CONTEXT_FULL,
                    "%lld tokens after the %lld already read are more than the context of %lld",
                    (long long)n, (long long)session->length, (long long)session->context);
  if (session->n_logits == 0)
    return att_fail(ATT_WRONG_STATE, "nothing predicts the first token: no token was read before");
  int64_t most = session->all_logits ? session->logit_rows : 1;
  for (int64_t first = 0, rows; first < n; first += rows) {
    rows = n - first < most ? n - first : most;
    ATT_TRY(score_rows(logs + first, session, tokens + first, rows));
  }
  return ATT_OK;
}
