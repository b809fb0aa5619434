/* bench_tensors.c — the tensors, masks and features of a case of attention, and
 * how many pairs it lets through. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "memory.h"

bool bench_has(const bench_case *w, const char *feature) {
  const char *at = strstr(w->features, feature);
  size_t n = strlen(feature);
  return at && (at == w->features || at[-1] == ',') && (!at[n] || at[n] == ',');
}

static att_view tensor(void *data, const bench_case *w, int64_t heads, int64_t t, int64_t d) {
  int64_t shape[4] = {w->b, heads, t, d};
  att_view view = att_view_of(data, w->dtype, 4, shape);
  if (bench_has(w, "bthd")) {
    view.stride[0] = t * heads * d;
    view.stride[1] = d;
    view.stride[2] = heads * d;
  }
  return view;
}

static void add(bench_tensors *a, att_mask_rule rule) { att_mask_add(&a->args.mask, rule); }

static void choose_masks(bench_tensors *a, const bench_case *w) {
  int64_t matrix[2] = {w->t, w->s}, heads[1] = {w->h};
  a->args.mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  if (bench_has(w, "prefix")) {
    a->prefix = memory_get((size_t)w->b, sizeof *a->prefix);
    for (int64_t b = 0; b < w->b; b++) a->prefix[b] = w->prefix;
    add(a, (att_mask_rule){.kind = ATT_MASK_PREFIX, .lengths = a->prefix});
  } else if (w->causal) {
    add(a, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  }
  if (bench_has(w, "window"))
    add(a, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = w->window - 1, .right = ATT_UNBOUNDED});
  if (bench_has(w, "bool")) { /* three of four keys */
    a->dense = memory_get((size_t)(w->t * w->s), 1);
    for (int64_t i = 0; i < w->t * w->s; i++) a->dense[i] = (uint32_t)i * 2654435761u >> 30 != 0;
    add(a, (att_mask_rule){.kind = ATT_MASK_DENSE,
                           .query_side = att_view_of(a->dense, ATT_BOOL, 2, matrix)});
  }
  if (bench_has(w, "bias")) {
    a->bias = bench_numbers(w->t * w->s, ATT_F32);
    a->args.bias = att_view_of(a->bias, ATT_F32, 2, matrix);
  }
  a->heads = memory_get((size_t)w->h, sizeof(float));
  for (int64_t h = 0; h < w->h; h++) a->heads[h] = exp2f(-8.0f * (float)(h + 1) / (float)w->h);
  if (bench_has(w, "alibi")) a->args.alibi_slopes = att_view_of(a->heads, ATT_F32, 1, heads);
  if (bench_has(w, "sink")) a->args.sinks = att_view_of(a->heads, ATT_F32, 1, heads);
  if (bench_has(w, "softcap")) a->args.softcap = 30.0;
  if (bench_has(w, "dropout")) a->args.dropout = 0.1, a->args.dropout_seed = 1;
  if (bench_has(w, "packed")) {
    a->cu = memory_get((size_t)w->packed + 1, sizeof *a->cu);
    for (int64_t n = 0; n <= w->packed; n++) a->cu[n] = (int32_t)(n * (w->t / w->packed));
    a->args.cu_q = a->args.cu_k = a->cu;
    a->args.n_sequences = w->packed;
  }
}

/* Visible pairs of one head, by the meaning of each mask. */
static double count_pairs(const bench_tensors *a, const bench_case *w) {
  int64_t t = w->t, s = w->s, times = w->b;
  if (bench_has(w, "packed")) t = s = w->t / w->packed, times = w->packed;
  double pairs = 0;
  for (int64_t i = 0; i < t; i++) {
    int64_t p = i + s - t, high = w->causal ? p + 1 : s, low = 0;
    if (bench_has(w, "prefix") && high < w->prefix) high = w->prefix;
    if (bench_has(w, "window") && p - w->window + 1 > 0) low = p - w->window + 1;
    if (!a->dense) {
      pairs += (double)(high - low);
      continue;
    }
    for (int64_t j = low; j < high; j++) pairs += a->dense[i * s + j];
  }
  return pairs * (double)times;
}

/* What is told about rows: the weights of one, sums of columns, entropies, and lse
 * with any of them. */
static void ask_for_results(bench_tensors *a, const bench_case *w) {
  int64_t row[4] = {w->b, w->h, 1, w->s}, columns[3] = {w->b, w->h, w->s};
  int64_t rows[3] = {w->b, w->h, w->t}, *lists[4] = {row, columns, rows, rows};
  static const char *const names[] = {"row", "columns", "entropy", "lse"};
  att_view *views[] = {&a->args.weights, &a->args.column_sums, &a->args.entropy, &a->args.lse};
  bool any = false;
  for (int n = 0; n < 4; n++) {
    if (!bench_has(w, names[n]) && !(n == 3 && any)) continue;
    any = true;
    att_view view = att_view_of(NULL, ATT_F32, n == 0 ? 4 : 3, lists[n]);
    view.data = a->results[n] = bench_numbers(att_view_count(&view), ATT_F32);
    *views[n] = view;
  }
  a->last = w->t - 1;
  if (bench_has(w, "row")) a->args.rows = &a->last, a->args.n_rows = 1;
}

void bench_tensors_make(bench_tensors *a, const bench_case *w) {
  *a = (bench_tensors){.q = bench_numbers(w->b * w->h * w->t * w->d, w->dtype),
                       .k = bench_numbers(w->b * w->g * w->s * w->d, w->dtype),
                       .v = bench_numbers(w->b * w->g * w->s * w->dv, w->dtype),
                       .out = bench_numbers(w->b * w->h * w->t * w->dv, w->dtype)};
  att_sdpa_args_init(&a->args);
  a->args.q = tensor(a->q, w, w->h, w->t, w->d);
  a->args.k = tensor(a->k, w, w->g, w->s, w->d);
  a->args.v = tensor(a->v, w, w->g, w->s, w->dv);
  a->args.out = tensor(a->out, w, w->h, w->t, w->dv);
  choose_masks(a, w);
  ask_for_results(a, w);
  a->pairs = count_pairs(a, w) * (double)w->h;
}

void bench_tensors_free(bench_tensors *a) {
  void *all[] = {a->q,          a->k,          a->v,         a->out,    a->bias,
                 a->heads,      a->dense,      a->cu,        a->prefix, a->results[0],
                 a->results[1], a->results[2], a->results[3]};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}
