/* Settings of the decoder families: absent, null and value; old and new spelling;
 * what contradicts itself or is not supported. Defaults are those of the families'
 * own configuration classes. */
#include "support.h"

#include "attend/sdpa.h"
#include "model.h"

#define SIZES                                                                                      \
  "\"vocab_size\": 30, \"hidden_size\": 16, \"intermediate_size\": 16, "                           \
  "\"num_hidden_layers\": 4, \"num_attention_heads\": 2"
#define GROUPED ", \"num_key_value_heads\": 1, \"head_dim\": 8"

static att_runtime *runtime;

static int set_up(void **state) {
  (void)state;
  runtime = test_runtime_of(NULL, 1, NULL);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(runtime);
  return 0;
}

/* Reads a config.json of a family: its sizes and `more` settings. */
static att_status read_family(att_config *config, const char *family, const char *more) {
  char text[2048];
  att_json *json;
  const att_arch *arch;
  att_settings settings;
  snprintf(text, sizeof text, "{\"model_type\": \"%s\", " SIZES "%s%s%s}", family,
           strcmp(family, "gpt_neox") ? GROUPED : "", *more ? ", " : "", more);
  assert_ok(att_json_parse(&json, runtime, text, strlen(text), "test"));
  att_config_init(config);
  att_status status = att_arch_of_settings(&arch, att_json_root(json), "test");
  assert_int_equal(status, ATT_OK);
  assert_ok(att_settings_open(&settings, runtime, "test", att_json_root(json)));
  status = arch->read(config, &settings);
  if (status == ATT_OK) status = att_settings_finish(&settings);
  if (status == ATT_OK) status = att_config_check(config, "test");
  att_settings_close(&settings);
  att_json_free(json);
  return status;
}

/* The layers of a set as bits. */
static unsigned bits(const att_layer_set *set) { return (unsigned)set->bits[0]; }

static void test_a_window_of_null_is_one_of_the_default(void **state) {
  (void)state;
  static const struct {
    const char *family, *more;
    unsigned layers;
    int64_t window;
  } rows[] = {
      {"mistral", "", 15, 4096},
      {"mistral", "\"sliding_window\": null", 0, 0},
      {"mistral", "\"sliding_window\": 7", 15, 7},
      {"phi3", "", 0, 0},
      {"phi3", "\"sliding_window\": 7", 15, 7},
      {"qwen2", "\"sliding_window\": 7, \"max_window_layers\": 1", 0, 0},
      {"qwen2", "\"use_sliding_window\": true, \"sliding_window\": 7, \"max_window_layers\": 1", 14,
       7},
      {"qwen3",
       "\"use_sliding_window\": true, \"sliding_window\": 7, \"layer_types\": "
       "[\"full_attention\", \"sliding_attention\", \"full_attention\", \"full_attention\"]",
       2, 7},
      {"gemma2", "", 5, 4096},
      {"gemma2", "\"sliding_window\": 6, \"sliding_window_size\": 6", 5, 6},
      {"gemma3_text", "", 15, 4096},
      {"gemma3_text", "\"sliding_window_pattern\": 2", 5, 4096},
      {"gpt_oss", "", 5, 128},
      {"smollm3", "\"use_sliding_window\": true, \"sliding_window\": 7, \"max_window_layers\": 28",
       8, 7},
      {"llama", "", 0, 0},
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    att_config config;
    assert_ok(read_family(&config, rows[r].family, rows[r].more));
    assert_int_equal(bits(&config.windowed), rows[r].layers);
    if (rows[r].layers) assert_int_equal(config.window, rows[r].window);
  }
}

static void test_layers_that_do_not_rotate_are_the_others(void **state) {
  (void)state;
  att_config config;
  assert_ok(read_family(&config, "smollm3", ""));
  assert_int_equal(bits(&config.unrotated), 8);
  assert_ok(read_family(&config, "smollm3", "\"no_rope_layers\": [1, 0, 1, 1]"));
  assert_int_equal(bits(&config.unrotated), 2);
  assert_ok(read_family(&config, "smollm3", "\"no_rope_layer_interval\": 2"));
  assert_int_equal(bits(&config.unrotated), 10);
}

static void test_defaults_are_another_familys(void **state) {
  (void)state;
  att_config c;
  assert_ok(read_family(&c, "gpt_neox", ""));
  assert_true(c.parallel && c.rope.pairs == 1 && c.activation == ATT_GELU && c.qkv_bias);
  assert_ok(read_family(&c, "gemma", "\"hidden_act\": \"gelu\""));
  assert_true(c.activation == ATT_GELU_TANH && c.tied_output && c.embed_scale == 4);
  assert_ok(read_family(&c, "gemma", "\"hidden_activation\": \"gelu\""));
  assert_int_equal(c.activation, ATT_GELU);
  assert_ok(read_family(&c, "gemma2", ""));
  assert_true(c.softcap == 50 && c.final_softcap == 30 && c.scale == 1.0 / 16);
  assert_ok(read_family(&c, "gemma2", "\"attn_logit_softcapping\": null"));
  assert_true(c.softcap == ATT_SOFTCAP_NONE && c.final_softcap == 30);
  assert_ok(read_family(&c, "gpt_oss", ""));
  assert_int_equal(c.rope.scaling, ATT_ROPE_YARN);
  assert_ok(read_family(&c, "gpt_oss", "\"rope_scaling\": null"));
  assert_int_equal(c.rope.scaling, ATT_ROPE_PLAIN);
  assert_ok(read_family(&c, "gpt_neox", "\"hidden_dropout_prob\": 0.1")); /* gpt-neox-20b's */
  assert_ok(read_family(&c, "qwen2", ""));
  assert_true(c.qkv_bias && !c.out_bias);
  assert_ok(read_family(&c, "llama", "\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 4}"));
  assert_int_equal(c.context, 4 * 2048);
}

static void test_newer_spelling_of_rotations_is_lost(void **state) {
  (void)state;
  att_config older, newer;
  assert_ok(read_family(&older, "gemma3_text",
                        "\"rope_theta\": 1e6, \"rope_local_base_freq\": 500, \"rope_scaling\": "
                        "{\"rope_type\": \"linear\", \"factor\": 8}"));
  assert_ok(read_family(&newer, "gemma3_text",
                        "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", "
                        "\"factor\": 8, \"rope_theta\": 1e6}, \"sliding_attention\": "
                        "{\"rope_type\": \"default\", \"rope_theta\": 500}}"));
  assert_memory_equal(&older.rope, &newer.rope, sizeof older.rope);
  assert_memory_equal(&older.local_rope, &newer.local_rope, sizeof older.local_rope);
  assert_ok(
      read_family(&newer, "gpt_neox",
                  "\"rope_parameters\": {\"rope_theta\": 7, \"partial_rotary_factor\": 0.5}"));
  assert_true(newer.rope.theta == 7 && newer.rope.pairs == 2);
  assert_ok(read_family(&newer, "gpt_neox",
                        "\"rotary_emb_base\": 7, \"rope_theta\": 7, \"rotary_pct\": 0.5, "
                        "\"partial_rotary_factor\": 0.5"));
  assert_true(newer.rope.theta == 7 && newer.rope.pairs == 2);
}

static void test_what_cannot_be_is_taken_as_something_else(void **state) {
  (void)state;
  static const struct {
    const char *family, *more;
    att_status status;
    const char *message;
  } rows[] = {
      {"mistral", "\"sliding_window\": 0", ATT_CORRUPT, "sliding_window"},
      {"mistral", "\"sliding_window\": -3", ATT_CORRUPT, "sliding_window"},
      {"qwen2",
       "\"layer_types\": [\"sliding_attention\", \"full_attention\", \"full_attention\", "
       "\"full_attention\"]",
       ATT_CORRUPT, "contradict"},
      {"qwen3",
       "\"use_sliding_window\": true, \"layer_types\": [\"chunked_attention\", "
       "\"full_attention\", \"full_attention\", \"full_attention\"]",
       ATT_UNSUPPORTED, "chunked_attention"},
      {"qwen3", "\"layer_types\": [\"full_attention\"]", ATT_CORRUPT, "1 entries for 4 layers"},
      {"smollm3", "\"no_rope_layers\": [1, 2, 1, 1]", ATT_CORRUPT, "neither 0 nor 1"},
      {"smollm3", "\"no_rope_layers\": [1]", ATT_CORRUPT, "1 entries for 4 layers"},
      {"gpt_neox", "\"rotary_emb_base\": 7, \"rope_theta\": 8", ATT_CORRUPT, "rope_theta"},
      {"llama", "\"partial_rotary_factor\": 0.5", ATT_UNSUPPORTED, "partial_rotary_factor"},
      {"gemma", "\"hidden_act\": \"silu\"", ATT_UNSUPPORTED, "silu"},
      {"gemma2", "\"attn_logit_softcapping\": 0", ATT_CORRUPT, "soft caps"},
      {"gemma2", "\"query_pre_attn_scalar\": 0", ATT_CORRUPT, "query_pre_attn_scalar"},
      {"gemma2", "\"sliding_window\": 6, \"sliding_window_size\": 7", ATT_CORRUPT, "contradicts"},
      {"gemma3_text",
       "\"sliding_window_pattern\": 2, \"layer_types\": [\"full_attention\", "
       "\"full_attention\", \"full_attention\", \"full_attention\"]",
       ATT_CORRUPT, "contradict"},
      {"gemma3_text", "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 5}}", ATT_CORRUPT,
       "sliding_attention"},
      {"phi3", "\"partial_rotary_factor\": 1.7", ATT_CORRUPT, "1.7 of a head"},
      {"phi3",
       "\"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1, 1, 1, 1], "
       "\"long_factor\": [1, 1]}",
       ATT_CORRUPT, "long_factor"},
      {"phi3",
       "\"rope_scaling\": {\"type\": \"su\", \"short_factor\": [1, 1], "
       "\"long_factor\": [1, 1]}",
       ATT_CORRUPT, "2 numbers, not 4"},
      {"phi3", "\"full_attn_mod\": 2", ATT_UNSUPPORTED, "full_attn_mod"},
      {"gpt_oss", "\"num_experts_per_tok\": 200", ATT_CORRUPT, "200 experts a token of 128"},
      {"gpt_oss", "\"experts_per_token\": 3", ATT_CORRUPT, "contradicts"},
      {"gpt_oss", "\"quantization_config\": {\"quant_method\": \"mxfp4\"}", ATT_UNSUPPORTED,
       "quantization_config"},
      {"olmo2", "\"clip_qkv\": 8", ATT_UNSUPPORTED, "clip_qkv"},
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    att_config config;
    assert_status(rows[r].status, read_family(&config, rows[r].family, rows[r].more));
    assert_message_has(rows[r].message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_window_of_null_is_one_of_the_default),
      cmocka_unit_test(test_layers_that_do_not_rotate_are_the_others),
      cmocka_unit_test(test_defaults_are_another_familys),
      cmocka_unit_test(test_newer_spelling_of_rotations_is_lost),
      cmocka_unit_test(test_what_cannot_be_is_taken_as_something_else),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
