/* Choosing a token: penalty, temperature, softmax, filters, draw. */
#include "generate/sampler.h"

#include <math.h>

#include "base/alloc.h"
#include "base/float_mode.h"
#include "base/rng.h"
#include "base/status.h"
#include "kernels/kernels.h"

void att_sampler_options_init(att_sampler_options *options) {
  if (options)
    *options = (att_sampler_options){.struct_size = sizeof *options,
                                     .temperature = 1,
                                     .top_p = 1,
                                     .repetition = 1,
                                     .repetition_last = 64};
}

static att_status check_options(const att_sampler_options *o, int64_t vocab) {
  if (o->struct_size != sizeof *o)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_sampler_options_init");
  if (vocab < 1 || vocab > INT32_MAX)
    return att_fail(ATT_BAD_ARGUMENT, "a vocabulary of %lld", (long long)vocab);
  if (!(o->temperature >= 0 && isfinite(o->temperature)))
    return att_fail(ATT_BAD_ARGUMENT, "temperature is %g, not 0 or more", o->temperature);
  if (o->top_k < 0)
    return att_fail(ATT_BAD_ARGUMENT, "top_k is %lld, not 0 or more", (long long)o->top_k);
  if (!(o->top_p > 0 && o->top_p <= 1))
    return att_fail(ATT_BAD_ARGUMENT, "top_p is %g, not above 0 and at most 1", o->top_p);
  if (!(o->min_p >= 0 && o->min_p < 1))
    return att_fail(ATT_BAD_ARGUMENT, "min_p is %g, not from 0 to below 1", o->min_p);
  if (!(o->repetition >= 1 && isfinite(o->repetition)))
    return att_fail(ATT_BAD_ARGUMENT, "repetition is %g, not 1 or more", o->repetition);
  if (o->repetition_last < 0)
    return att_fail(ATT_BAD_ARGUMENT, "repetition_last is %lld, not 0 or more",
                    (long long)o->repetition_last);
  return ATT_OK;
}

static att_status allocate(att_sampler *s) {
  ATT_TRY(att_alloc((void **)&s->logits, s->runtime, s->vocab, sizeof *s->logits, "logits"));
  ATT_TRY(att_alloc((void **)&s->shares, s->runtime, s->vocab, sizeof *s->shares, "shares"));
  ATT_TRY(att_alloc((void **)&s->order, s->runtime, s->vocab, sizeof *s->order, "an order"));
  return att_alloc((void **)&s->seen, s->runtime, s->vocab, sizeof *s->seen, "seen tokens");
}

att_status att_sampler_create(att_sampler **out, att_runtime *runtime,
                              const att_sampler_options *options, int64_t vocab) {
  if (!out || !runtime) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", out ? "runtime" : "out");
  att_sampler_options all;
  att_sampler_options_init(&all);
  if (options) all = *options;
  ATT_TRY(check_options(&all, vocab));
  att_sampler *sampler;
  ATT_TRY(att_alloc((void **)&sampler, runtime, 1, sizeof *sampler, "a sampler"));
  sampler->runtime = runtime;
  sampler->options = all;
  sampler->vocab = vocab;
  att_status status = allocate(sampler);
  if (status == ATT_OK)
    *out = sampler;
  else
    att_sampler_free(sampler);
  return status;
}

void att_sampler_free(att_sampler *s) {
  if (!s) return;
  const att_runtime *runtime = s->runtime;
  att_release(runtime, s->logits, s->vocab, sizeof *s->logits);
  att_release(runtime, s->shares, s->vocab, sizeof *s->shares);
  att_release(runtime, s->order, s->vocab, sizeof *s->order);
  att_release(runtime, s->seen, s->vocab, sizeof *s->seen);
  att_release(runtime, s, 1, sizeof *s);
}

static att_status copy_logits(att_sampler *s, const att_view *logits) {
  if (!logits->data || logits->dtype != ATT_F32)
    return att_fail(logits->data ? ATT_BAD_DTYPE : ATT_BAD_ARGUMENT, "logits are %s",
                    logits->data ? "not f32" : "absent");
  if (logits->ndim != 1 || logits->shape[0] != s->vocab)
    return att_fail(ATT_BAD_SHAPE, "logits are not [%lld]", (long long)s->vocab);
  const float *x = logits->data;
  bool any = false;
  for (int64_t id = 0; id < s->vocab; id++) {
    float logit = x[id * logits->stride[0]];
    if (isnan(logit) || logit == INFINITY)
      return att_fail(ATT_BAD_ARGUMENT, "the logit of token %lld is %g", (long long)id,
                      (double)logit);
    s->logits[id] = logit;
    any = any || logit > -INFINITY;
  }
  return any ? ATT_OK : att_fail(ATT_BAD_ARGUMENT, "every logit is -inf: no token is possible");
}

static att_status penalise(att_sampler *s, const int32_t *tokens, int64_t n) {
  float penalty = (float)s->options.repetition;
  int64_t first = n > s->options.repetition_last ? n - s->options.repetition_last : 0;
  s->picks++;
  if (penalty == 1) return ATT_OK;
  for (int64_t i = first; i < n; i++) {
    int32_t id = tokens[i];
    if (id < 0 || id >= s->vocab)
      return att_fail(ATT_BAD_ARGUMENT, "token %lld is id %d, outside the vocabulary of %lld",
                      (long long)i, (int)id, (long long)s->vocab);
    if (s->seen[id] == s->picks) continue;
    s->seen[id] = s->picks;
    s->logits[id] = s->logits[id] > 0 ? s->logits[id] / penalty : s->logits[id] * penalty;
  }
  return ATT_OK;
}

static int32_t largest(const att_sampler *s) {
  int32_t best = 0;
  for (int32_t id = 1; id < s->vocab; id++)
    if (s->logits[id] > s->logits[best]) best = id;
  return best;
}

/* softmax(logits / t); the largest is taken off first, so that a tiny t cannot
 * overflow. */
static void take_shares(att_sampler *s, float top) {
  float temperature = (float)s->options.temperature;
  for (int64_t id = 0; id < s->vocab; id++) s->shares[id] = (s->logits[id] - top) / temperature;
  s->runtime->kernels->softmax(s->shares, s->shares, s->vocab);
}

/* Uniform in [0,1), 53 bits, a function of seed and position alone. */
static double uniform_at(uint64_t seed, int64_t position) {
  uint64_t p = (uint64_t)position;
  uint32_t words[4], counter[4] = {(uint32_t)p, (uint32_t)(p >> 32), 0, 0};
  att_philox(words, counter, seed);
  uint64_t bits = ((uint64_t)words[1] << 32 | words[0]) >> 11;
  return (double)bits * 0x1p-53;
}

/* Sets the share of every token that the filters drop to 0; gives what is left. */
static double filter(att_sampler *s, int32_t best) {
  const att_sampler_options *o = &s->options;
  bool ordered = (o->top_k > 0 && o->top_k < s->vocab) || o->top_p < 1;
  int32_t last = ordered ? att_sampler_last_kept(s) : 0;
  float least = (float)o->min_p * s->shares[best];
  double left = 0;
  for (int32_t id = 0; id < s->vocab; id++) {
    bool kept = s->shares[id] >= least && !(ordered && att_sampler_before(s, last, id));
    if (!kept) s->shares[id] = 0;
    left += (double)s->shares[id];
  }
  return left;
}

static int32_t draw(const att_sampler *s, double left, double uniform) {
  double sum = 0, target = uniform * left;
  int32_t last = 0;
  for (int32_t id = 0; id < s->vocab; id++) {
    if (s->shares[id] == 0) continue;
    last = id;
    sum += (double)s->shares[id];
    if (sum > target) break;
  }
  return last; /* also where rounding lets target reach the whole sum */
}

static att_status pick(int32_t *out, att_sampler *sampler, const att_view *logits,
                       const int32_t *tokens, int64_t n) {
  ATT_TRY(copy_logits(sampler, logits));
  ATT_TRY(penalise(sampler, tokens, n));
  int32_t best = largest(sampler);
  if ((float)sampler->options.temperature == 0) {
    *out = best;
    return ATT_OK;
  }
  take_shares(sampler, sampler->logits[best]);
  double left = filter(sampler, best);
  *out = draw(sampler, left, uniform_at(sampler->options.seed, n));
  return ATT_OK;
}

att_status att_sampler_pick(int32_t *out, att_sampler *sampler, att_view logits,
                            const int32_t *tokens, int64_t n) {
  if (!out || !sampler) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", out ? "sampler" : "out");
  if (n < 0 || (n && !tokens))
    return att_fail(ATT_BAD_ARGUMENT, "%s", n < 0 ? "n is negative" : "tokens is NULL");
  uint64_t mode = att_float_mode_enter();
  att_status status = pick(out, sampler, &logits, tokens, n);
  att_float_mode_leave(mode);
  return status;
}
