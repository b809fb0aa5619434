/* Rotary positions in config.json, in both spellings.
 *
 *   older: "rope_theta": 10000.0, "rope_scaling": {"rope_type" or "type": …}
 *   newer: "rope_parameters": {"rope_theta": …, "rope_type": …}, or that for each
 *          type of layer: {"full_attention": {…}, "sliding_attention": {…}}
 *
 * A file may hold both; if they differ there is no telling which one the
 * weights were made with, so it is refused. */
#include <stdio.h>
#include <string.h>

#include "model/settings.h"

/* What the two objects of a file are read into. */
typedef struct rope_reading {
  att_rope rope;
  double partial;                    /* part of a head that is turned */
  double given;                      /* attention_factor; 0: none */
  float (*divisors)[ATT_MOST_PAIRS]; /* [2] of longrope */
  const att_rope_format *format;
  int64_t head_dim, context;
} rope_reading;

/* The kind of scaling by its name, under either key. */
static att_status read_kind(rope_reading *r, att_settings *scaling) {
  static const struct {
    const char *name;
    att_rope_scaling scaling;
  } known[] = {{"default", ATT_ROPE_PLAIN},     {"linear", ATT_ROPE_LINEAR},
               {"llama3", ATT_ROPE_LLAMA3},     {"yarn", ATT_ROPE_YARN},
               {"longrope", ATT_ROPE_LONGROPE}, {"su", ATT_ROPE_LONGROPE},
               {"dynamic", ATT_ROPE_DYNAMIC}};
  const char *name = NULL, *older = NULL;
  ATT_TRY(att_setting_string(&name, scaling, "rope_type", ATT_WITH_VALUE));
  ATT_TRY(att_setting_string(&older, scaling, "type", ATT_WITH_VALUE));
  if (name && older && strcmp(name, older))
    return att_fail(ATT_CORRUPT, "%s: rope_type is \"%s\" and type \"%s\"", scaling->where, name,
                    older);
  if (!name) name = older ? older : "default";
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(name, known[i].name)) continue;
    r->rope.scaling = known[i].scaling;
    /* Phi-3's first files called longrope by two other names. */
    if (r->format->longrope && r->rope.scaling == ATT_ROPE_YARN)
      r->rope.scaling = ATT_ROPE_LONGROPE;
    if (r->format->longrope || r->rope.scaling != ATT_ROPE_LONGROPE) return ATT_OK;
  }
  return att_fail(ATT_UNSUPPORTED,
                  "%s: rope type \"%s\"; attend knows default, linear, llama3, yarn, dynamic and "
                  "(of phi3) longrope",
                  scaling->where, name);
}

static att_status read_original(double *out, att_settings *scaling, att_need need) {
  int64_t original = (int64_t)*out;
  ATT_TRY(att_setting_size(&original, scaling, "original_max_position_embeddings", need));
  *out = (double)original;
  return ATT_OK;
}

static att_status read_yarn(att_rope *rope, att_settings *scaling) {
  rope->beta_fast = 32;
  rope->beta_slow = 1;
  rope->truncate = true;
  double mscale = 0, mscale_all = 0, given = 0;
  ATT_TRY(read_original(&rope->original, scaling, ATT_NULLABLE));
  ATT_TRY(att_setting_number(&rope->beta_fast, scaling, "beta_fast", ATT_NULLABLE));
  ATT_TRY(att_setting_number(&rope->beta_slow, scaling, "beta_slow", ATT_NULLABLE));
  ATT_TRY(att_setting_bool(&rope->truncate, scaling, "truncate", ATT_NULLABLE));
  ATT_TRY(att_setting_number(&given, scaling, "attention_factor", ATT_NULLABLE));
  ATT_TRY(att_setting_number(&mscale, scaling, "mscale", ATT_NULLABLE));
  ATT_TRY(att_setting_number(&mscale_all, scaling, "mscale_all_dim", ATT_NULLABLE));
  att_setting_skip(scaling, "finetuned");
  if (mscale != 0 || mscale_all != 0)
    return att_fail(ATT_UNSUPPORTED, "%s: mscale of yarn", scaling->where);
  rope->magnitude = given != 0 ? given : att_rope_yarn_magnitude(rope->factor);
  return ATT_OK;
}

static att_status read_longrope(rope_reading *r, att_settings *scaling) {
  static const char *const keys[] = {"short_factor", "long_factor"};
  int64_t n[2];
  for (int i = 0; i < 2; i++)
    ATT_TRY(att_setting_numbers(r->divisors[i], &n[i], ATT_MOST_PAIRS, scaling, keys[i]));
  if (n[0] != n[1])
    return att_fail(ATT_CORRUPT, "%s: %lld numbers in short_factor and %lld in long_factor",
                    scaling->where, (long long)n[0], (long long)n[1]);
  r->rope.pairs = n[0]; /* as long as the part of a head says, checked there */
  ATT_TRY(read_original(&r->rope.original, scaling, ATT_WITH_VALUE));
  double factor = (double)r->context / r->rope.original, given = 0;
  att_setting_skip(scaling, "factor"); /* which is context / original wherever it stands */
  ATT_TRY(att_setting_number(&given, scaling, "attention_factor", ATT_NULLABLE));
  r->rope.magnitude = given != 0 ? given : att_rope_long_magnitude(factor, r->rope.original);
  return ATT_OK;
}

static att_status read_kind_settings(rope_reading *r, att_settings *scaling) {
  att_rope *rope = &r->rope;
  ATT_TRY(read_kind(r, scaling));
  att_need need = rope->scaling == ATT_ROPE_PLAIN ? ATT_NULLABLE : ATT_NEEDED;
  if (rope->scaling == ATT_ROPE_LONGROPE) {
    ATT_TRY(read_longrope(r, scaling));
    return att_settings_finish(scaling);
  }
  ATT_TRY(att_setting_number(&rope->factor, scaling, "factor", need));
  if (rope->scaling == ATT_ROPE_LLAMA3) {
    ATT_TRY(att_setting_number(&rope->low, scaling, "low_freq_factor", ATT_NEEDED));
    ATT_TRY(att_setting_number(&rope->high, scaling, "high_freq_factor", ATT_NEEDED));
    ATT_TRY(read_original(&rope->original, scaling, ATT_NEEDED));
  }
  if (rope->scaling == ATT_ROPE_YARN) ATT_TRY(read_yarn(rope, scaling));
  if (rope->scaling == ATT_ROPE_DYNAMIC)
    ATT_TRY(read_original(&rope->original, scaling, ATT_NULLABLE));
  return att_settings_finish(scaling);
}

/* One of the two objects; theta and part may stand in the newer one. */
static att_status read_object(rope_reading *r, att_settings *settings, const char *key,
                              const att_json_node *object) {
  char where[512];
  snprintf(where, sizeof where, "%s: %s", settings->where, key);
  att_settings scaling;
  ATT_TRY(att_settings_open(&scaling, settings->runtime, where, object));
  att_status status = att_setting_number(&r->rope.theta, &scaling, "rope_theta", ATT_WITH_VALUE);
  if (status == ATT_OK)
    status = att_setting_number(&r->partial, &scaling, "partial_rotary_factor", ATT_WITH_VALUE);
  if (status == ATT_OK) status = read_kind_settings(r, &scaling);
  att_settings_close(&scaling);
  return status;
}

/* rope_parameters, or what it holds for the format's type of layer. */
static att_status newer_object(const att_json_node **out, att_settings *settings,
                               const char *layer) {
  ATT_TRY(att_setting_object(out, settings, "rope_parameters"));
  if (!layer || !*out) return ATT_OK;
  for (const att_json_node *n = (*out)->child; n; n = n->next)
    if (strcmp(n->key, "full_attention") && strcmp(n->key, "sliding_attention"))
      return att_fail(ATT_UNSUPPORTED, "%s: rope_parameters: \"%s\" is no type of layer here",
                      settings->where, n->key);
  const att_json_node *of_layer = att_json_member(*out, layer);
  if (!of_layer || of_layer->type != ATT_JSON_OBJECT)
    return att_fail(ATT_CORRUPT, "%s: rope_parameters: \"%s\" is %s", settings->where, layer,
                    of_layer ? "not an object" : "missing");
  *out = of_layer;
  return ATT_OK;
}

static bool same(const rope_reading *x, const rope_reading *y) {
  const att_rope *a = &x->rope, *b = &y->rope;
  return a->theta == b->theta && a->scaling == b->scaling && a->factor == b->factor &&
         a->original == b->original && a->low == b->low && a->high == b->high &&
         a->beta_fast == b->beta_fast && a->beta_slow == b->beta_slow &&
         a->truncate == b->truncate && a->magnitude == b->magnitude && x->partial == y->partial &&
         !memcmp(x->divisors, y->divisors, 2 * sizeof *x->divisors);
}

/* The number of pairs that the turned part of a head has. */
static att_status count_pairs(rope_reading *r, const char *where) {
  if (!(r->partial > 0 && r->partial <= 1))
    return att_fail(ATT_CORRUPT, "%s: %g of a head cannot be rotated", where, r->partial);
  if (r->partial != 1 && !r->format->partial_key)
    return att_fail(ATT_UNSUPPORTED,
                    "%s: \"partial_rotary_factor\" rotates %g of a head, this family all", where,
                    r->partial);
  int64_t rotated = (int64_t)(r->partial * (double)r->head_dim), listed = r->rope.pairs;
  if (rotated < 2 || rotated % 2)
    return att_fail(ATT_CORRUPT,
                    "%s: %lld of the %lld numbers of a head cannot be rotated in pairs", where,
                    (long long)rotated, (long long)r->head_dim);
  r->rope.pairs = rotated / 2;
  if (r->rope.scaling == ATT_ROPE_LONGROPE && listed != r->rope.pairs)
    return att_fail(ATT_CORRUPT, "%s: short_factor and long_factor have %lld numbers, not %lld",
                    where, (long long)listed, (long long)r->rope.pairs);
  return ATT_OK;
}

const att_rope_format att_rope_usual = {.theta_key = "rope_theta",
                                        .scaling_key = "rope_scaling",
                                        .partial_other = "partial_rotary_factor",
                                        .theta = 10000,
                                        .partial = 1};

/* A number under either key, or both, which must agree then; a key may be NULL. */
static att_status read_either(double *out, bool *there, att_settings *settings, const char *key,
                              const char *other) {
  const char *const keys[] = {key, other};
  double first = 0;
  *there = false;
  for (int i = 0; i < 2; i++) {
    if (!keys[i] || !att_json_member(settings->object, keys[i])) continue;
    ATT_TRY(att_setting_number(out, settings, keys[i], ATT_WITH_VALUE));
    if (*there && *out != first)
      return att_fail(ATT_CORRUPT, "%s: \"%s\" is %g and \"%s\" %g", settings->where, key, first,
                      other, *out);
    first = *out;
    *there = true;
  }
  return ATT_OK;
}

att_status att_setting_rope(att_rope *out, float divisors[2][ATT_MOST_PAIRS],
                            att_settings *settings, const att_rope_format *format, int64_t head_dim,
                            int64_t context) {
  const att_json_node *older = NULL, *newer = NULL;
  float tables[2][2][ATT_MOST_PAIRS] = {0};
  rope_reading plain = {.rope = {.theta = format->theta, .magnitude = 1},
                        .partial = format->partial,
                        .divisors = tables[0],
                        .format = format,
                        .head_dim = head_dim,
                        .context = context};
  plain.rope.original = (double)context;
  double *theta = &plain.rope.theta;
  bool has_theta, has_partial;
  ATT_TRY(read_either(theta, &has_theta, settings, format->theta_key, format->theta_other));
  ATT_TRY(read_either(&plain.partial, &has_partial, settings, format->partial_key,
                      format->partial_other));
  if (format->longrope) {
    plain.rope.original = 4096;
    ATT_TRY(read_original(&plain.rope.original, settings, ATT_WITH_VALUE));
  }
  if (format->scaling_key) ATT_TRY(att_setting_object(&older, settings, format->scaling_key));
  ATT_TRY(newer_object(&newer, settings, format->layer));

  rope_reading by_older = plain, by_newer = plain;
  by_newer.divisors = tables[1];
  if (older) ATT_TRY(read_object(&by_older, settings, format->scaling_key, older));
  if (newer) ATT_TRY(read_object(&by_newer, settings, "rope_parameters", newer));
  bool contradict = (older && newer && !same(&by_older, &by_newer)) ||
                    (has_theta && newer && by_newer.rope.theta != *theta) ||
                    (has_partial && newer && by_newer.partial != plain.partial);
  if (contradict)
    return att_fail(ATT_CORRUPT, "%s: rope_parameters contradict %s and %s", settings->where,
                    format->theta_key, format->scaling_key ? format->scaling_key : "others");
  rope_reading *chosen = newer ? &by_newer : &by_older;
  ATT_TRY(count_pairs(chosen, settings->where));
  if (divisors) memcpy(divisors, chosen->divisors, sizeof tables[0]);
  *out = chosen->rope;
  return ATT_OK;
}
