/* Inside of att_gradients: which there are, and how scores get theirs. */
#ifndef ATT_TRAIN_GRADIENTS_H
#define ATT_TRAIN_GRADIENTS_H

#include "attend/gradients.h"
#include "train/learner.h"

typedef struct att_kept_gradient {
  char name[ATT_GRADIENT_NAME];
  att_site site;
  int64_t layer;
  int ndim;
  int64_t shape[3]; /* of one sequence */
  int64_t floats;   /* of one sequence */
  float *store;     /* [batch] of them */
} att_kept_gradient;

struct att_gradients {
  att_learner *learner;
  att_tap tap;
  int64_t n;
  att_kept_gradient *list; /* [n], by layer, then as sites_back.inc has them */
  /* Where pairs are made, [sequences of a pass,H,T,T] each, if any are kept: first
   * scores, then their gradients; and gradients of weights. */
  float *scores, *dweights;
  int64_t pair_floats;
  att_sdpa_plan *plan;
  int64_t bytes;
  bool filled;
};

bool att_site_back_is_pairs(att_site site);

/* Calls `visit` with every gradient that the learner's model has, until it answers
 * false; store is NULL. */
typedef bool att_gradient_visit(const att_kept_gradient *gradient, void *context);
void att_gradients_each(const att_learner *learner, att_gradient_visit *visit, void *context);

/* Memory and plan for pairs. */
att_status att_gradient_pairs_create(att_gradients *gradients);

/* scores and dweights of a layer, attention's arguments being `args` and z's gradient
 * known; then dS in place of the scores. */
att_status att_gradient_pairs_find(const att_gradients *gradients, int64_t layer,
                                   const att_sdpa_args *args);

#endif
