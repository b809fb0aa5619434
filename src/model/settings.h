/* Reading a settings file such as config.json without guessing.
 *
 * Absent, null and a value are three things: an absent setting keeps the
 * default that the caller put there, null is refused unless the setting may be
 * null. A wrong type is refused with file and key, and so is, at the end, every
 * setting that nobody asked for and that is not known to be harmless: what
 * changes a model's numbers must not be skipped in silence. */
#ifndef ATT_MODEL_SETTINGS_H
#define ATT_MODEL_SETTINGS_H

#include "base/json.h"
#include "model/config.h"

typedef struct att_settings {
  const att_runtime *runtime;
  const char *where; /* begins messages: the file, or file and outer key */
  const att_json_node *object;
  bool *asked; /* [object->count] */
} att_settings;

/* `where` and `object` are borrowed. CORRUPT if it is no object. */
att_status att_settings_open(att_settings *out, const att_runtime *runtime, const char *where,
                             const att_json_node *object);
void att_settings_close(att_settings *settings);

/* Refuses settings that nobody asked for. UNSUPPORTED. */
att_status att_settings_finish(const att_settings *settings);

typedef enum att_need {
  ATT_NEEDED,     /* must be there, with a value */
  ATT_WITH_VALUE, /* may be absent, must not be null */
  ATT_NULLABLE    /* null is as good as absent */
} att_need;

/* Each writes *out only if there is a value. Numbers are rounded to f32, the
 * type in which other formats keep them. */
att_status att_setting_size(int64_t *out, att_settings *settings, const char *key, att_need need);
/* The same from 0 on, as ids are. */
att_status att_setting_id(int64_t *out, att_settings *settings, const char *key);
att_status att_setting_number(double *out, att_settings *settings, const char *key, att_need need);
att_status att_setting_bool(bool *out, att_settings *settings, const char *key, att_need need);
att_status att_setting_string(const char **out, att_settings *settings, const char *key,
                              att_need need);
/* NULL stays if absent or null. */
att_status att_setting_object(const att_json_node **out, att_settings *settings, const char *key);

/* Marks a setting as known without reading it. */
void att_setting_skip(att_settings *settings, const char *key);

/* The first entry of "architectures", or "". */
const char *att_setting_class(const att_settings *settings);

/* "silu", "gelu_new" …; UNSUPPORTED with the name otherwise. */
att_status att_setting_activation(att_activation *out, att_settings *settings, const char *key,
                                  att_need need);

/* A whole number from 0 on. */
att_status att_setting_count(int64_t *out, att_settings *settings, const char *key);

/* A list of 0 and 1 for each layer: those with `member` are put into *set; *given is
 * false if there is no such list. */
att_status att_setting_flags(att_layer_set *set, bool *given, att_settings *settings,
                             const char *key, int64_t layers, bool member);

/* A list of numbers, *n of them, at most `most`; it must be there. */
att_status att_setting_numbers(float *out, int64_t *n, int64_t most, att_settings *settings,
                               const char *key);

/* "layer_types": which layers slide; *given is false if there is no such list. */
att_status att_setting_layer_types(att_layer_set *sliding, bool *given, att_settings *settings,
                                   int64_t layers);

/* How a family spells its rotary positions. */
typedef struct att_rope_format {
  const char *theta_key;   /* older spelling, outside of any object */
  const char *theta_other; /* and another for the same, which some files have beside it; or NULL */
  const char *partial_key; /* NULL: always the whole of a head */
  const char *partial_other;
  const char *scaling_key; /* NULL: not scaled there */
  const char *layer;       /* newer spelling: the type of layer, or NULL */
  double theta, partial;   /* what an absent one means */
  bool longrope;           /* may have that kind */
} att_rope_format;
extern const att_rope_format att_rope_usual;

/* Rotary positions for heads of `head_dim`: rope_theta and rope_scaling, or the
 * newer rope_parameters that holds both. `context` is the default of a scaling's
 * original context. `divisors` gets longrope's; it may be NULL without those. */
att_status att_setting_rope(att_rope *out, float divisors[2][ATT_MOST_PAIRS],
                            att_settings *settings, const att_rope_format *format, int64_t head_dim,
                            int64_t context);

#endif
