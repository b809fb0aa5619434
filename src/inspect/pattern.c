/* Measures of attention patterns, row by row, in double. */
#include "attend/pattern.h"

#include <math.h>

#include "base/status.h"
#include "kernels/function64.h"

enum { ATT_NEEDS_SQUARE = 1, ATT_NEEDS_TOKENS = 2, ATT_IS_MASS = 4 };

static const struct {
  const char *name, *brief, *about;
  unsigned needs;
} list[ATT_PATTERN_COUNT] = {
#define ATT_PATTERN(name, value, text, brief, needs, doc) [value] = {text, brief, doc, needs},
#include "attend/patterns.inc"
#undef ATT_PATTERN
};

static bool exists(att_pattern measure) { return (unsigned)measure < ATT_PATTERN_COUNT; }

const char *att_pattern_name(att_pattern measure) {
  return exists(measure) ? list[measure].name : NULL;
}

const char *att_pattern_brief(att_pattern measure) {
  return exists(measure) ? list[measure].brief : NULL;
}

const char *att_pattern_about(att_pattern measure) {
  return exists(measure) ? list[measure].about : NULL;
}

void att_pattern_options_init(att_pattern_options *options) {
  if (options) *options = (att_pattern_options){.struct_size = sizeof *options, .first_row = 1};
}

/* ---- rows ---- */

/* A row with what its measure may ask. */
typedef struct pattern_row {
  const float *weights;
  int64_t stride, i, keys;
  int64_t first; /* key: those before it are left out */
  double scale;
  const int32_t *tokens;
} pattern_row;

static double at(const pattern_row *r, int64_t j) {
  return (double)r->weights[j * r->stride] * r->scale;
}

static double mass_of(const pattern_row *r) {
  double sum = 0;
  for (int64_t j = r->first; j < r->keys; j++) sum += at(r, j);
  return sum;
}

/* Weight on keys `shift` behind an earlier place of this row's token; *any tells if
 * there are some. */
static double mass_after_same(const pattern_row *r, int64_t shift, bool *any) {
  double sum = 0;
  for (int64_t j = r->first > shift ? r->first : shift; j - shift < r->i; j++)
    if (r->tokens[j - shift] == r->tokens[r->i]) {
      sum += at(r, j);
      *any = true;
    }
  return sum;
}

static double mass_at(const pattern_row *r, int64_t j, bool *any) {
  *any = j >= r->first && j < r->keys;
  return *any ? at(r, j) : 0;
}

static double entropy_of(const pattern_row *r) {
  double sum = 0;
  for (int64_t j = r->first; j < r->keys; j++) {
    double a = at(r, j);
    if (!(a <= 0)) sum -= a * att_log64(a); /* of what is no number: that */
  }
  return sum;
}

static double distance_of(const pattern_row *r) {
  double sum = 0;
  for (int64_t j = r->first; j < r->keys; j++)
    sum += at(r, j) * (double)(j < r->i ? r->i - j : j - r->i);
  return sum;
}

static double row_value(att_pattern measure, const pattern_row *r, bool *any) {
  *any = false;
  switch (measure) {
  case ATT_PATTERN_PREVIOUS: return mass_at(r, r->i - 1, any);
  case ATT_PATTERN_DUPLICATE: return mass_after_same(r, 0, any);
  case ATT_PATTERN_INDUCTION: return mass_after_same(r, 1, any);
  case ATT_PATTERN_FIRST: return mass_at(r, r->first, any);
  case ATT_PATTERN_SELF: return mass_at(r, r->i, any);
  case ATT_PATTERN_COUNT: break;
  case ATT_PATTERN_ENTROPY: *any = true; return entropy_of(r);
  case ATT_PATTERN_KEYS: *any = true; return att_exp64(entropy_of(r));
  case ATT_PATTERN_DISTANCE: *any = true; return distance_of(r);
  }
  return 0;
}

/* ---- matrices ---- */

static att_status check_weights(const att_view *weights) {
  if (!weights->data) return att_fail(ATT_BAD_ARGUMENT, "weights are absent");
  if (weights->ndim != 2)
    return att_fail(ATT_BAD_SHAPE, "weights have %d dimensions, not 2 (queries, keys)",
                    weights->ndim);
  if (weights->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "weights are %s, not f32", att_dtype_name(weights->dtype));
  return ATT_OK;
}

static att_status check(att_pattern measure, const att_view *weights, const int32_t *tokens,
                        const att_pattern_options *options) {
  if (!exists(measure)) return att_fail(ATT_BAD_ARGUMENT, "there is no measure %d", (int)measure);
  ATT_TRY(check_weights(weights));
  unsigned needs = list[measure].needs;
  if (options->struct_size != sizeof *options)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_pattern_options_init");
  if (options->first_row < 0)
    return att_fail(ATT_BAD_ARGUMENT, "first_row is %lld, negative", (long long)options->first_row);
  if (options->ratio && !(needs & ATT_IS_MASS))
    return att_fail(ATT_BAD_ARGUMENT, "%s is no share of the weight: it has no ratio",
                    list[measure].name);
  if ((needs & ATT_NEEDS_TOKENS) && !tokens)
    return att_fail(ATT_BAD_ARGUMENT, "%s needs the tokens", list[measure].name);
  if ((needs & ATT_NEEDS_SQUARE) && weights->shape[0] != weights->shape[1])
    return att_fail(ATT_BAD_SHAPE,
                    "%s is for queries and keys at the same positions, not %lld x %lld",
                    list[measure].name, (long long)weights->shape[0], (long long)weights->shape[1]);
  return ATT_OK;
}

static pattern_row row_at(const att_view *weights, int64_t i, const int32_t *tokens, bool without) {
  pattern_row r = {.weights = (const float *)weights->data + i * weights->stride[0],
                   .stride = weights->stride[1],
                   .i = i,
                   .keys = weights->shape[1],
                   .first = without ? 1 : 0,
                   .scale = 1,
                   .tokens = tokens};
  double rest = without ? mass_of(&r) : 1;
  if (rest > 0) r.scale = 1 / rest;
  return r;
}

att_status att_pattern_measure(att_pattern_value *out, att_pattern measure, att_view weights,
                               const int32_t *tokens, const att_pattern_options *options) {
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "out is NULL");
  att_pattern_value v = {.value = NAN};
  att_pattern_options_init(&v.options);
  if (options) v.options = *options;
  ATT_TRY(check(measure, &weights, tokens, &v.options));
  double sum = 0, all = 0;
  for (int64_t i = v.options.first_row; i < weights.shape[0]; i++) {
    pattern_row r = row_at(&weights, i, tokens, v.options.without_first_key);
    bool any;
    double x = row_value(measure, &r, &any);
    if (v.options.ratio) all += mass_of(&r);
    if (!any) continue;
    sum += x;
    v.rows++;
  }
  if (v.options.ratio && all > 0) v.value = sum / all;
  if (!v.options.ratio && v.rows) v.value = sum / (double)v.rows;
  *out = v;
  return ATT_OK;
}

att_status att_pattern_diagonal(att_pattern_value *out, att_view weights, int64_t offset,
                                int64_t first_row) {
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "out is NULL");
  ATT_TRY(check_weights(&weights));
  if (first_row < 0)
    return att_fail(ATT_BAD_ARGUMENT, "first_row is %lld, negative", (long long)first_row);
  att_pattern_value v = {.value = NAN};
  att_pattern_options_init(&v.options);
  v.options.first_row = first_row;
  double sum = 0;
  for (int64_t i = first_row; i < weights.shape[0]; i++) {
    pattern_row r = row_at(&weights, i, NULL, false);
    bool any;
    sum += mass_at(&r, i - offset, &any);
    v.rows += any;
  }
  if (v.rows) v.value = sum / (double)v.rows;
  *out = v;
  return ATT_OK;
}
