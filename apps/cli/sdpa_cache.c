/* sdpa_cache.c — what storing keys and values in fewer bits does to the result. */
#include "sdpa_cache.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"
#include "textshow.h"

static float number(const att_view *view, const int64_t at[4]) {
  int64_t offset = 0;
  for (int d = 0; d < 4; d++) offset += at[d] * view->stride[d];
  return ((const float *)view->data)[offset];
}

/* Difference of two views of one shape; *largest grows. */
static double relative(const att_view *exact, const att_view *other, double *largest) {
  double error = 0.0, size = 0.0;
  int64_t at[4];
  for (at[0] = 0; at[0] < exact->shape[0]; at[0]++)
    for (at[1] = 0; at[1] < exact->shape[1]; at[1]++)
      for (at[2] = 0; at[2] < exact->shape[2]; at[2]++)
        for (at[3] = 0; at[3] < exact->shape[3]; at[3]++) {
          double x = number(exact, at), d = fabs(x - number(other, at));
          error += d * d;
          size += x * x;
          if (*largest < d) *largest = d;
        }
  return size > 0.0 ? sqrt(error / size) : 0.0;
}

typedef struct stored {
  att_cache *cache;
  att_view k, v, out; /* f32, as the cache gives them back */
  int64_t *lengths;
} stored;

static att_view fresh(const att_view *like) {
  int64_t count = att_view_count(like);
  return att_view_of(memory_get((size_t)count, sizeof(float)), ATT_F32, 4, like->shape);
}

static att_status store(stored *s, att_runtime *runtime, const att_sdpa_args *a, att_dtype dtype) {
  const int64_t b = a->k.shape[0], g = a->k.shape[1], n = a->k.shape[2];
  const att_cache_shape shape = {.layers = 1,
                                 .sequences = b,
                                 .kv_heads = g,
                                 .head_dim = a->k.shape[3],
                                 .value_dim = a->v.shape[3],
                                 .capacity = n,
                                 .dtype = dtype};
  att_status status = att_cache_create(&s->cache, runtime, &shape);
  for (int64_t i = 0; i < b && status == ATT_OK; i++) {
    s->lengths[i] = n;
    status =
        att_cache_write(s->cache, 0, i, att_view_select(a->k, 0, i), att_view_select(a->v, 0, i));
    if (status == ATT_OK) status = att_cache_advance(s->cache, i, n);
    for (int64_t h = 0; h < g && status == ATT_OK; h++) {
      att_view k = att_view_select(att_view_select(s->k, 0, i), 0, h);
      att_view v = att_view_select(att_view_select(s->v, 0, i), 0, h);
      status = att_cache_read_keys(s->cache, 0, i, h, 0, k);
      if (status == ATT_OK) status = att_cache_read_values(s->cache, 0, i, h, 0, v);
    }
  }
  return status;
}

static att_status measure(sdpa_cache_error *e, att_runtime *runtime, const att_sdpa_args *args) {
  stored s = {.k = fresh(&args->k), .v = fresh(&args->v), .out = fresh(&args->out)};
  s.lengths = memory_get((size_t)args->k.shape[0], sizeof *s.lengths);
  att_status status = store(&s, runtime, args, e->dtype);
  if (status == ATT_OK) {
    att_sdpa_args over = *args;
    over.k = over.v = over.lse = over.weights = att_view_none();
    over.cache = s.cache;
    over.cache_lengths = s.lengths;
    over.out = s.out;
    status = att_sdpa_once(runtime, &over);
  }
  if (status == ATT_OK) {
    double unused = 0.0;
    e->bytes = (double)((args->k.shape[3] + args->v.shape[3]) * att_dtype_bytes(e->dtype)) /
               (double)att_dtype_block(e->dtype);
    e->k_rms = relative(&args->k, &s.k, &unused);
    e->v_rms = relative(&args->v, &s.v, &unused);
    e->out_rms = relative(&args->out, &s.out, &e->out_max);
  }
  att_cache_free(s.cache);
  free(s.k.data), free(s.v.data), free(s.out.data), free(s.lengths);
  return status;
}

int sdpa_cache_measure(const cli *c, att_runtime *runtime, const att_sdpa_args *args,
                       sdpa_cache_error errors[SDPA_CACHE_TYPES]) {
  static const att_dtype types[SDPA_CACHE_TYPES] = {ATT_F32, ATT_F16, ATT_BF16, ATT_Q8_0, ATT_Q4_0};
  if (args->q.dtype != ATT_F32)
    return cli_fail(c, "--cache compares with exact numbers: q, k and v must be f32");
  if (!att_view_count(&args->k) || !att_view_count(&args->v))
    return cli_fail(c, "--cache: k and v have no numbers to store (S is %lld)",
                    (long long)args->k.shape[2]);
  for (int i = 0; i < SDPA_CACHE_TYPES; i++) {
    sdpa_cache_error *e = &errors[i];
    const int64_t block = att_dtype_block(types[i]), d = args->k.shape[3], dv = args->v.shape[3];
    *e = (sdpa_cache_error){.dtype = types[i]};
    if (d % block || dv % block)
      snprintf(e->reason, sizeof e->reason, "needs sizes of heads that %lld divides, not %lld%s",
               (long long)block, (long long)(d % block ? d : dv), d % block ? "" : " of v");
    else if (measure(e, runtime, args) != ATT_OK)
      snprintf(e->reason, sizeof e->reason, "%s", att_message());
    else if (isinf(e->k_rms) || isinf(e->v_rms)) /* infinite here, and not where it came from */
      snprintf(e->reason, sizeof e->reason, "a number of %s becomes infinite in %s",
               isinf(e->k_rms) ? "k" : "v", att_dtype_name(types[i]));
  }
  return CLI_OK;
}

void sdpa_cache_print(const term *t, const sdpa_cache_error errors[SDPA_CACHE_TYPES]) {
  printf("over a cache  bytes a position  rms error of k         of v       of out   largest of "
         "out\n");
  for (int i = 0; i < SDPA_CACHE_TYPES; i++) {
    const sdpa_cache_error *e = &errors[i];
    printf("  %-10s  ", att_dtype_name(e->dtype));
    if (e->reason[0])
      text_put(t, "%16s  %s\n", "-", e->reason);
    else
      printf("%16.4g  %14.3g  %11.3g  %11.3g  %15.3g\n", e->bytes, e->k_rms, e->v_rms, e->out_rms,
             e->out_max);
  }
}

void sdpa_cache_json(json *j, const sdpa_cache_error errors[SDPA_CACHE_TYPES]) {
  json_open(j, "cache", '[');
  for (int i = 0; i < SDPA_CACHE_TYPES; i++) {
    const sdpa_cache_error *e = &errors[i];
    json_open(j, NULL, '{');
    json_string(j, "dtype", att_dtype_name(e->dtype));
    if (e->reason[0]) {
      json_string(j, "reason", e->reason);
    } else {
      json_double(j, "bytes_per_position", e->bytes);
      json_double(j, "k_rms", e->k_rms);
      json_double(j, "v_rms", e->v_rms);
      json_double(j, "out_rms", e->out_rms);
      json_double(j, "out_max", e->out_max);
    }
    json_close(j);
  }
  json_close(j);
}
