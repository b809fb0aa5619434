/* Checks of a configuration, and what follows from it. */
#include "model/config.h"

#include <math.h>

#include "attend/encoder.h"
#include "attend/sdpa.h"
#include "nn/experts.h"

/* Far above any model, far below what makes a product of two overflow. */
#define MOST_SIZE INT32_MAX

void att_config_init(att_config *config) {
  *config = (att_config){.scale = ATT_SCALE_DEFAULT,
                         .softcap = ATT_SOFTCAP_NONE,
                         .final_softcap = ATT_SOFTCAP_NONE,
                         .logit_scale = 1,
                         .embed_scale = 1,
                         .pooling = ATT_POOL_NOT_SAID,
                         .rope.magnitude = 1,
                         .local_rope.magnitude = 1};
}

bool att_layer_set_has(const att_layer_set *set, int64_t layer) {
  return set->bits[layer / 64] >> (layer % 64) & 1;
}

void att_layer_set_add(att_layer_set *set, int64_t layer) {
  if (layer < ATT_MOST_LAYERS) set->bits[layer / 64] |= UINT64_C(1) << (layer % 64);
}

static att_status check_size(int64_t value, int64_t most, const char *what, const char *where) {
  if (value >= 1 && value <= most) return ATT_OK;
  return att_fail(ATT_CORRUPT, "%s: %s is %lld, not from 1 to %lld", where, what, (long long)value,
                  (long long)most);
}

static att_status check_rope(const att_rope *rope, int64_t head_dim, const char *where) {
  if (rope->pairs < 1 || 2 * rope->pairs > head_dim)
    return att_fail(ATT_CORRUPT, "%s: heads of %lld numbers cannot be rotated in %lld pairs", where,
                    (long long)head_dim, (long long)rope->pairs);
  if (!(rope->theta > 0 && isfinite(rope->theta)))
    return att_fail(ATT_CORRUPT, "%s: rope theta is %g, not a positive number", where, rope->theta);
  bool factor = rope->scaling == ATT_ROPE_LINEAR || rope->scaling == ATT_ROPE_LLAMA3 ||
                rope->scaling == ATT_ROPE_YARN || rope->scaling == ATT_ROPE_DYNAMIC;
  if (factor && !(rope->factor > 0 && isfinite(rope->factor)))
    return att_fail(ATT_CORRUPT, "%s: rope factor is %g, not a positive number", where,
                    rope->factor);
  bool original = factor && rope->scaling != ATT_ROPE_LINEAR;
  original |= rope->scaling == ATT_ROPE_LONGROPE;
  if (original && !(rope->original >= 1 && rope->original <= MOST_SIZE))
    return att_fail(ATT_CORRUPT, "%s: original context of the rope scaling is %g", where,
                    rope->original);
  if (rope->scaling == ATT_ROPE_LLAMA3 && !(rope->low > 0 && rope->low < rope->high))
    return att_fail(ATT_CORRUPT, "%s: rope low_freq_factor %g is not below high_freq_factor %g",
                    where, rope->low, rope->high);
  if (rope->scaling == ATT_ROPE_YARN && !(rope->beta_slow > 0 && rope->beta_slow < rope->beta_fast))
    return att_fail(ATT_CORRUPT, "%s: rope beta_slow %g is not below beta_fast %g", where,
                    rope->beta_slow, rope->beta_fast);
  if (rope->scaling == ATT_ROPE_YARN && rope->theta <= 1)
    return att_fail(ATT_CORRUPT, "%s: yarn needs a rope theta above 1, not %g", where, rope->theta);
  if (rope->scaling == ATT_ROPE_DYNAMIC && rope->factor < 1)
    return att_fail(ATT_CORRUPT, "%s: dynamic rope factor is %g, below 1", where, rope->factor);
  if (!(rope->magnitude > 0 && isfinite(rope->magnitude)))
    return att_fail(ATT_CORRUPT, "%s: rope attention factor is %g", where, rope->magnitude);
  return ATT_OK;
}

static att_status check_encoder(const att_config *c, const char *where) {
  if (c->encoder_layers)
    ATT_TRY(check_size(c->encoder_layers, ATT_MOST_LAYERS, "number of encoder layers", where));
  if (c->first_position < 0 || c->first_position > MOST_SIZE - c->context)
    return att_fail(ATT_CORRUPT, "%s: texts begin at position %lld of the table", where,
                    (long long)c->first_position);
  if (c->start_token < 0 || c->start_token >= c->vocab)
    return att_fail(ATT_CORRUPT, "%s: the decoder starts with token %d, outside the vocabulary",
                    where, (int)c->start_token);
  if (c->position != ATT_POSITION_RELATIVE) return ATT_OK;
  ATT_TRY(check_size(c->relative_buckets, MOST_SIZE, "number of distance buckets", where));
  if (c->relative_buckets >= 4 && c->relative_buckets % 2 == 0 &&
      c->relative_reach > c->relative_buckets / 2 && c->relative_reach <= MOST_SIZE)
    return ATT_OK;
  return att_fail(ATT_CORRUPT, "%s: %lld buckets for distances up to %lld", where,
                  (long long)c->relative_buckets, (long long)c->relative_reach);
}

static att_status check_attention(const att_config *c, const char *where) {
  if (!(c->scale > 0))
    return att_fail(ATT_CORRUPT, "%s: the scale of scores is %g, not positive", where, c->scale);
  if (!(c->softcap > 0 && c->final_softcap > 0))
    return att_fail(ATT_CORRUPT, "%s: soft caps are %g and %g, not positive", where, c->softcap,
                    c->final_softcap);
  bool windowed = false;
  for (int64_t l = 0; l < c->layers; l++) windowed |= att_layer_set_has(&c->windowed, l);
  if (windowed) ATT_TRY(check_size(c->window, MOST_SIZE, "sliding window", where));
  return ATT_OK;
}

static att_status check_experts(const att_config *c, const char *where) {
  if (c->ffn != ATT_FFN_EXPERTS) return ATT_OK;
  ATT_TRY(check_size(c->experts, ATT_MOST_EXPERTS, "number of experts", where));
  if (c->experts_used < 1 || c->experts_used > c->experts)
    return att_fail(ATT_CORRUPT, "%s: %lld experts a token of %lld", where,
                    (long long)c->experts_used, (long long)c->experts);
  if (!(c->swiglu_limit > 0))
    return att_fail(ATT_CORRUPT, "%s: the limit of the gated unit is %g", where, c->swiglu_limit);
  return ATT_OK;
}

att_status att_config_check(const att_config *c, const char *where) {
  ATT_TRY(check_size(c->layers, ATT_MOST_LAYERS, "number of layers", where));
  ATT_TRY(check_size(c->width, MOST_SIZE, "width", where));
  ATT_TRY(check_size(c->heads, MOST_SIZE, "number of heads", where));
  ATT_TRY(check_size(c->kv_heads, MOST_SIZE, "number of key/value heads", where));
  ATT_TRY(check_size(c->head_dim, MOST_SIZE, "head dimension", where));
  ATT_TRY(check_size(c->vocab, MOST_SIZE, "vocabulary size", where));
  ATT_TRY(check_size(c->context, MOST_SIZE, "context length", where));
  if (c->ffn != ATT_FFN_NONE)
    ATT_TRY(check_size(c->ffn_width, MOST_SIZE, "feed-forward width", where));
  if (c->heads % c->kv_heads)
    return att_fail(ATT_CORRUPT, "%s: %lld key/value heads do not divide %lld heads", where,
                    (long long)c->kv_heads, (long long)c->heads);
  if (c->norm != ATT_NORM_NONE && !(c->norm_eps >= 0 && c->norm_eps <= 1))
    return att_fail(ATT_CORRUPT, "%s: norm epsilon is %g, not from 0 to 1", where, c->norm_eps);
  if (c->position == ATT_POSITION_ROPE) ATT_TRY(check_rope(&c->rope, c->head_dim, where));
  ATT_TRY(check_encoder(c, where));
  if (c->has_local_rope) ATT_TRY(check_rope(&c->local_rope, c->head_dim, where));
  ATT_TRY(check_attention(c, where));
  ATT_TRY(check_experts(c, where));
  if (!att_ffn_is_supported(c->ffn, c->activation))
    return att_fail(ATT_UNSUPPORTED, "%s: this activation in this kind of feed-forward network",
                    where);
  return ATT_OK;
}

double att_config_scale(const att_config *config, int64_t layer) {
  if (!config->scale_by_layer) return config->scale;
  double scale =
      config->scale == ATT_SCALE_DEFAULT ? 1 / sqrt((double)config->head_dim) : config->scale;
  return scale / (double)(layer + 1);
}

unsigned att_config_parts(const att_config *c) {
  unsigned parts = 0;
  if (c->norm != ATT_NORM_NONE) parts |= ATT_PART_NORM;
  if (c->norm == ATT_NORM_LAYER) parts |= ATT_PART_NORM_BIAS;
  if (c->qkv_bias) parts |= ATT_PART_QKV_BIAS;
  if (c->out_bias) parts |= ATT_PART_OUT_BIAS;
  if (c->norm != ATT_NORM_NONE && c->norm_place != ATT_NORM_AFTER) parts |= ATT_PART_NORM_BEFORE;
  if (c->norm != ATT_NORM_NONE &&
      (c->norm_place == ATT_NORM_AFTER || c->norm_place == ATT_NORM_AROUND))
    parts |= ATT_PART_NORM_AFTER;
  if (c->qk_norm != ATT_QK_NORM_NONE) parts |= ATT_PART_QK_NORM;
  if (c->sinks) parts |= ATT_PART_SINKS;
  if (c->ffn != ATT_FFN_NONE) parts |= ATT_PART_ANY_FFN;
  if (c->ffn == ATT_FFN_PLAIN || c->ffn == ATT_FFN_GATED) parts |= ATT_PART_FFN;
  if (c->ffn == ATT_FFN_GATED) parts |= ATT_PART_GATE;
  if (c->ffn == ATT_FFN_EXPERTS) parts |= ATT_PART_EXPERTS;
  if (c->ffn == ATT_FFN_EXPERTS && c->ffn_bias) parts |= ATT_PART_EXPERT_BIAS;
  if ((parts & ATT_PART_FFN) && c->ffn_bias) parts |= ATT_PART_FFN_BIAS;
  if (c->ffn == ATT_FFN_GATED && c->ffn_bias) parts |= ATT_PART_GATE_BIAS;
  if (c->position == ATT_POSITION_LEARNED) parts |= ATT_PART_POSITIONS;
  if (c->position == ATT_POSITION_ROPE) parts |= ATT_PART_ROPE;
  if ((parts & ATT_PART_ROPE) && c->rope.scaling == ATT_ROPE_TABLE) parts |= ATT_PART_ROPE_TABLE;
  if ((parts & ATT_PART_ROPE) && c->rope.scaling == ATT_ROPE_LONGROPE) parts |= ATT_PART_LONGROPE;
  if (!c->tied_output) parts |= ATT_PART_OWN_OUTPUT;
  bool last = c->norm_place != ATT_NORM_AFTER_SUM || c->fill_head;
  if (c->norm != ATT_NORM_NONE && last) parts |= ATT_PART_NORM_LAST;
  if (c->embed_norm) parts |= ATT_PART_NORM_EMBED;
  if (c->token_types) parts |= ATT_PART_TYPES;
  if (c->pooler) parts |= ATT_PART_POOLER;
  if (c->fill_head) parts |= ATT_PART_FILL_HEAD;
  if (c->position == ATT_POSITION_RELATIVE) parts |= ATT_PART_RELATIVE;
  if (c->encoder_layers) parts |= ATT_PART_ENCODER;
  return parts;
}

int64_t att_config_size(const att_config *c, att_size size) {
  switch (size) {
  case ATT_SIZE_1: return 1;
  case ATT_SIZE_V: return c->vocab;
  case ATT_SIZE_N: return c->first_position + c->context;
  case ATT_SIZE_C: return c->width;
  case ATT_SIZE_F: return c->ffn_width;
  case ATT_SIZE_HD: return c->heads * c->head_dim;
  case ATT_SIZE_GD: return c->kv_heads * c->head_dim;
  case ATT_SIZE_R: return c->rope.pairs;
  case ATT_SIZE_Y: return c->token_types;
  case ATT_SIZE_B: return c->relative_buckets;
  case ATT_SIZE_H: return c->heads;
  case ATT_SIZE_QN: return c->qk_norm == ATT_QK_NORM_ROW ? c->heads * c->head_dim : c->head_dim;
  case ATT_SIZE_KN: return c->qk_norm == ATT_QK_NORM_ROW ? c->kv_heads * c->head_dim : c->head_dim;
  case ATT_SIZE_E: return c->experts;
  case ATT_SIZE_EF: return c->experts * c->ffn_width;
  case ATT_SIZE_EC: return c->experts * c->width;
  }
  return 0;
}
