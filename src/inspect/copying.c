/* Copying: the OV circuit of a head, by eigenvalues and token by token.
 *
 * O = U W_O W_V E^T, with rows of E and U the tokens' vectors, has the same values other
 * than 0 as the matrix W_V (E^T U) W_O of D by D: its middle E^T U is made once for all
 * heads. Norms are diagonal here (and, of a layer norm, a mean taken away): their sizes
 * depend on what is normed, are positive, and so change no sign. */
#include "attend/copying.h"

#include <math.h>

#include "attend/lens.h"
#include "attend/matrix.h"
#include "base/alloc.h"
#include "base/float_mode.h"
#include "inspect/eigenvalues.h"
#include "model/model.h"

enum { TOKENS_AT_ONCE = 256, ROWS_AT_ONCE = 16 };

struct att_copying {
  const att_model *model;
  att_copying_options options;
  att_matrix *middle; /* [C,C]: E^T U */
  float *mean;        /* [C]: of the rows of U; zeros where they are not centred */
};

void att_copying_options_init(att_copying_options *options) {
  if (options)
    *options = (att_copying_options){
        .struct_size = sizeof *options, .norms = true, .center = true, .top = 5};
}

/* ---- what all heads share ---- */

/* Rows first … first+n-1 of the embedding, and of the output matrix with its mean taken away. */
static void load_tokens(const att_copying *c, float *e, float *u, int64_t first, int64_t n) {
  const att_model_weights *w = &c->model->weights;
  const int64_t width = c->model->config.width;
  for (int64_t t = 0; t < n; t++) {
    att_embedding_row(&w->tokens, first + t, e + t * width);
    att_packed_row(&w->output.weight, first + t, u + t * width);
    for (int64_t k = 0; k < width; k++) u[t * width + k] -= c->mean[k];
  }
}

static void find_mean(att_copying *c, double *sums, float *row) {
  const att_config *config = &c->model->config;
  for (int64_t k = 0; k < config->width; k++) sums[k] = 0;
  for (int64_t t = 0; t < config->vocab; t++) {
    att_packed_row(&c->model->weights.output.weight, t, row);
    for (int64_t k = 0; k < config->width; k++) sums[k] += (double)row[k];
  }
  for (int64_t k = 0; k < config->width; k++) c->mean[k] = (float)(sums[k] / (double)config->vocab);
}

static att_status find_middle(att_copying *c, float *middle, float *rows) {
  const att_config *config = &c->model->config;
  const int64_t width = config->width;
  float *e = rows, *u = rows + TOKENS_AT_ONCE * width;
  att_matrix_gradient *sum;
  ATT_TRY(att_matrix_gradient_create(&sum, c->model->runtime, 1));
  const att_view out = att_view_of(middle, ATT_F32, 2, (int64_t[]){width, width});
  att_status status = ATT_OK;
  for (int64_t t = 0; t < config->vocab && status == ATT_OK; t += TOKENS_AT_ONCE) {
    const int64_t n = config->vocab - t < TOKENS_AT_ONCE ? config->vocab - t : TOKENS_AT_ONCE;
    load_tokens(c, e, u, t, n);
    const int64_t shape[] = {n, width}, cuts[] = {0, n};
    status = att_matrix_gradient_apply(sum, out, att_view_none(), att_view_of(e, ATT_F32, 2, shape),
                                       att_view_of(u, ATT_F32, 2, shape), cuts, 1, t > 0);
  }
  att_matrix_gradient_free(sum);
  return status == ATT_OK ? att_matrix_create(&c->middle, c->model->runtime, out) : status;
}

static att_status check_options(const att_model *model, const att_copying_options *options) {
  if (options->struct_size != sizeof *options)
    return att_fail(ATT_BAD_ARGUMENT, "options are not set by att_copying_options_init");
  if (options->top < 1)
    return att_fail(ATT_BAD_ARGUMENT, "top is %lld, not at least 1", (long long)options->top);
  if (model->config.bidirectional || model->config.encoder_layers)
    return att_fail(ATT_UNSUPPORTED, "this model is no decoder: it has no next token to copy");
  return ATT_OK;
}

static att_status fill(att_copying *c) {
  att_runtime *runtime = c->model->runtime;
  const int64_t width = c->model->config.width;
  const int64_t floats = width * (width + 2 * TOKENS_AT_ONCE);
  float *memory;
  double *sums;
  ATT_TRY(att_alloc((void **)&c->mean, runtime, width, sizeof *c->mean, "a mean"));
  ATT_TRY(att_alloc((void **)&sums, runtime, width, sizeof *sums, "sums of a mean"));
  att_status status =
      att_alloc((void **)&memory, runtime, floats, sizeof *memory, "a copying circuit");
  if (status == ATT_OK) {
    for (int64_t k = 0; k < width; k++) c->mean[k] = 0;
    const uint64_t mode = att_float_mode_enter();
    if (c->options.center) find_mean(c, sums, memory);
    status = find_middle(c, memory, memory + width * width);
    att_float_mode_leave(mode);
    att_release(runtime, memory, floats, sizeof *memory);
  }
  att_release(runtime, sums, width, sizeof *sums);
  return status;
}

att_status att_copying_create(att_copying **out, const att_model *model,
                              const att_copying_options *options) {
  if (!out || !model) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", out ? "model" : "out");
  att_copying_options chosen;
  att_copying_options_init(&chosen);
  if (options) chosen = *options;
  ATT_TRY(check_options(model, &chosen));
  att_copying *c;
  ATT_TRY(att_alloc((void **)&c, model->runtime, 1, sizeof *c, "a copying circuit"));
  *c = (att_copying){.model = model, .options = chosen};
  const att_status status = fill(c);
  if (status != ATT_OK) {
    att_copying_free(c);
    return status;
  }
  *out = c;
  return ATT_OK;
}

void att_copying_free(att_copying *c) {
  if (!c) return;
  att_runtime *runtime = c->model->runtime;
  att_matrix_free(c->middle);
  att_release(runtime, c->mean, c->model->config.width, sizeof *c->mean);
  att_release(runtime, c, 1, sizeof *c);
}

/* ---- one head ---- */

/* The part of a norm that does not depend on the row but for its size. */
static void pass_norm(const att_copying *c, const att_norm *norm, float *x, int64_t rows) {
  if (!c->options.norms || norm->kind == ATT_NORM_NONE) return;
  for (int64_t r = 0; r < rows; r++, x += norm->width) {
    double mean = 0;
    for (int64_t k = 0; norm->kind == ATT_NORM_LAYER && k < norm->width; k++)
      mean += (double)x[k] / (double)norm->width;
    for (int64_t k = 0; k < norm->width; k++)
      x[k] = (float)(((double)x[k] - mean) * (norm->weight ? (double)norm->weight[k] : 1));
  }
}

/* v [rows,D] of the head from rows [rows,C] of the stream; all [rows,G D] of the layer pass by. */
static void values_of(const att_copying *c, float *v, float *all, float *x, int64_t rows,
                      int64_t layer, int64_t head) {
  const att_config *config = &c->model->config;
  const att_layer_weights *w = &c->model->weights.layer[layer];
  const int64_t d = config->head_dim, g = head / (config->heads / config->kv_heads);
  att_linear plain = w->attention.v;
  plain.bias = NULL;
  pass_norm(c, &w->norm1, x, rows);
  att_linear_forward(c->model->runtime, &plain, x, rows, all);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t k = 0; k < d; k++) v[r * d + k] = all[(r * config->kv_heads + g) * d + k];
}

/* What these values add to the stream, as the output matrix will see it. */
static att_status outputs_of(const att_copying *c, float *y, float *v, int64_t rows, int64_t layer,
                             int64_t head) {
  const att_model_weights *w = &c->model->weights;
  const att_config *config = &c->model->config;
  ATT_TRY(att_head_output(att_view_of(y, ATT_F32, 2, (int64_t[]){rows, config->width}), c->model,
                          layer, head,
                          att_view_of(v, ATT_F32, 2, (int64_t[]){rows, config->head_dim})));
  pass_norm(c, &w->layer[layer].post1, y, rows);
  pass_norm(c, &w->norm, y, rows);
  return ATT_OK;
}

static att_status check_head(const void *out, const att_copying *c, int64_t layer, int64_t head) {
  if (!out || !c) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", out ? "copying" : "out");
  const att_config *config = &c->model->config;
  if (layer < 0 || layer >= config->layers || head < 0 || head >= config->heads)
    return att_fail(ATT_BAD_ARGUMENT, "there is no head %lld in layer %lld", (long long)head,
                    (long long)layer);
  return ATT_OK;
}

/* The matrix of D by D, from what each number of a value does. */
static att_status find_circuit(const att_copying *c, double *m, float *memory, int64_t layer,
                               int64_t head) {
  const att_config *config = &c->model->config;
  const int64_t d = config->head_dim, width = config->width;
  float *v = memory, *y = v + d * d, *x = y + d * width, *all = x + d * width;
  for (int64_t i = 0; i < d * d; i++) v[i] = i % (d + 1) == 0;
  ATT_TRY(outputs_of(c, y, v, d, layer, head));
  const int64_t shape[] = {d, width};
  ATT_TRY(att_matrix_apply(c->middle, att_view_of(x, ATT_F32, 2, shape),
                           att_view_of(y, ATT_F32, 2, shape), att_view_none(), att_view_none()));
  values_of(c, v, all, x, d, layer, head);
  for (int64_t i = 0; i < d * d; i++) m[i] = (double)v[i];
  return ATT_OK;
}

static void sum_up(att_copying_value *out, const att_complex *values, int64_t n) {
  double sum = 0, sizes = 0, positive = 0;
  for (int64_t i = 0; i < n; i++) {
    const double size = att_complex_size(values[i]);
    sum += values[i].re, sizes += size;
    if (values[i].re > 0) positive += size;
  }
  out->score = sizes > 0 ? sum / sizes : NAN;
  out->positive = sizes > 0 ? positive / sizes : NAN;
}

att_status att_copying_score(att_copying_value *out, const att_copying *c, int64_t layer,
                             int64_t head) {
  ATT_TRY(check_head(out, c, layer, head));
  const att_config *config = &c->model->config;
  att_runtime *runtime = c->model->runtime;
  const int64_t d = config->head_dim;
  const int64_t floats = d * (d + 2 * config->width + config->kv_heads * d);
  const int64_t numbers = d * d + d; /* complex; and a real matrix is half as many */
  float *memory;
  att_complex *scratch;
  ATT_TRY(att_alloc((void **)&memory, runtime, floats, sizeof *memory, "a head's circuit"));
  att_status status = att_alloc((void **)&scratch, runtime, numbers + d * d, sizeof *scratch,
                                "a head's eigenvalues");
  if (status == ATT_OK) {
    double *m = (double *)(scratch + numbers);
    const uint64_t mode = att_float_mode_enter();
    status = find_circuit(c, m, memory, layer, head);
    if (status == ATT_OK) status = att_eigenvalues(scratch + d * d, m, d, scratch);
    att_float_mode_leave(mode);
    if (status == ATT_OK) sum_up(out, scratch + d * d, d), out->options = c->options;
    att_release(runtime, scratch, numbers + d * d, sizeof *scratch);
  }
  att_release(runtime, memory, floats, sizeof *memory);
  return status;
}

/* ---- token by token ---- */

static att_status check_tokens(const att_copying *c, const int32_t *tokens, int64_t n) {
  if (!tokens || n < 1)
    return att_fail(ATT_BAD_ARGUMENT, "%lld tokens%s", (long long)n, tokens ? "" : " at NULL");
  for (int64_t i = 0; i < n; i++)
    if (tokens[i] < 0 || tokens[i] >= c->model->config.vocab)
      return att_fail(ATT_BAD_ARGUMENT, "token %d at %lld is not in a vocabulary of %lld",
                      (int)tokens[i], (long long)i, (long long)c->model->config.vocab);
  return ATT_OK;
}

/* Logits larger than the token's own, and half of those that are equal: of a circuit that does
 * nothing the token is in the middle. The mean over tokens, which centring takes from all
 * alike, is nothing to a rank. */
static double rank_of(const float *logits, int64_t vocab, int32_t token) {
  int64_t larger = 0, equal = -1;
  for (int64_t i = 0; i < vocab; i++) {
    larger += logits[i] > logits[token];
    equal += logits[i] == logits[token];
  }
  return (double)larger + 0.5 * (double)equal;
}

static att_status add_ranks(att_copying_tokens_value *sums, const att_copying *c, float *memory,
                            int64_t layer, int64_t head, const int32_t *tokens, int64_t n) {
  const att_config *config = &c->model->config;
  const int64_t d = config->head_dim, width = config->width;
  float *v = memory, *x = v + n * d, *all = x + n * width, *logits = all + n * config->kv_heads * d;
  for (int64_t i = 0; i < n; i++)
    att_embedding_row(&c->model->weights.tokens, tokens[i], x + i * width);
  values_of(c, v, all, x, n, layer, head);
  ATT_TRY(outputs_of(c, x, v, n, layer, head));
  att_linear plain = c->model->weights.output;
  plain.bias = NULL;
  att_linear_forward(c->model->runtime, &plain, x, n, logits);
  for (int64_t i = 0; i < n; i++) {
    const double rank = rank_of(logits + i * config->vocab, config->vocab, tokens[i]);
    sums->rank += rank;
    sums->share += rank < (double)c->options.top;
  }
  return ATT_OK;
}

att_status att_copying_tokens(att_copying_tokens_value *out, const att_copying *c, int64_t layer,
                              int64_t head, const int32_t *tokens, int64_t n) {
  ATT_TRY(check_head(out, c, layer, head));
  ATT_TRY(check_tokens(c, tokens, n));
  const att_config *config = &c->model->config;
  const int64_t row = config->head_dim * (1 + config->kv_heads) + config->width + config->vocab;
  const int64_t floats = ROWS_AT_ONCE * row;
  att_copying_tokens_value sums = {.tokens = n, .options = c->options};
  float *memory;
  ATT_TRY(att_alloc((void **)&memory, c->model->runtime, floats, sizeof *memory,
                    "rows of a head's circuit"));
  const uint64_t mode = att_float_mode_enter();
  att_status status = ATT_OK;
  for (int64_t i = 0; i < n && status == ATT_OK; i += ROWS_AT_ONCE)
    status = add_ranks(&sums, c, memory, layer, head, tokens + i,
                       n - i < ROWS_AT_ONCE ? n - i : ROWS_AT_ONCE);
  att_float_mode_leave(mode);
  att_release(c->model->runtime, memory, floats, sizeof *memory);
  if (status != ATT_OK) return status;
  sums.share /= (double)n, sums.rank /= (double)n;
  *out = sums;
  return ATT_OK;
}
