/* Settings of a config.json as text. */
#include "model/config_write.h"

#include <string.h>

#include "attend/sdpa.h"
#include "base/decimal.h"
#include "base/json.h"
#include "model/checkpoint.h"

static void spell_shortest(char text[ATT_DECIMAL_BYTES], const att_runtime *runtime, double value) {
  bool same = false;
  for (int digits = 1; digits <= 9 && !same; digits++) {
    att_json *json;
    att_decimal(text, digits, value);
    if (att_json_parse(&json, runtime, text, strlen(text), "a number") != ATT_OK) continue;
    same = (float)att_json_root(json)->number == (float)value;
    att_json_free(json);
  }
}

void att_put_number(att_config_writer *w, const char *key, double value) {
  char text[ATT_DECIMAL_BYTES];
  spell_shortest(text, w->runtime, value);
  fprintf(w->file, ",\n  \"%s\": %s", key, text);
}

void att_put_size(att_config_writer *w, const char *key, int64_t value) {
  fprintf(w->file, ",\n  \"%s\": %lld", key, (long long)value);
}

void att_put_bool(att_config_writer *w, const char *key, bool value) {
  fprintf(w->file, ",\n  \"%s\": %s", key, value ? "true" : "false");
}

void att_put_text(att_config_writer *w, const char *key, const char *value) {
  fprintf(w->file, ",\n  \"%s\": \"%s\"", key, value);
}

void att_put_null(att_config_writer *w, const char *key) {
  fprintf(w->file, ",\n  \"%s\": null", key);
}

/* A table of divisors that the checkpoint brings. */
static void put_divisors(att_config_writer *w, const char *key, att_slot slot,
                         const att_rope *rope) {
  att_view view;
  float numbers[ATT_MOST_PAIRS];
  bool known = rope->pairs <= ATT_MOST_PAIRS &&
               w->source->find(&view, w->source, slot, -1, rope->pairs, 1) == ATT_OK &&
               att_slot_read(numbers, w->source, slot, &view) == ATT_OK;
  fprintf(w->file, ",\n  \"%s\": [", key);
  for (int64_t i = 0; known && i < rope->pairs; i++) {
    char text[40];
    spell_shortest(text, w->runtime, (double)numbers[i]);
    fprintf(w->file, "%s%s", i ? ", " : "", text);
  }
  fputs("]", w->file);
}

static void put_kind(att_config_writer *w, const att_rope *rope) {
  if (rope->scaling == ATT_ROPE_LONGROPE) {
    put_divisors(w, "short_factor", ATT_SLOT_ROPE_SHORT, rope);
    put_divisors(w, "long_factor", ATT_SLOT_ROPE_LONG, rope);
    att_put_number(w, "attention_factor", rope->magnitude);
    return;
  }
  att_put_number(w, "factor", rope->factor);
  if (rope->scaling == ATT_ROPE_LLAMA3 || rope->scaling == ATT_ROPE_YARN)
    att_put_size(w, "original_max_position_embeddings", (int64_t)rope->original);
  if (rope->scaling == ATT_ROPE_LLAMA3) {
    att_put_number(w, "low_freq_factor", rope->low);
    att_put_number(w, "high_freq_factor", rope->high);
  } else if (rope->scaling == ATT_ROPE_YARN) {
    att_put_number(w, "beta_fast", rope->beta_fast);
    att_put_number(w, "beta_slow", rope->beta_slow);
    if (!rope->truncate) att_put_bool(w, "truncate", false);
    if (rope->magnitude != att_rope_yarn_magnitude(rope->factor))
      att_put_number(w, "attention_factor", rope->magnitude);
  }
}

void att_put_rope_scaling(att_config_writer *w, const att_rope *rope) {
  static const char *const names[] = {
      [ATT_ROPE_LINEAR] = "linear",     [ATT_ROPE_LLAMA3] = "llama3",   [ATT_ROPE_YARN] = "yarn",
      [ATT_ROPE_LONGROPE] = "longrope", [ATT_ROPE_DYNAMIC] = "dynamic",
  };
  if (rope->scaling == ATT_ROPE_PLAIN || rope->scaling == ATT_ROPE_TABLE) return;
  fprintf(w->file, ",\n  \"rope_scaling\": {\n  \"rope_type\": \"%s\"", names[rope->scaling]);
  put_kind(w, rope);
  fputs("}", w->file);
}

void att_put_layer_types(att_config_writer *w, const att_config *config) {
  fputs(",\n  \"layer_types\": [", w->file);
  for (int64_t l = 0; l < config->layers; l++)
    fprintf(w->file, "%s\"%s_attention\"", l ? ", " : "",
            att_layer_set_has(&config->windowed, l) ? "sliding" : "full");
  fputs("]", w->file);
}

void att_put_flags(att_config_writer *w, const char *key, const att_layer_set *set, int64_t layers,
                   bool member) {
  fprintf(w->file, ",\n  \"%s\": [", key);
  for (int64_t l = 0; l < layers; l++)
    fprintf(w->file, "%s%d", l ? ", " : "", att_layer_set_has(set, l) == member);
  fputs("]", w->file);
}
