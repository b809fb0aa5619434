/* Keys of decoders in GGUF. */
#include "model/gguf_decoder.h"

#include <string.h>

#include "attend/sdpa.h"
#include "base/line.h"

/* ---- sizes ---- */

att_status att_gguf_read_sizes(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_key_size(&c->context, k, "context_length", true));
  ATT_TRY(att_gguf_key_size(&c->width, k, "embedding_length", true));
  ATT_TRY(att_gguf_key_size(&c->layers, k, "block_count", true));
  ATT_TRY(att_gguf_key_size(&c->ffn_width, k, "feed_forward_length", true));
  ATT_TRY(att_gguf_key_size(&c->heads, k, "attention.head_count", true));
  c->kv_heads = c->heads;
  ATT_TRY(att_gguf_key_size(&c->kv_heads, k, "attention.head_count_kv", false));
  att_gguf_key_skip(k, "vocab_size"); /* checked against the embedding */
  att_gguf_key_skip(k, "tensor_data_layout");
  if (c->width % c->heads == 0) c->head_dim = c->width / c->heads;
  ATT_TRY(att_gguf_key_size(&c->head_dim, k, "attention.key_length", false));
  int64_t value_dim = c->head_dim;
  ATT_TRY(att_gguf_key_size(&value_dim, k, "attention.value_length", false));
  if (!c->head_dim)
    return att_fail(ATT_CORRUPT, "%s: %lld heads do not divide \"%s.embedding_length\" %lld",
                    att_gguf_name(k->file), (long long)c->heads, k->family, (long long)c->width);
  if (value_dim != c->head_dim)
    return att_fail(ATT_UNSUPPORTED, "%s: keys of %lld and values of %lld numbers a head",
                    att_gguf_name(k->file), (long long)c->head_dim, (long long)value_dim);
  return ATT_OK;
}

static bool has(const att_gguf_keys *k, const char *tensor) {
  return att_gguf_tensor_find(k->file, tensor) != NULL;
}

/* ---- rotation ---- */

static att_status read_original(att_rope *rope, att_gguf_keys *k, int64_t context) {
  int64_t original = context;
  ATT_TRY(att_gguf_key_size(&original, k, "rope.scaling.original_context_length", false));
  rope->original = (double)original;
  return ATT_OK;
}

static att_status read_yarn(att_rope *rope, att_gguf_keys *k, int64_t context) {
  double factor = 1;
  rope->scaling = ATT_ROPE_YARN;
  rope->beta_fast = 32;
  rope->beta_slow = 1;
  rope->truncate = true;
  ATT_TRY(read_original(rope, k, context));
  ATT_TRY(att_gguf_key_number(&rope->beta_fast, k, "rope.scaling.yarn_beta_fast", false));
  ATT_TRY(att_gguf_key_number(&rope->beta_slow, k, "rope.scaling.yarn_beta_slow", false));
  ATT_TRY(att_gguf_key_number(&factor, k, "rope.scaling.attn_factor", false));
  if (factor != 1)
    return att_fail(ATT_UNSUPPORTED, "%s: key \"%s.rope.scaling.attn_factor\" is %g, not 1",
                    att_gguf_name(k->file), k->family, factor);
  rope->magnitude = att_rope_yarn_magnitude(rope->factor);
  return ATT_OK;
}

/* Two tables of divisors, of which the length of a session chooses. */
static att_status read_longrope(att_rope *rope, att_gguf_keys *k, int64_t context) {
  rope->scaling = ATT_ROPE_LONGROPE;
  ATT_TRY(read_original(rope, k, context));
  return att_gguf_key_number(&rope->magnitude, k, "rope.scaling.attn_factor", false);
}

/* A table that llama3's rule gives, of a context that is a power of two, is that rule:
 * so the file can become one whose format has no tables. */
static void read_table(att_rope *rope, const att_gguf_keys *k) {
  const att_gguf_tensor *t = att_gguf_tensor_find(k->file, "rope_freqs.weight");
  float divisors[ATT_MOST_PAIRS];
  rope->scaling = ATT_ROPE_TABLE;
  bool usable = t->has_dtype && t->view.dtype == ATT_F32 && t->view.ndim == 1 &&
                t->view.shape[0] == rope->pairs && rope->pairs <= ATT_MOST_PAIRS;
  if (!usable) return;
  const float *table = t->view.data;
  att_rope guess = {.pairs = rope->pairs,
                    .theta = rope->theta,
                    .scaling = ATT_ROPE_LLAMA3,
                    .low = 1,
                    .high = 4,
                    .magnitude = 1};
  for (int64_t i = 0; i < rope->pairs; i++)
    if (guess.factor < (double)table[i]) guess.factor = (double)table[i];
  for (guess.original = 16; guess.original <= 1 << 20; guess.original *= 2) {
    att_rope_divisors(divisors, &guess);
    if (memcmp(divisors, table, (size_t)rope->pairs * sizeof *table)) continue;
    *rope = guess;
    return;
  }
}

/* llama3's scaling and longrope come as tables of divisors, the others as keys. */
static att_status read_scaling(att_rope *rope, att_gguf_keys *k, int64_t context) {
  att_gguf_text type = {"none", 4};
  char label[64];
  ATT_TRY(att_gguf_key_text(&type, k, "rope.scaling.type"));
  bool none = att_gguf_text_is(type, "none"), table = has(k, "rope_freqs.weight");
  bool two = has(k, "rope_factors_long.weight") && has(k, "rope_factors_short.weight");
  att_gguf_key_skip(k, "rope.scaling.finetuned");
  ATT_TRY(att_gguf_key_number(&rope->factor, k, "rope.scaling.factor", !none && !two));
  if (two && !table && (none || att_gguf_text_is(type, "longrope")))
    return read_longrope(rope, k, context);
  if (table && none) read_table(rope, k);
  if (none) att_gguf_key_skip(k, "rope.scaling.original_context_length");
  if (none) return ATT_OK;
  if (att_gguf_text_is(type, "linear") && !table) {
    rope->scaling = ATT_ROPE_LINEAR;
    return ATT_OK;
  }
  if (att_gguf_text_is(type, "yarn") && !table) return read_yarn(rope, k, context);
  return att_fail(ATT_UNSUPPORTED,
                  "%s: key \"%s.rope.scaling.type\" is %s%s; attend knows none, linear, yarn and, "
                  "with its tables, longrope",
                  att_gguf_name(k->file), k->family,
                  att_quote(label, sizeof label, type.bytes, type.n),
                  table ? " beside a table of divisors" : "");
}

att_status att_gguf_read_rope(att_config *c, att_gguf_keys *k) {
  int64_t rotated = c->head_dim;
  ATT_TRY(att_gguf_key_size(&rotated, k, "rope.dimension_count", false));
  if (rotated > c->head_dim || rotated % 2)
    return att_fail(ATT_CORRUPT, "%s: key \"%s.rope.dimension_count\" is %lld in heads of %lld",
                    att_gguf_name(k->file), k->family, (long long)rotated, (long long)c->head_dim);
  c->position = ATT_POSITION_ROPE;
  c->rope.pairs = rotated / 2;
  c->rope.theta = 10000;
  ATT_TRY(att_gguf_key_number(&c->rope.theta, k, "rope.freq_base", false));
  return read_scaling(&c->rope, k, c->context);
}

/* ---- reading ---- */

att_status att_gguf_decoder_read(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_read_sizes(c, k));
  ATT_TRY(att_gguf_read_rope(c, k));
  c->norm = ATT_NORM_RMS;
  ATT_TRY(att_gguf_key_number(&c->norm_eps, k, "attention.layer_norm_rms_epsilon", true));
  c->ffn = ATT_FFN_GATED;
  c->activation = ATT_SILU;
  return ATT_OK;
}

/* All but every period-th, counted from 1; period 0: all. */
static void slide(att_layer_set *set, int64_t layers, int64_t period) {
  for (int64_t l = 0; l < layers && l < ATT_MOST_LAYERS; l++)
    if (period == 0 || (l + 1) % period) att_layer_set_add(set, l);
}

att_status att_gguf_decoder_window(att_config *c, att_gguf_keys *k, int64_t period) {
  slide(&c->windowed, c->layers, period);
  ATT_TRY(att_gguf_key_count(&c->window, k, "attention.sliding_window"));
  ATT_TRY(att_gguf_key_layers(&c->windowed, k, "attention.sliding_window_pattern", c->layers));
  if (!c->window) c->windowed = (att_layer_set){0};
  return ATT_OK;
}

void att_gguf_decoder_biases(att_config *c, att_gguf_keys *k) {
  c->qkv_bias = has(k, "blk.0.attn_q.bias") || has(k, "blk.0.attn_qkv.bias");
  c->out_bias = has(k, "blk.0.attn_output.bias");
  c->ffn_bias = has(k, "blk.0.ffn_up.bias");
}

/* ---- writing ---- */

void att_gguf_write_sizes(att_gguf_list *l, const att_config *c) {
  att_gguf_add_size(l, "vocab_size", c->vocab);
  att_gguf_add_size(l, "context_length", c->context);
  att_gguf_add_size(l, "embedding_length", c->width);
  att_gguf_add_size(l, "block_count", c->layers);
  att_gguf_add_size(l, "feed_forward_length", c->ffn_width);
  att_gguf_add_size(l, "attention.head_count", c->heads);
  att_gguf_add_size(l, "attention.head_count_kv", c->kv_heads);
}

void att_gguf_write_rope(att_gguf_list *l, const att_rope *rope) {
  att_gguf_add_size(l, "rope.dimension_count", 2 * rope->pairs);
  att_gguf_add_number(l, "rope.freq_base", rope->theta);
  if (rope->scaling == ATT_ROPE_LONGROPE) {
    att_gguf_add_size(l, "rope.scaling.original_context_length", (int64_t)rope->original);
    att_gguf_add_number(l, "rope.scaling.attn_factor", rope->magnitude);
  }
  if (rope->scaling != ATT_ROPE_LINEAR && rope->scaling != ATT_ROPE_YARN) return;
  bool linear = rope->scaling == ATT_ROPE_LINEAR;
  att_gguf_add_name(l, "rope.scaling.type", linear ? "linear" : "yarn");
  att_gguf_add_number(l, "rope.scaling.factor", rope->factor);
  if (linear) return;
  att_gguf_add_size(l, "rope.scaling.original_context_length", (int64_t)rope->original);
  att_gguf_add_number(l, "rope.scaling.yarn_beta_fast", rope->beta_fast);
  att_gguf_add_number(l, "rope.scaling.yarn_beta_slow", rope->beta_slow);
}

/* Which layers slide, as a period where that says it, else one by one. */
static void write_window(att_gguf_list *l, const att_config *c) {
  static const att_layer_set none;
  if (!memcmp(&c->windowed, &none, sizeof none)) return;
  att_gguf_add_size(l, "attention.sliding_window", c->window);
  for (int64_t period = 0; period <= c->layers; period++) {
    att_layer_set set = {0};
    slide(&set, c->layers, period);
    if (period == 1 || memcmp(&set, &c->windowed, sizeof set)) continue;
    att_gguf_add_size(l, "attention.sliding_window_pattern", period);
    return;
  }
  att_gguf_add_flags(l, "attention.sliding_window_pattern", &c->windowed, c->layers);
}

void att_gguf_decoder_write(att_gguf_list *l, const att_config *c) {
  att_gguf_write_sizes(l, c);
  att_gguf_add_size(l, "attention.key_length", c->head_dim);
  att_gguf_add_size(l, "attention.value_length", c->head_dim);
  att_gguf_add_number(l, "attention.layer_norm_rms_epsilon", c->norm_eps);
  att_gguf_write_rope(l, &c->rope);
  if (c->has_local_rope) att_gguf_add_number(l, "rope.freq_base_swa", c->local_rope.theta);
  write_window(l, c);
  if (c->softcap != ATT_SOFTCAP_NONE) att_gguf_add_number(l, "attn_logit_softcapping", c->softcap);
  if (c->final_softcap != ATT_SOFTCAP_NONE)
    att_gguf_add_number(l, "final_logit_softcapping", c->final_softcap);
}

const char *att_gguf_rope_lacks(const att_rope *rope) {
  if (rope->scaling == ATT_ROPE_DYNAMIC) return "a rotation that grows with the context";
  if (rope->scaling != ATT_ROPE_YARN) return NULL;
  if (!rope->truncate) return "yarn without truncation";
  if (rope->magnitude != att_rope_yarn_magnitude(rope->factor)) return "yarn's own magnitude";
  return NULL;
}

const char *att_gguf_decoder_lacks(const att_config *c) {
  if (c->norm != ATT_NORM_RMS || c->position != ATT_POSITION_ROPE)
    return "a norm or positions of another kind";
  if (c->scale_by_layer) return "a scale that depends on the layer";
  return att_gguf_rope_lacks(&c->rope);
}
