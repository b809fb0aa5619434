/* The end of the model, applied to something else than its last row. */
#include "attend/lens.h"

#include <math.h>

#include "base/alloc.h"
#include "base/float_mode.h"
#include "model/block.h"
#include "tensor/shape.h"

/* ---- checks ---- */

static att_status check_rows(const att_view *view, const char *name, int64_t rows, int64_t width) {
  ATT_TRY(att_view_check_shape(view, name, 2, (int64_t[]){rows, width}));
  if (view->dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not f32", name, att_dtype_name(view->dtype));
  if (!att_view_is_contiguous(view))
    return att_fail(ATT_BAD_SHAPE, "rows of %s do not lie one after the other", name);
  return ATT_OK;
}

static att_status check_model(const att_model *model) {
  if (!model) return att_fail(ATT_BAD_ARGUMENT, "model is NULL");
  if (model->config.bidirectional)
    return att_fail(ATT_UNSUPPORTED, "an encoder has no next token to look at");
  return ATT_OK;
}

/* Both with as many rows as the first one has. */
static att_status check_pair(const att_model *model, const att_view *logits, const att_view *x,
                             const char *name) {
  ATT_TRY(check_model(model));
  ATT_TRY(att_view_check(x, name, 2));
  ATT_TRY(check_rows(x, name, x->shape[0], model->config.width));
  ATT_TRY(check_rows(logits, "logits", x->shape[0], model->config.vocab));
  if (att_views_overlap(logits, x)) return att_fail(ATT_BAD_ARGUMENT, "logits overlap %s", name);
  return ATT_OK;
}

/* ---- whole rows ---- */

att_status att_lens_logits(att_view logits, const att_model *model, att_view stream) {
  ATT_TRY(check_pair(model, &logits, &stream, "stream"));
  int64_t rows = stream.shape[0], c = model->config.width;
  float *normed;
  ATT_TRY(att_alloc((void **)&normed, model->runtime, rows * c, sizeof *normed, "normed rows"));
  uint64_t mode = att_float_mode_enter();
  att_norm_forward(model->runtime, &model->weights.norm, stream.data, rows, normed);
  att_output_forward(model, normed, rows, logits.data);
  att_float_mode_leave(mode);
  att_release(model->runtime, normed, rows * c, sizeof *normed);
  return ATT_OK;
}

/* ---- parts ---- */

static double mean_of(const float *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (double)x[i];
  return sum / (double)n;
}

/* 1 / sqrt(mean (x - mean)^2 + eps), without the mean for an rms norm. */
static double inverse_size(const att_norm *norm, const float *x, int64_t n) {
  if (norm->kind == ATT_NORM_NONE) return 1;
  double mean = norm->kind == ATT_NORM_LAYER ? mean_of(x, n) : 0, sum = 0;
  for (int64_t i = 0; i < n; i++) sum += ((double)x[i] - mean) * ((double)x[i] - mean);
  return 1 / sqrt(sum / (double)n + (double)norm->eps);
}

/* The norm of a part with the statistics of the whole, without its bias. */
static void norm_part(float *y, const att_norm *norm, const float *x, int64_t n, double inverse) {
  double mean = norm->kind == ATT_NORM_LAYER ? mean_of(x, n) : 0;
  for (int64_t i = 0; i < n; i++) {
    double weight = norm->weight ? (double)norm->weight[i] : 1;
    y[i] = (float)(((double)x[i] - mean) * inverse * weight);
  }
}

/* W x, without bias and cap. */
static void project(const att_model *model, const float *x, int64_t rows, float *logits) {
  att_linear plain = model->weights.output;
  plain.bias = NULL;
  att_linear_forward(model->runtime, &plain, x, rows, logits);
  float scale = (float)model->config.logit_scale;
  for (int64_t i = 0; scale != 1 && i < rows * model->config.vocab; i++) logits[i] *= scale;
}

att_status att_part_logits(att_view logits, const att_model *model, att_view parts,
                           att_view stream) {
  ATT_TRY(check_pair(model, &logits, &parts, "parts"));
  int64_t rows = parts.shape[0], c = model->config.width;
  ATT_TRY(att_view_check_shape(&stream, "stream", 1, &c));
  if (stream.dtype != ATT_F32 || !att_view_is_contiguous(&stream))
    return att_fail(ATT_BAD_DTYPE, "stream is not adjacent f32");
  float *normed;
  ATT_TRY(att_alloc((void **)&normed, model->runtime, rows * c, sizeof *normed, "normed parts"));
  uint64_t mode = att_float_mode_enter();
  const att_norm *norm = &model->weights.norm;
  double inverse = inverse_size(norm, stream.data, c);
  for (int64_t r = 0; r < rows; r++)
    norm_part(normed + r * c, norm, (const float *)parts.data + r * c, c, inverse);
  project(model, normed, rows, logits.data);
  att_float_mode_leave(mode);
  att_release(model->runtime, normed, rows * c, sizeof *normed);
  return ATT_OK;
}

att_status att_constant_logits(att_view logits, const att_model *model) {
  ATT_TRY(check_model(model));
  int64_t v = model->config.vocab;
  ATT_TRY(att_view_check_shape(&logits, "logits", 1, &v));
  if (logits.dtype != ATT_F32 || !att_view_is_contiguous(&logits))
    return att_fail(ATT_BAD_DTYPE, "logits are not adjacent f32");
  float *out = logits.data;
  const float *norm_bias = model->weights.norm.bias, *bias = model->weights.output.bias;
  for (int64_t i = 0; i < v; i++) out[i] = 0;
  uint64_t mode = att_float_mode_enter();
  if (norm_bias && model->weights.norm.kind == ATT_NORM_LAYER) project(model, norm_bias, 1, out);
  float scale = (float)model->config.logit_scale;
  for (int64_t i = 0; bias && i < v; i++) out[i] += bias[i] * scale;
  att_float_mode_leave(mode);
  return ATT_OK;
}

/* ---- heads ---- */

att_status att_head_output(att_view out, const att_model *model, int64_t layer, int64_t head,
                           att_view v) {
  if (!model) return att_fail(ATT_BAD_ARGUMENT, "model is NULL");
  const att_config *config = &model->config;
  if (layer < 0 || layer >= config->layers || head < 0 || head >= config->heads)
    return att_fail(ATT_BAD_ARGUMENT, "there is no head %lld in layer %lld", (long long)head,
                    (long long)layer);
  ATT_TRY(att_view_check(&v, "v", 2));
  int64_t rows = v.shape[0], d = config->head_dim, c = config->width;
  ATT_TRY(att_view_check_shape(&v, "v", 2, (int64_t[]){rows, d}));
  ATT_TRY(check_rows(&out, "out", rows, c));
  if (v.dtype != ATT_F32) return att_fail(ATT_BAD_DTYPE, "v is not f32");
  if (att_views_overlap(&out, &v)) return att_fail(ATT_BAD_ARGUMENT, "out overlaps v");
  if (d > 1 && rows && v.stride[1] != 1)
    return att_fail(ATT_BAD_SHAPE, "v: elements of a row are not adjacent");
  uint64_t mode = att_float_mode_enter();
  if (rows)
    att_product(model->runtime,
                &(att_product_args){.x = v.data,
                                    .x_stride = v.stride[0],
                                    .m = rows,
                                    .w = &model->weights.layer[layer].attention.o.weight,
                                    .k_first = head * d,
                                    .k_count = d,
                                    .y = out.data,
                                    .y_stride = c});
  att_float_mode_leave(mode);
  return ATT_OK;
}
