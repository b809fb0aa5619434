/* Hugging Face folders: settings read without guessing, every tensor accounted
 * for, and one checkpoint giving the same bits in every layout. */
#include "support.h"

#include "base/file.h"
#include "model.h"

#define MODELS ATT_SHARED_DIR "/golden_models/"

/* ---- other people's checkpoints ---- */

/* llama2.c stores rotary pairs side by side, Hugging Face half a head apart. */
static void test_stories_are_the_same_bits_in_both_formats(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  att_model *bin = test_open(runtime, TEST_STORIES "stories260K.bin");
  att_model *folder = test_open(runtime, TEST_STORIES "hf/");
  assert_string_equal(att_model_describe(folder)->name, "hf");
  assert_string_equal(att_model_describe(folder)->format, "safetensors");
  assert_int_equal(att_model_describe(folder)->parameters, 260032);
  int32_t ids[100];
  test_ids(ids, 100, 512, 2);
  float *a = test_logits(bin, ids, 100), *b = test_logits(folder, ids, 100);
  assert_same_bits(a, b, 100 * 512);
  free(a);
  free(b);
  att_model_close(bin);
  att_model_close(folder);
  att_runtime_free(runtime);
}

/* All 729 words of six letters out of three: the model was made to sort them. */
static void test_the_sort_model_sorts_every_word(void **state) {
  (void)state;
  test_need(MODELS "nano_sort/config.json");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model = test_open(runtime, MODELS "nano_sort");
  att_session *session = test_session(model, 16, false);
  for (int word = 0; word < 729; word++) {
    int32_t ids[6], sorted[6];
    int n[3] = {0};
    for (int i = 0, rest = word; i < 6; i++, rest /= 3) n[ids[i] = rest % 3]++;
    for (int i = 0; i < 6; i++) sorted[i] = i < n[0] ? 0 : i < n[0] + n[1] ? 1 : 2;
    assert_ok(att_session_truncate(session, 0));
    assert_ok(att_session_eval(session, ids, 6));
    for (int i = 0; i < 6; i++) {
      const float *logits = att_session_logits(session).data;
      int32_t best = 0;
      for (int32_t id = 1; id < 3; id++)
        if (logits[id] > logits[best]) best = id;
      assert_int_equal(best, sorted[i]);
      if (i < 5) assert_ok(att_session_eval(session, &best, 1));
    }
  }
  att_session_free(session);
  att_model_close(model);
  att_runtime_free(runtime);
}

/* ---- layouts ---- */

/* Copies tensors of a folder's archive to `file`, those that `keep` accepts,
 * under the names it gives. */
typedef const char *rename_fn(const char *name);

static void copy_tensors(att_runtime *runtime, const char *from, const char *to, const char *file,
                         rename_fn *rename) {
  char path[256];
  snprintf(path, sizeof path, "%s/model.safetensors", from);
  att_archive *archive;
  assert_ok(att_archive_open(&archive, runtime, path));
  const char *names[128];
  static char storage[128][80];
  att_view views[128];
  int n = 0;
  for (int64_t i = 0; i < att_archive_count(archive); i++) {
    const char *name = rename(att_archive_name(archive, i));
    if (!name) continue;
    snprintf(storage[n], sizeof storage[n], "%s", name);
    names[n] = storage[n];
    assert_ok(att_archive_get(&views[n++], archive, att_archive_name(archive, i)));
  }
  snprintf(path, sizeof path, "%s/%s", to, file);
  assert_ok(att_safetensors_write(runtime, path, n, names, views, 0, NULL));
  att_archive_close(archive);
}

static const char *without_prefix(const char *name) {
  static const char *const prefixes[] = {"model.", "transformer."};
  for (int i = 0; i < 2; i++)
    if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return name + strlen(prefixes[i]);
  return name;
}

static const char *first_layer(const char *name) { return strstr(name, "s.0.") ? name : NULL; }
static const char *other_layers(const char *name) { return strstr(name, "s.0.") ? NULL : name; }
static const char *same_name(const char *name) { return name; }

typedef struct pair {
  att_runtime *runtime;
  char one[64], other[64]; /* folders */
} pair;

static void open_pair(pair *p, const char *config) {
  p->runtime = test_runtime_of(NULL, 1, NULL);
  test_make_folder(p->one);
  test_make_folder(p->other);
  test_write_model(p->runtime, p->one, config, 51);
  test_write_text(p->other, "config.json", config);
}

static void close_pair(pair *p) {
  test_remove_folder(p->one);
  test_remove_folder(p->other);
  att_runtime_free(p->runtime);
}

static void assert_same_model(const pair *p, int64_t vocab) {
  att_model *one = test_open(p->runtime, p->one), *other = test_open(p->runtime, p->other);
  int32_t ids[30];
  test_ids(ids, 30, vocab, 2);
  float *a = test_logits(one, ids, 30), *b = test_logits(other, ids, 30);
  assert_same_bits(a, b, 30 * vocab);
  free(a);
  free(b);
  att_model_close(one);
  att_model_close(other);
}

static void test_names_may_lack_the_prefix(void **state) {
  (void)state;
  static const int64_t vocab[] = {77, 50, 30};
  for (int f = 0; f < TEST_FAMILIES; f++) {
    pair p;
    open_pair(&p, test_families[f]);
    copy_tensors(p.runtime, p.one, p.other, "model.safetensors", without_prefix);
    assert_same_model(&p, vocab[f]);
    close_pair(&p);
  }
}

static void test_shards_are_one_model(void **state) {
  (void)state;
  pair p;
  open_pair(&p, TEST_LLAMA);
  copy_tensors(p.runtime, p.one, p.other, "a.safetensors", first_layer);
  copy_tensors(p.runtime, p.one, p.other, "b.safetensors", other_layers);
  char path[256], index[8192];
  snprintf(path, sizeof path, "%s/model.safetensors", p.one);
  att_archive *archive;
  assert_ok(att_archive_open(&archive, p.runtime, path));
  int n = snprintf(index, sizeof index, "{\"weight_map\": {");
  for (int64_t i = 0; i < att_archive_count(archive); i++) {
    const char *name = att_archive_name(archive, i);
    n += snprintf(index + n, sizeof index - (size_t)n, "%s\"%s\": \"%s.safetensors\"",
                  i ? ", " : "", name, first_layer(name) ? "a" : "b");
  }
  snprintf(index + n, sizeof index - (size_t)n, "}}");
  att_archive_close(archive);
  test_write_text(p.other, "model.safetensors.index.json", index);
  assert_same_model(&p, 77);
  static const char *const files[] = {"a.safetensors", "b.safetensors",
                                      "model.safetensors.index.json"};
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s/%s", p.other, files[i]);
    unlink(path);
  }
  close_pair(&p);
}

/* ---- tensors that do not fit ---- */

static att_status open_folder(att_runtime *runtime, const char *folder) {
  att_open_options options;
  att_open_options_init(&options);
  options.without_tokenizer = true;
  att_model *model;
  att_status status = att_model_open(&model, runtime, folder, &options);
  if (status == ATT_OK) att_model_close(model);
  return status;
}

static const char *drop_one(const char *name) {
  return strstr(name, "layers.1.mlp.up_proj") ? NULL : name;
}

static const char *misname_one(const char *name) {
  return strstr(name, "layers.1.mlp.up_proj") ? "model.layers.01.mlp.up_proj.weight" : name;
}

static void test_missing_and_unknown_tensors_are_named(void **state) {
  (void)state;
  pair p;
  open_pair(&p, TEST_LLAMA);
  copy_tensors(p.runtime, p.one, p.other, "model.safetensors", drop_one);
  assert_status(ATT_NOT_FOUND, open_folder(p.runtime, p.other));
  assert_message_has("model.layers.1.mlp.up_proj.weight");
  copy_tensors(p.runtime, p.one, p.other, "model.safetensors", misname_one);
  assert_status(ATT_UNSUPPORTED, open_folder(p.runtime, p.other));
  assert_message_has("model.layers.01.mlp.up_proj.weight");
  close_pair(&p);
}

/* Replaces the config of a folder by `from` with one text in it exchanged. */
static void rewrite(const char *folder, const char *config, const char *from, const char *to) {
  char text[2048];
  const char *at = strstr(config, from);
  assert_non_null(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
  test_write_text(folder, "config.json", text);
}

static void test_sizes_that_contradict_the_tensors_are_named(void **state) {
  (void)state;
  pair p;
  open_pair(&p, TEST_LLAMA);
  static const struct {
    const char *from, *to, *tensor;
  } rows[] = {
      {"\"hidden_size\": 40", "\"hidden_size\": 42", "norm.weight"},
      {"\"intermediate_size\": 52", "\"intermediate_size\": 40", "gate_proj"},
      {"\"vocab_size\": 77", "\"vocab_size\": 78", "embed_tokens"},
      {"\"num_attention_heads\": 6", "\"num_attention_heads\": 4", "q_proj"},
      {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "k_proj"},
      {"\"head_dim\": 10", "\"head_dim\": 12", "q_proj"},
      {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", "layers.2."},
      {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", "layers.1."},
      {"\"attention_bias\": true", "\"attention_bias\": false", "bias"},
      {"\"attention_bias\": true", "\"attention_bias\": true, \"mlp_bias\": true", "mlp"},
      {"\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", "lm_head"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rewrite(p.one, TEST_LLAMA, rows[i].from, rows[i].to);
    assert_int_not_equal(open_folder(p.runtime, p.one), ATT_OK);
    assert_message_is_a_line();
    assert_message_has(rows[i].tensor);
  }
  close_pair(&p);
}

static const char *add_head(const char *name) {
  return strstr(name, "embed_tokens") ? "lm_head.weight" : NULL;
}

/* A tied output that is stored all the same must be the embedding. */
static void test_a_tie_that_contradicts_the_data_is_refused(void **state) {
  (void)state;
  pair p;
  open_pair(&p, TEST_LLAMA);
  char path[256];
  snprintf(path, sizeof path, "%s/model.safetensors", p.one);
  for (int differs = 0; differs < 2; differs++) {
    att_archive *archive;
    assert_ok(att_archive_open(&archive, p.runtime, path));
    const char *names[128];
    att_view views[128];
    int n = (int)att_archive_count(archive);
    for (int i = 0; i < n; i++) {
      names[i] = att_archive_name(archive, i);
      assert_ok(att_archive_get(&views[i], archive, names[i]));
      if (add_head(names[i])) views[n] = views[i];
    }
    float copy[77 * 40];
    memcpy(copy, views[n].data, sizeof copy);
    if (differs) copy[77 * 40 - 1] += 1;
    views[n].data = copy;
    names[n] = "lm_head.weight";
    char to[256];
    snprintf(to, sizeof to, "%s/model.safetensors", p.other);
    assert_ok(att_safetensors_write(p.runtime, to, n + 1, names, views, 0, NULL));
    att_archive_close(archive);
    assert_status(differs ? ATT_CORRUPT : ATT_OK, open_folder(p.runtime, p.other));
    if (differs) assert_message_has("lm_head.weight");
  }
  close_pair(&p);
}

/* ---- settings ---- */

static void test_absent_null_and_value_are_three_things(void **state) {
  (void)state;
  pair p;
  open_pair(&p, TEST_LLAMA);
  static const struct {
    const char *from, *to;
    att_status expected;
    const char *message;
  } rows[] = {
      {"\"rms_norm_eps\": 1e-5", "\"rope_scaling\": null", ATT_OK, NULL},
      {"\"rms_norm_eps\": 1e-5", "\"rms_norm_eps\": null", ATT_CORRUPT, "rms_norm_eps"},
      {"\"hidden_size\": 40, ", "", ATT_CORRUPT, "\"hidden_size\" is missing"},
      {"\"hidden_size\": 40", "\"hidden_size\": null", ATT_CORRUPT, "must not be null"},
      {"\"hidden_size\": 40", "\"hidden_size\": 40.5", ATT_CORRUPT, "40.5"},
      {"\"hidden_size\": 40", "\"hidden_size\": \"40\"", ATT_CORRUPT, "not a number"},
      {"\"rms_norm_eps\": 1e-5", "\"hidden_act\": \"mish\"", ATT_UNSUPPORTED, "mish"},
      {"\"rms_norm_eps\": 1e-5", "\"hidden_act\": \"gelu\"", ATT_OK, NULL},
      {"\"rms_norm_eps\": 1e-5", "\"sliding_window\": 128", ATT_UNSUPPORTED, "sliding_window"},
      {"\"rms_norm_eps\": 1e-5", "\"sliding_window\": null", ATT_OK, NULL},
      {"\"rms_norm_eps\": 1e-5", "\"use_sliding_window\": false", ATT_OK, NULL},
      {"\"rms_norm_eps\": 1e-5", "\"use_cache\": true, \"_name_or_path\": \"x\"", ATT_OK, NULL},
      {"\"rms_norm_eps\": 1e-5", "\"quantization_config\": {\"bits\": 4}", ATT_UNSUPPORTED,
       "quantization_config"},
      {"\"model_type\": \"llama\"", "\"model_type\": \"mamba\"", ATT_UNSUPPORTED, "mamba"},
      {"\"model_type\": \"llama\"", "\"architectures\": [\"LlamaForCausalLM\"]", ATT_OK, NULL},
      {"\"model_type\": \"llama\"",
       "\"model_type\": \"llama\", \"architectures\": [\"LlamaForTokenClassification\"]",
       ATT_UNSUPPORTED, "LlamaForTokenClassification"},
      {"\"model_type\": \"llama\"", "\"architectures\": [\"GPT2LMHeadModel\"]", ATT_CORRUPT,
       "n_embd"},
      {"\"model_type\": \"llama\"", "\"architectures\": {}", ATT_CORRUPT, "architectures"},
      {"\"rms_norm_eps\": 1e-5", "\"eos_token_id\": [1, 99]", ATT_OK, NULL},
      {"\"rms_norm_eps\": 1e-5", "\"eos_token_id\": \"x\"", ATT_CORRUPT, "eos_token_id"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rewrite(p.one, TEST_LLAMA, rows[i].from, rows[i].to);
    assert_status(rows[i].expected, open_folder(p.runtime, p.one));
    if (rows[i].message) assert_message_has(rows[i].message);
    if (rows[i].expected != ATT_OK) assert_message_has("config.json");
  }
  close_pair(&p);
}

/* Both spellings of rotary settings, and what contradicts itself. */
static void test_rope_settings_in_both_spellings(void **state) {
  (void)state;
  pair p;
  open_pair(&p, TEST_LLAMA);
  copy_tensors(p.runtime, p.one, p.other, "model.safetensors", same_name);
#define LLAMA3                                                                                     \
  "\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "                         \
  "\"original_max_position_embeddings\": 64"
  static const struct {
    const char *older, *newer;
  } rows[] = {
      {"\"rope_theta\": 500.0", "\"rope_parameters\": {\"rope_theta\": 500.0}"},
      {"\"rope_theta\": 10000.0", "\"rope_parameters\": {\"rope_type\": \"default\"}"},
      {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4.0}",
       "\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 4.0}"},
      {"\"rope_theta\": 500.0, \"rope_scaling\": {\"rope_type\": \"llama3\", " LLAMA3 "}",
       "\"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 500.0, " LLAMA3 "}"},
      {"\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4.0, "
       "\"original_max_position_embeddings\": 64}",
       "\"rope_scaling\": null, \"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4.0, "
       "\"original_max_position_embeddings\": 64, \"beta_fast\": 32, \"beta_slow\": 1, "
       "\"truncate\": true, \"attention_factor\": null}"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rewrite(p.one, TEST_LLAMA, "\"rms_norm_eps\": 1e-5", rows[i].older);
    rewrite(p.other, TEST_LLAMA, "\"rms_norm_eps\": 1e-5", rows[i].newer);
    assert_same_model(&p, 77);
  }
  static const struct {
    const char *text;
    att_status expected;
    const char *message;
  } bad[] = {
      {"\"rope_theta\": 1.0, \"rope_parameters\": {\"rope_theta\": 2.0}", ATT_CORRUPT,
       "contradict"},
      {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4.0}, "
       "\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 2.0}",
       ATT_CORRUPT, "contradict"},
      {"\"rope_scaling\": {\"type\": \"linear\", \"rope_type\": \"yarn\", \"factor\": 4.0}",
       ATT_CORRUPT, "rope_type is"},
      {"\"rope_scaling\": {\"type\": \"linear\"}", ATT_CORRUPT, "\"factor\" is missing"},
      {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": -1}", ATT_CORRUPT, "factor"},
      {"\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 0.5}", ATT_CORRUPT, "dynamic"},
      {"\"rope_scaling\": {\"type\": \"longrope\", \"factor\": 2}", ATT_UNSUPPORTED, "longrope"},
      {"\"rope_parameters\": {\"partial_rotary_factor\": 0.5}", ATT_UNSUPPORTED, "0.5 of a head"},
      {"\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2, \"mscale\": 1}", ATT_UNSUPPORTED,
       "mscale"},
      {"\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2, \"wobble\": 1}", ATT_UNSUPPORTED,
       "wobble"},
      {"\"rope_theta\": 0", ATT_CORRUPT, "theta"},
      {"\"rope_theta\": null", ATT_CORRUPT, "rope_theta"},
      {"\"partial_rotary_factor\": 0.5", ATT_UNSUPPORTED, "partial_rotary_factor"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    rewrite(p.one, TEST_LLAMA, "\"rms_norm_eps\": 1e-5", bad[i].text);
    assert_status(bad[i].expected, open_folder(p.runtime, p.one));
    assert_message_has(bad[i].message);
  }
  close_pair(&p);
}

/* ---- hostile files ---- */

/* Opens a folder that holds the config of a case and the weights it names. */
static att_status open_case(att_runtime *runtime, const char *config, const char *weights) {
  char folder[64], from[512], to[512];
  test_make_folder(folder);
  snprintf(from, sizeof from, MODELS "hostile/%s", config);
  snprintf(to, sizeof to, "%s/config.json", folder);
  assert_int_equal(symlink(from, to), 0);
  snprintf(from, sizeof from, MODELS "%s", weights);
  snprintf(to, sizeof to, "%s/model.safetensors", folder);
  assert_int_equal(symlink(from, to), 0);
  att_status status = open_folder(runtime, folder);
  test_remove_folder(folder);
  return status;
}

static void test_hostile_settings_are_refused(void **state) {
  (void)state;
  test_need(MODELS "hostile/manifest.json");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_file file;
  att_json *json;
  assert_ok(att_file_map(&file, MODELS "hostile/manifest.json"));
  assert_ok(att_json_parse(&json, runtime, (const char *)file.data, file.bytes, "manifest"));
  int refused = 0, accepted = 0;
  for (const att_json_node *row = att_json_root(json)->child; row; row = row->next) {
    if (strcmp(att_json_member(row, "format")->text, "config")) continue;
    const char *config = att_json_member(row, "file")->text;
    const char *must = att_json_member(row, "must")->text;
    att_status status = open_case(runtime, config, att_json_member(row, "weights")->text);
    bool wrong =
        !strcmp(must, "accept") ? status != ATT_OK : !strcmp(must, "refuse") && status == ATT_OK;
    if (wrong) fail_msg("%s: %s", config, att_message());
    status == ATT_OK ? accepted++ : refused++;
  }
  assert_true(accepted >= 1);
  assert_true(refused >= 50);
  att_json_free(json);
  att_file_unmap(&file);
  att_runtime_free(runtime);
}

static void test_things_that_are_no_model_get_a_hint(void **state) {
  (void)state;
  pair p;
  open_pair(&p, TEST_LLAMA);
  att_model *model;
  char path[256];
  assert_status(ATT_NOT_FOUND, open_folder(p.runtime, p.other)); /* no weights */
  assert_message_has("model.safetensors");
  test_write_text(p.other, "pytorch_model.bin", "PK\3\4 something");
  assert_status(ATT_UNSUPPORTED, open_folder(p.runtime, p.other));
  assert_message_has("safe_serialization");
  snprintf(path, sizeof path, "%s/pytorch_model.bin", p.other);
  assert_status(ATT_UNSUPPORTED, att_model_open(&model, p.runtime, path, NULL));
  assert_message_has("safe_serialization");
  unlink(path);
  snprintf(path, sizeof path, "%s/config.json", p.other);
  unlink(path);
  assert_status(ATT_NOT_FOUND, open_folder(p.runtime, p.other)); /* an empty folder */
  assert_message_has("config.json");
  snprintf(path, sizeof path, "%s/model.safetensors", p.one);
  assert_status(ATT_UNSUPPORTED, att_model_open(&model, p.runtime, path, NULL));
  assert_message_has("folder");
  assert_status(ATT_NOT_FOUND, att_model_open(&model, p.runtime, "/nowhere/model", NULL));
  assert_status(ATT_BAD_ARGUMENT, att_model_open(NULL, p.runtime, p.one, NULL));
  assert_status(ATT_BAD_ARGUMENT, att_model_open(&model, NULL, p.one, NULL));
  assert_status(ATT_NOT_FOUND, att_model_open_builtin(&model, p.runtime, "nobody"));
  assert_message_has("hand");
  close_pair(&p);
}

/* ---- progress ---- */

static bool watch(double done, void *payload) {
  double *last = payload;
  assert_true(done >= *last && done <= 1);
  *last = done;
  return true;
}

static bool refuse_half_way(double done, void *payload) {
  (void)payload;
  return done < 0.5;
}

static void test_loading_tells_its_progress_and_can_be_cancelled(void **state) {
  (void)state;
  pair p;
  open_pair(&p, TEST_LLAMA);
  att_open_options options;
  att_open_options_init(&options);
  options.without_tokenizer = true;
  double last = 0;
  options.progress = watch;
  options.payload = &last;
  att_model *model;
  assert_ok(att_model_open(&model, p.runtime, p.one, &options));
  assert_true(last == 1);
  att_model_close(model);
  options.progress = refuse_half_way;
  assert_status(ATT_CANCELLED, att_model_open(&model, p.runtime, p.one, &options));
  close_pair(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stories_are_the_same_bits_in_both_formats),
      cmocka_unit_test(test_the_sort_model_sorts_every_word),
      cmocka_unit_test(test_names_may_lack_the_prefix),
      cmocka_unit_test(test_shards_are_one_model),
      cmocka_unit_test(test_missing_and_unknown_tensors_are_named),
      cmocka_unit_test(test_sizes_that_contradict_the_tensors_are_named),
      cmocka_unit_test(test_a_tie_that_contradicts_the_data_is_refused),
      cmocka_unit_test(test_absent_null_and_value_are_three_things),
      cmocka_unit_test(test_rope_settings_in_both_spellings),
      cmocka_unit_test(test_hostile_settings_are_refused),
      cmocka_unit_test(test_things_that_are_no_model_get_a_hint),
      cmocka_unit_test(test_loading_tells_its_progress_and_can_be_cancelled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
