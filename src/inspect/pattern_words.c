/* A pattern over words: what their tokens do together.
 *
 * A row of weights is a share of 1. The weight that a word gets is the sum of what its
 * tokens get, and a word of several queries looks as they do on average: rows sum to what
 * they did, which neither means over keys nor sums over queries would leave so. */
#include "attend/pattern.h"
#include "base/alloc.h"
#include "tensor/shape.h"

/* Words are numbered in the order of their tokens and have each at least one. */
static att_status check_words(const int64_t *word, int64_t tokens, int64_t words,
                              const char *whose) {
  if (!word) return att_fail(ATT_BAD_ARGUMENT, "words of %s are NULL", whose);
  for (int64_t i = 0, last = -1; i < tokens; last = word[i++])
    if (word[i] != last && word[i] != last + 1)
      return att_fail(ATT_BAD_ARGUMENT, "%s %lld is of word %lld, the one before of %lld", whose,
                      (long long)i, (long long)word[i], (long long)last);
  const int64_t n = tokens ? word[tokens - 1] + 1 : 0;
  if (n != words)
    return att_fail(ATT_BAD_SHAPE, "out has room for %lld words of %s, there are %lld",
                    (long long)words, whose, (long long)n);
  return ATT_OK;
}

static att_status check(const att_view *out, const att_view *weights, const int64_t *query_word,
                        const int64_t *key_word) {
  const att_view *const views[2] = {out, weights};
  for (int i = 0; i < 2; i++) {
    ATT_TRY(att_view_check(views[i], i ? "weights" : "out", 2));
    if (views[i]->dtype != ATT_F32)
      return att_fail(ATT_BAD_DTYPE, "%s are %s, not f32", i ? "weights" : "out",
                      att_dtype_name(views[i]->dtype));
  }
  ATT_TRY(check_words(query_word, weights->shape[0], out->shape[0], "query"));
  return check_words(key_word, weights->shape[1], out->shape[1], "key");
}

/* One row of `out` from the rows first … end-1 of weights. */
static void join(double *sums, const att_view *out, int64_t row, const att_view *weights,
                 int64_t first, int64_t end, const int64_t *key_word) {
  for (int64_t w = 0; w < out->shape[1]; w++) sums[w] = 0;
  for (int64_t i = first; i < end; i++) {
    const float *x = (const float *)weights->data + i * weights->stride[0];
    for (int64_t j = 0; j < weights->shape[1]; j++)
      sums[key_word[j]] += (double)x[j * weights->stride[1]];
  }
  float *to = (float *)out->data + row * out->stride[0];
  for (int64_t w = 0; w < out->shape[1]; w++)
    to[w * out->stride[1]] = (float)(sums[w] / (double)(end - first));
}

att_status att_pattern_words(att_view out, att_runtime *runtime, att_view weights,
                             const int64_t *query_word, const int64_t *key_word) {
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "runtime is NULL");
  ATT_TRY(check(&out, &weights, query_word, key_word));
  double *sums;
  ATT_TRY(att_alloc((void **)&sums, runtime, out.shape[1], sizeof *sums, "sums of words"));
  for (int64_t i = 0, end; i < weights.shape[0]; i = end) {
    for (end = i + 1; end < weights.shape[0] && query_word[end] == query_word[i];) end++;
    join(sums, &out, query_word[i], &weights, i, end, key_word);
  }
  att_release(runtime, sums, out.shape[1], sizeof *sums);
  return ATT_OK;
}
