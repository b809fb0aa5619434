/* Rotary positions in config.json, in both spellings.
 *
 *   older: "rope_theta": 10000.0, "rope_scaling": {"rope_type" or "type": …}
 *   newer: "rope_parameters": {"rope_theta": …, "rope_type": …}
 *
 * A file may hold both; if they differ there is no telling which one the
 * weights were made with, so it is refused. */
#include <stdio.h>
#include <string.h>

#include "model/settings.h"

/* The kind of scaling by its name, under either key. */
static att_status read_kind(att_rope_scaling *out, att_settings *scaling) {
  static const struct {
    const char *name;
    att_rope_scaling scaling;
  } known[] = {{"default", ATT_ROPE_PLAIN},
               {"linear", ATT_ROPE_LINEAR},
               {"llama3", ATT_ROPE_LLAMA3},
               {"yarn", ATT_ROPE_YARN}};
  const char *name = NULL, *older = NULL;
  ATT_TRY(att_setting_string(&name, scaling, "rope_type", ATT_WITH_VALUE));
  ATT_TRY(att_setting_string(&older, scaling, "type", ATT_WITH_VALUE));
  if (name && older && strcmp(name, older))
    return att_fail(ATT_CORRUPT, "%s: rope_type is \"%s\" and type \"%s\"", scaling->where, name,
                    older);
  if (!name) name = older ? older : "default";
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(name, known[i].name)) {
      *out = known[i].scaling;
      return ATT_OK;
    }
  return att_fail(ATT_UNSUPPORTED,
                  "%s: rope type \"%s\"; attend knows default, linear, llama3 and "
                  "yarn",
                  scaling->where, name);
}

static att_status read_original(double *out, att_settings *scaling, att_need need,
                                int64_t context) {
  int64_t original = context;
  ATT_TRY(att_setting_size(&original, scaling, "original_max_position_embeddings", need));
  *out = (double)original;
  return ATT_OK;
}

static att_status read_yarn(att_rope *rope, att_settings *scaling, int64_t context) {
  rope->beta_fast = 32;
  rope->beta_slow = 1;
  rope->truncate = true;
  double mscale = 0, mscale_all = 0, given = 0;
  ATT_TRY(read_original(&rope->original, scaling, ATT_NULLABLE, context));
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

static att_status read_kind_settings(att_rope *rope, att_settings *scaling, int64_t context) {
  ATT_TRY(read_kind(&rope->scaling, scaling));
  att_need need = rope->scaling == ATT_ROPE_PLAIN ? ATT_NULLABLE : ATT_NEEDED;
  ATT_TRY(att_setting_number(&rope->factor, scaling, "factor", need));
  if (rope->scaling == ATT_ROPE_LLAMA3) {
    ATT_TRY(att_setting_number(&rope->low, scaling, "low_freq_factor", ATT_NEEDED));
    ATT_TRY(att_setting_number(&rope->high, scaling, "high_freq_factor", ATT_NEEDED));
    ATT_TRY(read_original(&rope->original, scaling, ATT_NEEDED, context));
  }
  if (rope->scaling == ATT_ROPE_YARN) ATT_TRY(read_yarn(rope, scaling, context));
  return att_settings_finish(scaling);
}

/* One of the two objects into `rope`; rope_theta may stand in the newer one. */
static att_status read_object(att_rope *rope, att_settings *settings, const char *key,
                              const att_json_node *object, int64_t context) {
  char where[512];
  snprintf(where, sizeof where, "%s: %s", settings->where, key);
  att_settings scaling;
  ATT_TRY(att_settings_open(&scaling, settings->runtime, where, object));
  att_status status = att_setting_number(&rope->theta, &scaling, "rope_theta", ATT_WITH_VALUE);
  if (status == ATT_OK) status = read_kind_settings(rope, &scaling, context);
  att_settings_close(&scaling);
  return status;
}

static bool same(const att_rope *a, const att_rope *b) {
  return a->theta == b->theta && a->scaling == b->scaling && a->factor == b->factor &&
         a->original == b->original && a->low == b->low && a->high == b->high &&
         a->beta_fast == b->beta_fast && a->beta_slow == b->beta_slow &&
         a->truncate == b->truncate && a->magnitude == b->magnitude;
}

att_status att_setting_rope(att_rope *out, att_settings *settings, int64_t head_dim,
                            int64_t context) {
  const att_json_node *older = NULL, *newer = NULL;
  double theta = 0;
  ATT_TRY(att_setting_number(&theta, settings, "rope_theta", ATT_WITH_VALUE));
  bool has_theta = att_json_member(settings->object, "rope_theta") != NULL;
  ATT_TRY(att_setting_object(&older, settings, "rope_scaling"));
  ATT_TRY(att_setting_object(&newer, settings, "rope_parameters"));

  const att_rope plain = {
      .pairs = head_dim / 2, .theta = has_theta ? theta : 10000, .magnitude = 1};
  att_rope by_older = plain, by_newer = plain;
  if (older) ATT_TRY(read_object(&by_older, settings, "rope_scaling", older, context));
  if (newer) ATT_TRY(read_object(&by_newer, settings, "rope_parameters", newer, context));
  bool contradict = (older && newer && !same(&by_older, &by_newer)) ||
                    (has_theta && newer && by_newer.theta != theta);
  if (contradict)
    return att_fail(ATT_CORRUPT, "%s: rope_parameters contradict rope_theta and rope_scaling",
                    settings->where);
  *out = newer ? by_newer : by_older;
  return ATT_OK;
}
