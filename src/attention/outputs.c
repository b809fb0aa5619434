/* What a call of attention writes: shapes and types of the results, that no
 * two of their indices name one element, and that nothing is written over what
 * the call still reads. */
#include "attention/problem.h"
#include "tensor/shape.h"

static att_status check_writable(const att_view *view, const char *name, int ndim,
                                 const int64_t *expected) {
  ATT_TRY(att_view_check_shape(view, name, ndim, expected));
  if (att_view_repeats(view))
    return att_fail(ATT_BAD_ARGUMENT, "%s: two indices name the same element", name);
  return ATT_OK;
}

/* Results come in the type that sums have; an absent one is not wanted. */
static att_status check_result(const att_problem *p, const att_view *view, const char *name,
                               int ndim, const int64_t *expected) {
  if (!view->data) return ATT_OK;
  ATT_TRY(check_writable(view, name, ndim, expected));
  att_dtype wanted = p->dtype == ATT_F64 ? ATT_F64 : ATT_F32;
  if (view->dtype != wanted)
    return att_fail(ATT_BAD_DTYPE, "%s is %s, not %s", name, att_dtype_name(view->dtype),
                    att_dtype_name(wanted));
  return ATT_OK;
}

/* Columns of a result over keys. Of what a cache or pages may hold the caller may
 * leave out what lies behind the keys there are. */
static int64_t columns_of(const att_problem *p, const att_view *view, int last) {
  if (!p->args->cache && !p->args->pages) return p->args->k.shape[2];
  return view->ndim == last + 1 && view->shape[last] < p->s ? view->shape[last] : p->s;
}

att_status att_problem_check_outputs(const att_problem *p) {
  const att_sdpa_args *a = p->args;
  int64_t batch = a->q.shape[0], t = a->q.shape[2], rows = a->rows ? a->n_rows : t;
  int64_t out[4] = {batch, p->h, t, p->dv};
  ATT_TRY(check_writable(&a->out, "out", 4, out));
  if (a->out.dtype != a->q.dtype && a->out.dtype != ATT_F32)
    return att_fail(ATT_BAD_DTYPE, "out is %s; it must have q's type %s or f32",
                    att_dtype_name(a->out.dtype), att_dtype_name(a->q.dtype));
  ATT_TRY(check_result(p, &a->lse, "lse", 3, out));
  int64_t weights[4] = {batch, p->h, rows, columns_of(p, &a->weights, 3)};
  ATT_TRY(check_result(p, &a->weights, "weights", 4, weights));
  int64_t scores[4] = {batch, p->h, rows, columns_of(p, &a->scores, 3)};
  ATT_TRY(check_result(p, &a->scores, "scores", 4, scores));
  if (a->score_stage < ATT_SCORES_RAW || a->score_stage > ATT_SCORES_MASKED)
    return att_fail(ATT_BAD_ARGUMENT, "score_stage %d is not known", (int)a->score_stage);
  int64_t sums[3] = {a->cu_k ? 1 : p->b, p->h, columns_of(p, &a->column_sums, 2)};
  ATT_TRY(check_result(p, &a->column_sums, "column_sums", 3, sums));
  return check_result(p, &a->entropy, "entropy", 3, out);
}

/* The bytes that a tensor or array lies in. */
typedef struct range {
  const char *name;
  uintptr_t begin, end;
} range;

static range range_of(const char *name, const att_view *view) {
  int64_t low, high;
  range r = {name, 0, 0};
  if (!view->data) return r;
  if (!att_view_extent(&low, &high, view)) return (range){name, 0, UINTPTR_MAX};
  r.begin = (uintptr_t)view->data + (uintptr_t)low;
  r.end = (uintptr_t)view->data + (uintptr_t)high;
  return r;
}

/* An array of `n` elements; NULL is none. */
static range range_of_array(const char *name, const void *array, size_t element, int64_t n) {
  uintptr_t begin = (uintptr_t)array;
  return (range){name, begin, array ? begin + element * (uintptr_t)n : begin};
}

/* What a call writes, one range for each result that is wanted. */
typedef struct written {
  range ranges[8];
  int n;
} written;

/* None of them may meet this range; an empty one meets nothing. */
static att_status check_apart(const written *w, range input) {
  for (int n = 0; n < w->n && input.begin < input.end; n++)
    if (w->ranges[n].begin < input.end && input.begin < w->ranges[n].end)
      return att_fail(ATT_BAD_ARGUMENT, "%s overlaps %s", w->ranges[n].name, input.name);
  return ATT_OK;
}

/* Tensors and arrays of the mask. */
static att_status check_mask_apart(const att_problem *p, const written *w) {
  const att_mask *mask = &p->args->mask;
  const size_t size = sizeof(int64_t);
  ATT_TRY(check_apart(w, range_of_array("the mask's offsets", mask->offsets, size, p->b)));
  for (int n = 0; n < mask->n_rules; n++) {
    const att_mask_rule *rule = &mask->rules[n];
    ATT_TRY(check_apart(w, range_of("a mask's tensor", &rule->query_side)));
    ATT_TRY(check_apart(w, range_of("a mask's tensor", &rule->key_side)));
    ATT_TRY(check_apart(w, range_of_array("a mask's starts", rule->starts, size, p->b)));
    ATT_TRY(check_apart(w, range_of_array("a mask's lengths", rule->lengths, size, p->b)));
  }
  return ATT_OK;
}

/* Tensors and arrays of the caller's pages. */
static att_status check_pages_apart(const att_problem *p, const written *w) {
  const att_pages *pages = p->args->pages;
  const range inputs[] = {
      range_of("pages.k", &pages->k), range_of("pages.v", &pages->v),
      range_of_array("pages.table", pages->table, sizeof(int32_t), p->b * pages->table_row),
      range_of_array("pages.lengths", pages->lengths, sizeof(int64_t), p->b)};
  for (size_t n = 0; n < sizeof inputs / sizeof inputs[0]; n++) ATT_TRY(check_apart(w, inputs[n]));
  return ATT_OK;
}

/* Inputs of every call of attention. */
static att_status check_inputs_apart(const att_problem *p, const written *w) {
  const att_sdpa_args *a = p->args;
  const size_t size = sizeof(int64_t), small = sizeof(int32_t);
  const range inputs[] = {range_of("q", &a->q),
                          range_of("k", &a->k),
                          range_of("v", &a->v),
                          range_of("bias", &a->bias),
                          range_of("alibi_slopes", &a->alibi_slopes),
                          range_of("sinks", &a->sinks),
                          range_of_array("rows", a->rows, size, a->n_rows),
                          range_of_array("cu_q", a->cu_q, small, p->b + 1),
                          range_of_array("cu_k", a->cu_k, small, p->b + 1),
                          range_of_array("cache_lengths", a->cache_lengths, size, p->b),
                          range_of_array("cache_sequences", a->cache_sequences, size, p->b)};
  for (size_t n = 0; n < sizeof inputs / sizeof inputs[0]; n++) ATT_TRY(check_apart(w, inputs[n]));
  if (a->pages) ATT_TRY(check_pages_apart(p, w));
  return check_mask_apart(p, w);
}

att_status att_problem_check_apart(const att_problem *p, const att_named_view *outputs, int n,
                                   const att_named_view *more, int n_more) {
  written w = {.n = 0};
  for (int o = 0; o < n; o++) {
    range output = range_of(outputs[o].name, outputs[o].view);
    ATT_TRY(check_apart(&w, output));
    if (output.begin < output.end) w.ranges[w.n++] = output;
  }
  for (int i = 0; i < n_more; i++) ATT_TRY(check_apart(&w, range_of(more[i].name, more[i].view)));
  return check_inputs_apart(p, &w);
}
