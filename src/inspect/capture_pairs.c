/* Attention weights and scores for captures. */
#include "inspect/capture_pairs.h"

#include <math.h>

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

/* Asks for pairs of a kind, to be written to `view` [1,H,T,S]. */
static void ask(att_sdpa_args *args, att_pair_kind kind, att_view view) {
  static const att_score_stage stages[ATT_PAIR_COUNT] = {[ATT_PAIR_RAW] = ATT_SCORES_RAW,
                                                         [ATT_PAIR_SCALED] = ATT_SCORES_SCALED,
                                                         [ATT_PAIR_MASKED] = ATT_SCORES_MASKED,
                                                         [ATT_PAIR_BIAS] = ATT_SCORES_MASKED};
  static float zero;
  if (kind == ATT_PAIR_WEIGHTS)
    args->weights = view;
  else
    args->scores = view;
  args->score_stage = stages[kind];
  if (kind != ATT_PAIR_BIAS) return;
  args->q.data = &zero; /* products of nothing leave what is added to them */
  for (int d = 0; d < args->q.ndim; d++) args->q.stride[d] = 0;
}

/* Rows first … first+rows-1 and columns 0 … keys-1 of a store. */
static att_view corner(const att_pair_store *store, int64_t heads, int64_t rows, int64_t keys) {
  int64_t columns = store->columns, head = store->rows * columns;
  return (att_view){.data = store->pairs + store->first * columns,
                    .dtype = ATT_F32,
                    .ndim = 4,
                    .shape = {1, heads, rows, keys},
                    .stride = {heads * head, head, columns, 1}};
}

/* Captures hold one text: attention over it needs no list of texts. */
static void as_one_text(att_sdpa_args *args) {
  args->cu_q = args->cu_k = NULL;
  args->n_sequences = 0;
}

int64_t att_pair_keys(const att_sdpa_args *args) {
  if (!args->cache) return args->k.shape[2];
  return args->cache_lengths ? args->cache_lengths[0] : args->mask.offsets[0] + args->q.shape[2];
}

int64_t att_pair_pass_rows(const att_session *session, att_pair_family family) {
  bool whole = family == ATT_PAIR_ENCODER || !session->cache;
  return whole ? session->encoder.room : session->chunk;
}

att_status att_pair_plan_create(att_sdpa_plan **out, const att_session *session,
                                att_pair_family family, att_pair_kind kind) {
  const att_model_weights *weights = &session->model->weights;
  const att_encoder *encoder = &session->encoder;
  att_attention_pass pass = att_session_pass(session, 0, session->chunk);
  const att_layer_weights *layer = weights->layer;
  if (family == ATT_PAIR_ENCODER) layer = weights->encoder;
  if (family == ATT_PAIR_ENCODER || !session->cache)
    pass = att_encoder_pass(encoder, session->model, 0, session->block, session->span);
  pass.rows = att_pair_pass_rows(session, family);
  int64_t keys = pass.cache && family == ATT_PAIR_SELF ? session->context : encoder->room;
  att_sdpa_args args;
  if (family == ATT_PAIR_CROSS)
    att_cross_attention_args(&args, &layer->cross, &pass);
  else
    att_self_attention_args(&args, &layer->attention, &pass);
  as_one_text(&args);
  float stand_in; /* a plan looks at shapes alone */
  att_pair_store store = {&stand_in, pass.rows, keys, 0, 0};
  ask(&args, kind, corner(&store, layer->attention.heads, pass.rows, keys));
  return att_sdpa_plan_create(out, session->runtime, &args);
}

/* How many keys before its own a query may see. */
static int64_t reach(const att_mask *mask) {
  int64_t left = INT32_MAX;
  for (int r = 0; r < mask->n_rules; r++)
    if (mask->rules[r].kind == ATT_MASK_WINDOW && mask->rules[r].left < left)
      left = mask->rules[r].left;
  return left;
}

att_status att_pair_fill(const att_pair_store *store, att_pair_kind kind, att_sdpa_plan *plan,
                         const att_sdpa_args *args) {
  att_sdpa_args asking = *args;
  int64_t heads = args->q.shape[1], rows = args->q.shape[2], keys = att_pair_keys(args);
  as_one_text(&asking);
  ask(&asking, kind, corner(store, heads, rows, keys));
  ATT_TRY(att_sdpa(plan, &asking));
  bool before_mask = kind == ATT_PAIR_RAW || kind == ATT_PAIR_SCALED;
  if (!before_mask || !args->mask.n_rules) return ATT_OK;
  int64_t left = reach(&args->mask);
  for (int64_t h = 0; h < heads; h++) /* causal and windowed are the masks that models have */
    for (int64_t r = 0; r < rows; r++) {
      int64_t i = store->position + r;
      float *row = store->pairs + (h * store->rows + store->first + r) * store->columns;
      for (int64_t j = 0; j < i - left; j++) row[j] = -INFINITY;
      for (int64_t j = i + 1; j < keys; j++) row[j] = -INFINITY;
    }
  return ATT_OK;
}

void att_pair_clear(float *store, int64_t count, att_pair_kind kind) {
  float hidden = kind == ATT_PAIR_WEIGHTS ? 0.0f : -INFINITY;
  for (int64_t i = 0; i < count; i++) store[i] = hidden;
}
