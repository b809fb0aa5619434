/* Attention weights and scores for captures. */
#include "inspect/capture_pairs.h"

#include <math.h>

att_pair_kind att_pair_kind_of(att_site site) {
  switch (site) {
  case ATT_SITE_PATTERN: return ATT_PAIR_WEIGHTS;
  case ATT_SITE_RAW_SCORES: return ATT_PAIR_RAW;
  case ATT_SITE_SCALED_SCORES: return ATT_PAIR_SCALED;
  case ATT_SITE_SCORES: return ATT_PAIR_MASKED;
  default: return ATT_PAIR_COUNT;
  }
}

/* Asks for pairs of a kind, to be written to `view` [1,H,T,S]. */
static void ask(att_sdpa_args *args, att_pair_kind kind, att_view view) {
  static const att_score_stage stages[ATT_PAIR_COUNT] = {[ATT_PAIR_RAW] = ATT_SCORES_RAW,
                                                         [ATT_PAIR_SCALED] = ATT_SCORES_SCALED,
                                                         [ATT_PAIR_MASKED] = ATT_SCORES_MASKED};
  if (kind == ATT_PAIR_WEIGHTS)
    args->weights = view;
  else
    args->scores = view;
  args->score_stage = stages[kind];
}

/* Rows first … first+rows-1 and columns 0 … first+rows-1 of a store. */
static att_view corner(float *store, int64_t size, int64_t heads, int64_t first, int64_t rows) {
  return (att_view){.data = store + first * size,
                    .dtype = ATT_F32,
                    .ndim = 4,
                    .shape = {1, heads, rows, first + rows},
                    .stride = {heads * size * size, size * size, size, 1}};
}

att_status att_pair_plan_create(att_sdpa_plan **out, const att_session *session,
                                att_pair_kind kind) {
  att_attention_pass pass = att_session_pass(session, 0, session->chunk);
  const att_self_attention *layer = &session->model->weights.layer[0].attention;
  att_sdpa_args args;
  float stand_in; /* a plan looks at shapes alone */
  att_self_attention_args(&args, layer, &pass);
  ask(&args, kind, corner(&stand_in, session->context, layer->heads, 0, session->chunk));
  return att_sdpa_plan_create(out, session->runtime, &args);
}

att_status att_pair_fill(float *store, int64_t size, att_pair_kind kind, att_sdpa_plan *plan,
                         const att_sdpa_args *args) {
  att_sdpa_args asking = *args;
  int64_t heads = args->q.shape[1], rows = args->q.shape[2], first = args->mask.offsets[0];
  ask(&asking, kind, corner(store, size, heads, first, rows));
  ATT_TRY(att_sdpa(plan, &asking));
  if (kind != ATT_PAIR_RAW && kind != ATT_PAIR_SCALED) return ATT_OK;
  for (int64_t h = 0; h < heads; h++) /* these two stages come before the mask */
    for (int64_t i = first; i < first + rows; i++)
      for (int64_t j = i + 1; j < first + rows; j++) store[(h * size + i) * size + j] = -INFINITY;
  return ATT_OK;
}

void att_pair_clear(float *store, int64_t count, att_pair_kind kind) {
  float hidden = kind == ATT_PAIR_WEIGHTS ? 0.0f : -INFINITY;
  for (int64_t i = 0; i < count; i++) store[i] = hidden;
}
