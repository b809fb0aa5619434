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

/* Columns of a result over keys. Of a cache's capacity the caller may leave
 * out what lies behind the keys there are. */
static int64_t columns_of(const att_problem *p, const att_view *view, int last) {
  if (!p->args->cache) return p->args->k.shape[2];
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
  int64_t sums[3] = {batch, p->h, columns_of(p, &a->column_sums, 2)};
  ATT_TRY(check_result(p, &a->column_sums, "column_sums", 3, sums));
  return check_result(p, &a->entropy, "entropy", 3, out);
}

typedef struct named_view {
  const char *name;
  att_view view;
} named_view;

static att_view array_view(const void *data, att_dtype dtype, int64_t n) {
  return att_view_of((void *)(uintptr_t)data, dtype, 1, &n);
}

/* No output may meet this input. */
static att_status check_apart(const named_view *outputs, int n, const char *name, att_view input) {
  for (int o = 0; o < n; o++)
    if (att_views_overlap(&outputs[o].view, &input))
      return att_fail(ATT_BAD_ARGUMENT, "%s overlaps %s", outputs[o].name, name);
  return ATT_OK;
}

/* Tensors and arrays of the mask. */
static att_status check_mask_apart(const att_problem *p, const named_view *outputs, int n) {
  const att_mask *mask = &p->args->mask;
  ATT_TRY(check_apart(outputs, n, "the mask's offsets",
                      array_view(mask->offsets, ATT_I64, mask->offsets ? p->b : 0)));
  for (int r = 0; r < mask->n_rules; r++) {
    const att_mask_rule *rule = &mask->rules[r];
    ATT_TRY(check_apart(outputs, n, "a mask's tensor", rule->query_side));
    ATT_TRY(check_apart(outputs, n, "a mask's tensor", rule->key_side));
    ATT_TRY(check_apart(outputs, n, "a mask's starts", array_view(rule->starts, ATT_I64, p->b)));
    ATT_TRY(check_apart(outputs, n, "a mask's lengths", array_view(rule->lengths, ATT_I64, p->b)));
  }
  return ATT_OK;
}

att_status att_problem_check_overlap(const att_problem *p) {
  const att_sdpa_args *a = p->args;
  const named_view outputs[] = {{"out", a->out},         {"lse", a->lse},
                                {"weights", a->weights}, {"scores", a->scores},
                                {"entropy", a->entropy}, {"column_sums", a->column_sums}};
  const named_view inputs[] = {{"q", a->q},
                               {"k", a->k},
                               {"v", a->v},
                               {"bias", a->bias},
                               {"alibi_slopes", a->alibi_slopes},
                               {"sinks", a->sinks},
                               {"rows", array_view(a->rows, ATT_I64, a->n_rows)},
                               {"cu_q", array_view(a->cu_q, ATT_I32, p->b + 1)},
                               {"cu_k", array_view(a->cu_k, ATT_I32, p->b + 1)},
                               {"cache_lengths", array_view(a->cache_lengths, ATT_I64, p->b)},
                               {"cache_sequences", array_view(a->cache_sequences, ATT_I64, p->b)}};
  const int n_outputs = sizeof outputs / sizeof outputs[0];
  for (int o = 0; o < n_outputs; o++)
    ATT_TRY(check_apart(outputs, o, outputs[o].name, outputs[o].view));
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
    ATT_TRY(check_apart(outputs, n_outputs, inputs[i].name, inputs[i].view));
  return check_mask_apart(p, outputs, n_outputs);
}
