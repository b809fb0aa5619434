/* Gradients for the random calls of attention_case.h: dout in any layout, and
 * any of the results, each in any layout and in a type it may have. */
#ifndef ATT_TESTS_BACKWARD_CASE_H
#define ATT_TESTS_BACKWARD_CASE_H

#include "attention_bits.h"

#include "attend/backward.h"

/* NaN or an infinity at some places, visible or not. */
static inline void backward_poison(att_case *c, const att_view *view) {
  static const float odd[] = {NAN, INFINITY, -INFINITY};
  int64_t count = att_view_count(view);
  for (int n = 0; n < 3 && count > 0; n++)
    case_store(case_element(view, case_below(c, count)), view->dtype,
               (double)odd[case_below(c, 3)]);
}

static inline att_view backward_result(att_case *c, const att_view *of, att_dtype narrow) {
  if (!of->data || case_chance(c, 15)) return att_view_none();
  att_dtype wide = c->dtype == ATT_F64 ? ATT_F64 : ATT_F32;
  return case_output(c, case_chance(c, 60) ? wide : narrow, of->ndim, of->shape);
}

/* Gradients of a call that has been run. */
static inline void backward_make(att_case *c, att_sdpa_grads *g) {
  const att_sdpa_args *a = &c->args;
  att_dtype wide = c->dtype == ATT_F64 ? ATT_F64 : ATT_F32;
  att_sdpa_grads_init(g);
  g->out = a->out;
  g->lse = a->lse;
  g->dout = case_input(c, a->out.dtype, 4, a->out.shape);
  c->n_outputs = 0;
  g->dq = backward_result(c, &a->q, c->dtype);
  g->dk = backward_result(c, &a->k, c->dtype);
  g->dv = backward_result(c, &a->v, c->dtype);
  g->dbias = backward_result(c, &a->bias, wide);
  g->dalibi = backward_result(c, &a->alibi_slopes, wide);
  g->dsinks = backward_result(c, &a->sinks, wide);
}

/* The same results in fresh row-major memory. */
static inline att_sdpa_grads backward_fresh(att_case *c, const att_sdpa_grads *of) {
  att_sdpa_grads g = *of;
  att_view *views[] = {&g.dq, &g.dk, &g.dv, &g.dbias, &g.dalibi, &g.dsinks};
  for (int n = 0; n < 6; n++) *views[n] = bits_copy(c, *views[n]);
  return g;
}

static inline void backward_run(att_runtime *runtime, const char *label, const att_sdpa_args *args,
                                const att_sdpa_grads *grads) {
  att_sdpa_backward_plan *plan;
  att_status status = att_sdpa_backward_plan_create(&plan, runtime, args, grads);
  if (status != ATT_OK) fail_msg("%s: %s", label, att_message());
  status = att_sdpa_backward(plan, args, grads);
  if (status != ATT_OK) fail_msg("%s: %s", label, att_message());
  att_sdpa_backward_plan_free(plan);
}

static inline void backward_expect_same(const char *label, const att_sdpa_grads *a,
                                        const att_sdpa_grads *b) {
  bits_expect_same(label, "dq", &a->dq, &b->dq);
  bits_expect_same(label, "dk", &a->dk, &b->dk);
  bits_expect_same(label, "dv", &a->dv, &b->dv);
  bits_expect_same(label, "dbias", &a->dbias, &b->dbias);
  bits_expect_same(label, "dalibi", &a->dalibi, &b->dalibi);
  bits_expect_same(label, "dsinks", &a->dsinks, &b->dsinks);
}

#endif
