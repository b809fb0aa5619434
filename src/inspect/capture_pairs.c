/* Attention weights and scores for captures. */
#include "inspect/capture_pairs.h"

#include <math.h>

#include "attention/plan.h"

att_pair_kind att_pair_kind_of(att_site site) {
  switch (site) {
  case ATT_SITE_CROSS_PATTERN:
  case ATT_SITE_PATTERN: return ATT_PAIR_WEIGHTS;
  case ATT_SITE_CROSS_RAW_SCORES:
  case ATT_SITE_RAW_SCORES: return ATT_PAIR_RAW;
  case ATT_SITE_CROSS_SCALED_SCORES:
  case ATT_SITE_SCALED_SCORES: return ATT_PAIR_SCALED;
  case ATT_SITE_CROSS_SCORES:
  case ATT_SITE_SCORES: return ATT_PAIR_MASKED;
  case ATT_SITE_BIAS: return ATT_PAIR_BIAS;
  default: return ATT_PAIR_COUNT;
  }
}

bool att_pair_is_cross(att_site site) {
  return site == ATT_SITE_CROSS_PATTERN || site == ATT_SITE_CROSS_RAW_SCORES ||
         site == ATT_SITE_CROSS_SCALED_SCORES || site == ATT_SITE_CROSS_SCORES;
}

att_pair_family att_pair_family_of(const att_site_place *place) {
  if (place->in_encoder) return ATT_PAIR_ENCODER;
  return att_pair_is_cross(place->site) ? ATT_PAIR_CROSS : ATT_PAIR_SELF;
}

att_view att_pair_view(const att_pair_store *store, const att_sdpa_args *args) {
  int64_t heads = args->q.shape[1], columns = store->columns, head = store->rows * columns;
  return (att_view){.data = store->pairs + store->first * columns,
                    .dtype = ATT_F32,
                    .ndim = 4,
                    .shape = {1, heads, args->q.shape[2], att_pair_keys(args)},
                    .stride = {heads * head, head, columns, 1}};
}

/* Is a score changed between the scale and the mask? */
static bool is_bent(const att_sdpa_args *args) {
  return args->bias.data || args->alibi_slopes.data || args->softcap != ATT_SOFTCAP_NONE;
}

/* Are they the scores that softmax gets? */
static bool is_masked(const att_sdpa_args *args, att_pair_kind kind) {
  return kind == ATT_PAIR_MASKED || (kind == ATT_PAIR_SCALED && !is_bent(args));
}

bool att_pair_ask(att_sdpa_args *args, att_pair_kind kind, att_view view) {
  if (kind != ATT_PAIR_WEIGHTS && !is_masked(args, kind)) return false;
  att_view *to = kind == ATT_PAIR_WEIGHTS ? &args->weights : &args->scores;
  if (to->data) return false;
  *to = view;
  args->score_stage = ATT_SCORES_MASKED;
  return true;
}

att_view att_pair_given(const att_sdpa_args *args, att_pair_kind kind) {
  if (kind == ATT_PAIR_WEIGHTS) return args->weights;
  return is_masked(args, kind) ? args->scores : att_view_none();
}

/* The attention whose masked scores are those of a kind. */
static void reduce(att_sdpa_args *args, att_pair_kind kind) {
  static float zero;
  if (kind == ATT_PAIR_RAW || kind == ATT_PAIR_SCALED) {
    args->softcap = ATT_SOFTCAP_NONE;
    args->bias = args->alibi_slopes = att_view_none();
  }
  if (kind == ATT_PAIR_RAW) args->scale = 1;
  if (kind != ATT_PAIR_BIAS) return;
  args->q.data = &zero; /* products of nothing leave what is added to them */
  for (int d = 0; d < args->q.ndim; d++) args->q.stride[d] = 0;
}

int64_t att_pair_keys(const att_sdpa_args *args) {
  if (!args->cache) return args->k.shape[2];
  return args->cache_lengths ? args->cache_lengths[0] : args->mask.offsets[0] + args->q.shape[2];
}

int64_t att_pair_pass_rows(const att_session *session, att_pair_family family) {
  bool whole = family == ATT_PAIR_ENCODER || !session->cache;
  return whole ? session->encoder.room : session->chunk;
}

/* The longest call of a family with pairs. */
static void longest(att_sdpa_args *args, const att_session *session, att_pair_family family) {
  const att_model_weights *weights = &session->model->weights;
  const att_encoder *encoder = &session->encoder;
  att_attention_pass pass = att_session_pass(session, 0, session->chunk);
  const att_layer_weights *layer = weights->layer;
  if (family == ATT_PAIR_ENCODER) layer = weights->encoder;
  if (family == ATT_PAIR_ENCODER || !session->cache)
    pass = att_encoder_pass(encoder, session->model, 0, session->block, session->span);
  pass.rows = att_pair_pass_rows(session, family);
  pass.n_texts = pass.rows; /* of one token each */
  if (family == ATT_PAIR_CROSS)
    att_cross_attention_args(args, &layer->cross, &pass);
  else
    att_self_attention_args(args, &layer->attention, &pass);
  int64_t keys = pass.cache && family == ATT_PAIR_SELF ? session->context : encoder->room;
  static float stand_in; /* a plan looks at shapes alone */
  att_pair_store store = {&stand_in, pass.rows, keys, 0};
  args->weights = att_pair_view(&store, args);
  args->weights.shape[3] = keys;
}

att_status att_pair_plan_create(att_sdpa_plan **out, const att_session *session,
                                att_pair_family family) {
  att_sdpa_args args;
  longest(&args, session, family);
  return att_sdpa_plan_create(out, session->runtime, &args);
}

att_status att_pair_plan_measure(int64_t *out, const att_session *session, att_pair_family family) {
  att_sdpa_args args;
  longest(&args, session, family);
  return att_sdpa_plan_measure(out, session->runtime, &args);
}

/* The call that `args` describes, with nothing asked of it yet. */
static att_sdpa_args afresh(const att_sdpa_args *args) {
  att_sdpa_args call = *args;
  call.weights = call.scores = call.lse = att_view_none();
  call.score_stage = ATT_SCORES_MASKED;
  return call;
}

att_status att_pair_fill(const att_pair_store *store, att_pair_kind kind, att_sdpa_plan *plan,
                         const att_sdpa_args *args) {
  att_sdpa_args call = afresh(args);
  reduce(&call, kind);
  *(kind == ATT_PAIR_WEIGHTS ? &call.weights : &call.scores) = att_pair_view(store, args);
  return att_sdpa(plan, &call);
}

att_status att_pair_fill_both(const att_pair_store *weights, const att_pair_store *scores,
                              att_sdpa_plan *plan, const att_sdpa_args *args) {
  att_sdpa_args call = afresh(args);
  call.weights = att_pair_view(weights, args);
  call.scores = att_pair_view(scores, args);
  return att_sdpa(plan, &call);
}

void att_pair_clear(float *store, int64_t count, att_pair_kind kind) {
  float hidden = kind == ATT_PAIR_WEIGHTS ? 0.0f : -INFINITY;
  for (int64_t i = 0; i < count; i++) store[i] = hidden;
}
