/* watch.c — scores of heads, from captured attention patterns. */
#include "watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend/capture.h"
#include "attend/pattern.h"
#include "attend/session.h"
#include "curve.h"
#include "memory.h"

const char *const watch_names[WATCH_SCORES] = {"previous", "induction", "duplicate", "first",
                                               "entropy"};

/* The scores of one head on `period` random tokens that are there twice. */
static att_status score(double out[WATCH_SCORES], att_view weights, int64_t period) {
  att_pattern_value v[WATCH_SCORES] = {0};
  att_status status = att_pattern_measure(&v[0], ATT_PATTERN_PREVIOUS, weights, NULL, NULL);
  if (status == ATT_OK) status = att_pattern_diagonal(&v[1], weights, period - 1, period);
  if (status == ATT_OK) status = att_pattern_diagonal(&v[2], weights, period, period);
  if (status == ATT_OK) status = att_pattern_measure(&v[3], ATT_PATTERN_FIRST, weights, NULL, NULL);
  if (status == ATT_OK)
    status = att_pattern_measure(&v[4], ATT_PATTERN_ENTROPY, weights, NULL, NULL);
  for (int i = 0; i < WATCH_SCORES; i++) out[i] = v[i].value;
  return status;
}

static att_status read_patterns(double *scores, const att_model_info *info,
                                const att_capture *capture, int64_t period) {
  for (int64_t l = 0; l < info->layers; l++) {
    char name[64];
    att_view pattern;
    snprintf(name, sizeof name, "blocks.%lld.attn.hook_pattern", (long long)l);
    att_status status = att_capture_get(&pattern, capture, name);
    if (status != ATT_OK) return status;
    for (int64_t h = 0; h < info->heads && status == ATT_OK; h++)
      status = score(scores + (l * info->heads + h) * WATCH_SCORES, att_view_select(pattern, 0, h),
                     period);
    if (status != ATT_OK) return status;
  }
  return ATT_OK;
}

static bool is_in(const int32_t *ids, int64_t n, int32_t id) {
  for (int64_t i = 0; i < n; i++)
    if (ids[i] == id) return true;
  return false;
}

/* Whether a token has a letter or digit, or anything beyond ASCII. Without a tokenizer
 * none is known to lack them. */
static bool is_wordlike(const att_tokenizer *tokenizer, int32_t id) {
  const char *bytes;
  size_t n;
  if (!tokenizer || id >= att_tokenizer_size(tokenizer)) return true;
  if (att_tokenizer_is_special(tokenizer, id)) return false;
  if (att_tokenizer_bytes(&bytes, &n, tokenizer, id) != ATT_OK) return false;
  for (size_t i = 0; i < n; i++) {
    const unsigned char c = (unsigned char)bytes[i];
    if ((c | 32) >= 'a' && (c | 32) <= 'z') return true;
    if ((c >= '0' && c <= '9') || c >= 0x80) return true;
  }
  return false;
}

void watch_tokens(int32_t *ids, int64_t period, int64_t vocab, const att_tokenizer *tokenizer,
                  uint64_t seed) {
  uint64_t state = seed * 2862933555777941757u + 3037000493u;
  int64_t usable = 0;
  for (int32_t id = 0; id < vocab; id++) usable += is_wordlike(tokenizer, id);
  for (int64_t i = 0; i < period; i++) {
    int32_t id;
    do {
      state = state * 6364136223846793005u + 1442695040888963407u;
      id = (int32_t)((state >> 33) % (uint64_t)vocab);
    } while ((usable > 0 && !is_wordlike(tokenizer, id)) || (i < usable && is_in(ids, i, id)));
    ids[i] = ids[i + period] = id;
  }
}

int64_t watch_period(const att_model_info *info) {
  return info->context / 2 < WATCH_PERIOD ? info->context / 2 : WATCH_PERIOD;
}

att_status watch_heads(double *scores, double *most, const att_model *model,
                       const att_tokenizer *tokenizer, uint64_t seed) {
  const att_model_info *info = att_model_describe(model);
  int64_t period = watch_period(info);
  int32_t ids[2 * WATCH_PERIOD];
  watch_tokens(ids, period, info->vocab, tokenizer, seed);
  att_session *session = NULL;
  att_capture *capture = NULL;
  att_session_options options;
  att_session_options_init(&options);
  options.context = 2 * period;
  att_status status = att_session_create(&session, model, &options);
  if (status == ATT_OK)
    status = att_capture_create(&capture, session, "*hook_pattern", 2 * period, 1 << 28);
  if (status == ATT_OK) status = att_session_eval(session, ids, 2 * period);
  if (status == ATT_OK) status = read_patterns(scores, info, capture, period);
  *most = log(2 * (double)period);
  att_capture_free(capture);
  att_session_free(session);
  return status;
}

/* ---- how they form ---- */

att_status watch_again(watch *w, const att_model *model, const att_tokenizer *tokenizer,
                       uint64_t seed) {
  const att_model_info *info = att_model_describe(model);
  size_t n = (size_t)(info->layers * info->heads) * WATCH_SCORES;
  w->layers = info->layers, w->heads = info->heads;
  if (w->n == WATCH_KEPT) {
    free(w->scores[0]);
    memmove(w->scores, w->scores + 1, --w->n * sizeof *w->scores);
  }
  w->scores[w->n] = memory_get(n, sizeof **w->scores);
  return watch_heads(w->scores[w->n++], &w->most, model, tokenizer, seed);
}

void watch_free(watch *w) {
  while (w->n > 0) free(w->scores[--w->n]);
}

void watch_json(json *j, const double *scores, int64_t layers, int64_t heads) {
  json_open(j, "heads", '[');
  for (int64_t i = 0; i < layers * heads; i++) {
    json_open(j, NULL, '{');
    json_int(j, "layer", i / heads);
    json_int(j, "head", i % heads);
    for (int s = 0; s < WATCH_SCORES; s++)
      json_double(j, watch_names[s], scores[i * WATCH_SCORES + s]);
    json_close(j);
  }
  json_close(j);
}

void watch_print(FILE *out, const term *t, const watch *w) {
  fprintf(out, "  head  ");
  for (int s = 0; s < WATCH_SCORES; s++)
    fprintf(out, s < WATCH_SCORES - 1 ? "%-13s" : "%s\n", watch_names[s]);
  for (int64_t i = 0; i < w->layers * w->heads; i++) {
    char head[48];
    snprintf(head, sizeof head, "%lld.%lld", (long long)(i / w->heads), (long long)(i % w->heads));
    fprintf(out, "  %-5s", head);
    for (int s = 0; s < WATCH_SCORES; s++) {
      double most = s == WATCH_SCORES - 1 ? w->most : 1;
      fprintf(out, " %.2f ", w->scores[w->n - 1][i * WATCH_SCORES + s]);
      for (int k = 0; k < w->n; k++) {
        char block[4];
        curve_block(block, t, w->scores[k][i * WATCH_SCORES + s] / most);
        fputs(block, out);
      }
      if (s < WATCH_SCORES - 1) fprintf(out, "%*s", WATCH_KEPT - w->n + 1, "");
    }
    fputc('\n', out);
  }
}
