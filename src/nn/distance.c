/* Buckets of distances and the rows of biases made from them. */
#include "nn/distance.h"

#include "base/alloc.h"
#include "kernels/function64.h"

/* The float32 logarithm that models were trained with decides where buckets end. */
static float log32(double x) { return (float)att_log64(x); }

int64_t att_distance_bucket(const att_distance *distance, int64_t after) {
  int64_t buckets = distance->buckets, first = 0;
  int64_t far = after < 0 ? -after : 0; /* how far before the query */
  if (distance->both_sides) {
    buckets /= 2;
    if (after > 0) first = buckets, far = after;
  }
  int64_t single = buckets / 2; /* distances with a bucket of their own */
  if (far < single) return first + far;
  float grown = log32((double)((float)far / (float)single)) /
                log32((double)distance->reach / (double)single) * (float)(buckets - single);
  int64_t bucket = single + (int64_t)grown;
  return first + (bucket < buckets ? bucket : buckets - 1);
}

att_status att_distance_rows_create(att_distance_rows *out, const att_runtime *runtime,
                                    const att_distance *distance, int64_t length) {
  int64_t count;
  if (!att_mul_checked(&count, 2 * length - 1, distance->heads))
    return att_fail(ATT_TOO_LARGE, "biases of %lld distances overflow", (long long)length);
  att_distance_rows rows = {.heads = distance->heads, .length = length};
  ATT_TRY(att_alloc((void **)&rows.biases, runtime, count, sizeof(float), "biases by distance"));
  for (int64_t after = 1 - length; after < length; after++) {
    const float *row = distance->table + att_distance_bucket(distance, after) * rows.heads;
    for (int64_t h = 0; h < rows.heads; h++)
      rows.biases[h * (2 * length - 1) + after + length - 1] = row[h];
  }
  *out = rows;
  return ATT_OK;
}

void att_distance_rows_release(att_distance_rows *rows, const att_runtime *runtime) {
  att_release(runtime, rows->biases, rows->heads * (2 * rows->length - 1), sizeof(float));
  *rows = (att_distance_rows){0};
}

att_view att_distance_view(const att_distance_rows *rows, int64_t position, int64_t queries,
                           int64_t keys) {
  int64_t per_head = 2 * rows->length - 1;
  return (att_view){.data = rows->biases + rows->length - 1 - position,
                    .dtype = ATT_F32,
                    .ndim = 4,
                    .shape = {1, rows->heads, queries, keys},
                    .stride = {0, per_head, -1, 1}};
}
