/* The families that GGUF files may be of. */
#include "model/gguf_family.h"

#include <stdio.h>
#include <string.h>

#include "attend/sdpa.h"
#include "base/line.h"

/* ---- what all have ---- */

att_status att_gguf_sizes(att_config *c, att_gguf_keys *k) {
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

/* ---- llama ---- */

static att_status read_yarn(att_rope *rope, att_gguf_keys *k, int64_t context) {
  int64_t original = context;
  double factor = 1;
  rope->scaling = ATT_ROPE_YARN;
  rope->beta_fast = 32;
  rope->beta_slow = 1;
  rope->truncate = true;
  ATT_TRY(att_gguf_key_size(&original, k, "rope.scaling.original_context_length", false));
  ATT_TRY(att_gguf_key_number(&rope->beta_fast, k, "rope.scaling.yarn_beta_fast", false));
  ATT_TRY(att_gguf_key_number(&rope->beta_slow, k, "rope.scaling.yarn_beta_slow", false));
  ATT_TRY(att_gguf_key_number(&factor, k, "rope.scaling.attn_factor", false));
  if (factor != 1)
    return att_fail(ATT_UNSUPPORTED, "%s: key \"%s.rope.scaling.attn_factor\" is %g, not 1",
                    att_gguf_name(k->file), k->family, factor);
  rope->original = (double)original;
  rope->magnitude = att_rope_yarn_magnitude(rope->factor);
  return ATT_OK;
}

/* llama3's scaling comes as a table of divisors, the others as keys. */
static att_status read_scaling(att_rope *rope, att_gguf_keys *k, int64_t context) {
  att_gguf_text type = {"none", 4};
  char label[64];
  ATT_TRY(att_gguf_key_text(&type, k, "rope.scaling.type"));
  bool none = att_gguf_text_is(type, "none"), table = has(k, "rope_freqs.weight");
  att_gguf_key_skip(k, "rope.scaling.finetuned");
  ATT_TRY(att_gguf_key_number(&rope->factor, k, "rope.scaling.factor", !none));
  if (table && none) rope->scaling = ATT_ROPE_TABLE;
  if (none) att_gguf_key_skip(k, "rope.scaling.original_context_length");
  if (none) return ATT_OK;
  if (att_gguf_text_is(type, "linear") && !table) {
    rope->scaling = ATT_ROPE_LINEAR;
    return ATT_OK;
  }
  if (att_gguf_text_is(type, "yarn") && !table) return read_yarn(rope, k, context);
  return att_fail(ATT_UNSUPPORTED,
                  "%s: key \"%s.rope.scaling.type\" is %s%s; attend knows none, "
                  "linear and yarn",
                  att_gguf_name(k->file), k->family,
                  att_quote(label, sizeof label, type.bytes, type.n),
                  table ? " beside a table of divisors" : "");
}

static att_status read_rope(att_config *c, att_gguf_keys *k) {
  int64_t rotated = c->head_dim;
  ATT_TRY(att_gguf_key_size(&rotated, k, "rope.dimension_count", false));
  if (rotated > c->head_dim || rotated % 2)
    return att_fail(ATT_CORRUPT, "%s: key \"%s.rope.dimension_count\" is %lld in heads of %lld",
                    att_gguf_name(k->file), k->family, (long long)rotated, (long long)c->head_dim);
  if (rotated < c->head_dim)
    return att_fail(ATT_UNSUPPORTED, "%s: key \"%s.rope.dimension_count\" is %lld, heads have %lld",
                    att_gguf_name(k->file), k->family, (long long)rotated, (long long)c->head_dim);
  c->position = ATT_POSITION_ROPE;
  c->rope.pairs = rotated / 2;
  c->rope.theta = 10000;
  ATT_TRY(att_gguf_key_number(&c->rope.theta, k, "rope.freq_base", false));
  return read_scaling(&c->rope, k, c->context);
}

static att_status read_llama(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_sizes(c, k));
  ATT_TRY(read_rope(c, k));
  c->norm = ATT_NORM_RMS;
  ATT_TRY(att_gguf_key_number(&c->norm_eps, k, "attention.layer_norm_rms_epsilon", true));
  c->ffn = ATT_FFN_GATED;
  c->activation = ATT_SILU;
  c->qkv_bias = has(k, "blk.0.attn_q.bias");
  c->out_bias = has(k, "blk.0.attn_output.bias");
  c->ffn_bias = has(k, "blk.0.ffn_up.bias");
  return ATT_OK;
}

static const char *llama_lacks(const att_config *c) {
  bool llama = c->norm == ATT_NORM_RMS && c->position == ATT_POSITION_ROPE &&
               c->ffn == ATT_FFN_GATED && c->activation == ATT_SILU;
  if (!llama) return "a norm, positions or an activation that llama has not";
  if (c->scale != ATT_SCALE_DEFAULT || c->scale_by_layer) return "another scale than 1/sqrt(dim)";
  if (c->rope.scaling != ATT_ROPE_YARN) return NULL;
  if (!c->rope.truncate) return "yarn without truncation";
  if (c->rope.magnitude != att_rope_yarn_magnitude(c->rope.factor)) return "yarn's own magnitude";
  return NULL;
}

/* ---- gpt2 ---- */

static att_status read_gpt2(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gguf_sizes(c, k));
  if (c->kv_heads != c->heads || c->head_dim * c->heads != c->width)
    return att_fail(ATT_UNSUPPORTED, "%s: GPT-2 with %lld heads of %lld, %lld for keys, width %lld",
                    att_gguf_name(k->file), (long long)c->heads, (long long)c->head_dim,
                    (long long)c->kv_heads, (long long)c->width);
  c->norm = ATT_NORM_LAYER;
  ATT_TRY(att_gguf_key_number(&c->norm_eps, k, "attention.layer_norm_epsilon", true));
  c->position = ATT_POSITION_LEARNED;
  c->ffn = ATT_FFN_PLAIN;
  c->activation = ATT_GELU_TANH;
  c->qkv_bias = c->out_bias = c->ffn_bias = true;
  return ATT_OK;
}

static const char *gpt2_lacks(const att_config *c) {
  if (c->activation != ATT_GELU_TANH) return "an activation other than the tanh form of GELU";
  if (c->scale_by_layer) return "a scale that depends on the layer";
  return c->scale != ATT_SCALE_DEFAULT ? "another scale than 1/sqrt(dim)" : NULL;
}

/* ---- the table ---- */

static const att_gguf_family gpt2 = {
    .name = "gpt2", .fused = true, .read = read_gpt2, .lacks = gpt2_lacks};
static const att_gguf_family llama = {
    .name = "llama", .pairs_adjacent = true, .read = read_llama, .lacks = llama_lacks};

static const att_gguf_family *const families[] = {&att_gguf_bert, &gpt2, &llama, &att_gguf_t5};

att_status att_gguf_family_find(const att_gguf_family **out, att_gguf_text name,
                                const char *where) {
  char label[64], known[128] = "";
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    if (att_gguf_text_is(name, families[i]->name)) {
      *out = families[i];
      return ATT_OK;
    }
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
             families[i]->name);
  }
  return att_fail(ATT_UNSUPPORTED,
                  "%s: key \"general.architecture\" is %s; families that attend reads: %s", where,
                  att_quote(label, sizeof label, name.bytes, name.n), known);
}

const char *att_gguf_slot_name(int *part, const att_gguf_family *family, att_slot slot) {
  static const char *const names[ATT_SLOT_COUNT] = {
#define ATT_GGUF_NAME(slot, name) [ATT_SLOT_##slot] = name,
#include "model/gguf_names.inc"
#undef ATT_GGUF_NAME
  };
  *part = -1;
  for (int i = 0; i < ATT_GGUF_MOST_OTHERS && family->others[i].stored.name; i++)
    if (family->others[i].slot == slot) return family->others[i].stored.name;
  if (!family->fused) return names[slot];
  switch (slot) {
  case ATT_SLOT_Q_W:
  case ATT_SLOT_K_W:
  case ATT_SLOT_V_W:
    *part = slot == ATT_SLOT_Q_W ? 0 : slot == ATT_SLOT_K_W ? 1 : 2;
    return "blk.{l}.attn_qkv.weight";
  case ATT_SLOT_Q_B:
  case ATT_SLOT_K_B:
  case ATT_SLOT_V_B:
    *part = slot == ATT_SLOT_Q_B ? 0 : slot == ATT_SLOT_K_B ? 1 : 2;
    return "blk.{l}.attn_qkv.bias";
  default: return names[slot];
  }
}
