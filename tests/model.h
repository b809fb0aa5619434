/* What tests of models share: runtimes by target and threads, the small models
 * beside the project, and random models of any family, written as a Hugging
 * Face folder and opened again. Include support.h first. */
#ifndef ATT_TESTS_MODEL_H
#define ATT_TESTS_MODEL_H

#include <dirent.h>
#include <math.h>
#include <unistd.h>

#include "attend/archive.h"
#include "attend/convert.h"
#include "attend/session.h"
#include "attend/train.h"
#include "model/arch.h"
#include "model/layer_name.h"
#include "model/session.h"

#define TEST_STORIES ATT_SHARED_DIR "/golden_models/stories260k/"

/* Skips the test if a file beside the project is not there. */
static inline void test_need(const char *path) {
  if (access(path, R_OK)) skip();
}

static inline att_runtime *test_runtime_of(const char *target, int threads, test_memory *memory) {
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.target = target;
  options.threads = threads;
  if (memory) {
    atomic_store(&memory->fail_after, -1);
    options.allocator = test_allocator(memory);
  }
  att_runtime *runtime;
  assert_ok(att_runtime_create(&runtime, &options));
  return runtime;
}

static inline att_model *test_open(att_runtime *runtime, const char *path) {
  att_open_options options;
  att_open_options_init(&options);
  options.without_tokenizer = true;
  att_model *model;
  assert_ok(att_model_open(&model, runtime, path, &options));
  return model;
}

static inline att_session *test_session(const att_model *model, int64_t chunk, bool all_logits) {
  att_session_options options;
  att_session_options_init(&options);
  options.chunk = chunk;
  options.all_logits = all_logits;
  att_session *session;
  assert_ok(att_session_create(&session, model, &options));
  return session;
}

/* Logits [n,V] of reading `n` tokens at once, in the caller's memory. */
static inline float *test_logits(const att_model *model, const int32_t *ids, int64_t n) {
  att_session *session = test_session(model, 128, true);
  assert_ok(att_session_eval(session, ids, n));
  att_view logits = att_session_logits(session);
  int64_t bytes = att_view_count(&logits) * (int64_t)sizeof(float);
  float *copy = malloc((size_t)bytes);
  memcpy(copy, logits.data, (size_t)bytes);
  att_session_free(session);
  return copy;
}

static inline void assert_same_bits(const float *a, const float *b, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (memcmp(a + i, b + i, sizeof *a)) {
      print_error("element %lld: %.9g and %.9g\n", (long long)i, (double)a[i], (double)b[i]);
      fail();
    }
}

static inline void assert_near(const float *a, const float *b, int64_t n, double tolerance) {
  for (int64_t i = 0; i < n; i++)
    if (!(fabs((double)a[i] - (double)b[i]) <= tolerance)) {
      print_error("element %lld: %.9g and %.9g\n", (long long)i, (double)a[i], (double)b[i]);
      fail();
    }
}

/* Roughly normal, scaled. */
static inline float test_number(uint64_t *state, float scale) {
  double sum = 0;
  for (int i = 0; i < 4; i++) sum += (double)(test_random(state) >> 40) * 0x1p-24 - 0.5;
  return (float)(1.7 * sum) * scale;
}

/* ---- random models ---- */

typedef struct test_tensors {
  int n;
  char names[256][96];
  const char *pointers[256];
  att_view views[256];
} test_tensors;

/* One stored tensor of the family; norms around 1, the rest around 0. */
static inline void test_add_tensor(test_tensors *t, const att_arch *arch, const att_config *config,
                                   att_slot slot, int64_t layer, uint64_t *random) {
  const att_stored_name *stored = &arch->names[slot];
  if (!att_slot_exists(config, slot) || (stored->parts && stored->part)) return;
  if (slot == ATT_SLOT_OUTPUT && config->tied_output) slot = ATT_SLOT_TOKENS;
  int64_t rows = att_config_size(config, att_slots[slot].rows) * (stored->parts ? 3 : 1);
  int64_t columns = att_config_size(config, att_slots[slot].columns);
  bool vector = att_slots[slot].kind == ATT_KIND_VECTOR;
  bool norm = slot == ATT_SLOT_NORM1_W || slot == ATT_SLOT_NORM2_W || slot == ATT_SLOT_NORM_W;
  float *x = malloc((size_t)(rows * columns) * sizeof *x);
  for (int64_t i = 0; i < rows * columns; i++)
    x[i] = (norm ? 1.0f : 0.0f) + test_number(random, vector ? 0.1f : 0.3f);
  int64_t shape[2] = {stored->transposed ? columns : rows, stored->transposed ? rows : columns};
  assert_true(t->n < 256);
  assert_true(att_layer_name_write(t->names[t->n], 96, arch->names[slot].name, layer));
  t->pointers[t->n] = t->names[t->n];
  t->views[t->n++] = att_view_of(x, ATT_F32, vector ? 1 : 2, shape);
}

static inline void test_write_text(const char *folder, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

/* Writes a model with random weights that `config_json` describes. */
static inline void test_write_model(att_runtime *runtime, const char *folder,
                                    const char *config_json, uint64_t seed) {
  att_json *json;
  assert_ok(att_json_parse(&json, runtime, config_json, strlen(config_json), "test"));
  const att_arch *arch;
  assert_ok(att_arch_of_settings(&arch, att_json_root(json), "test"));
  att_settings settings;
  att_config config;
  att_config_init(&config);
  assert_ok(att_settings_open(&settings, runtime, "test", att_json_root(json)));
  assert_ok(arch->read(&config, &settings));
  att_settings_close(&settings);
  att_json_free(json);

  test_tensors tensors = {.n = 0};
  for (att_slot slot = 0; slot < ATT_SLOT_COUNT; slot++)
    for (int64_t layer = 0; layer < (att_slots[slot].owner ? att_slot_layers(&config, slot) : 1);
         layer++)
      test_add_tensor(&tensors, arch, &config, slot, layer, &seed);
  char path[512];
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  assert_ok(
      att_safetensors_write(runtime, path, tensors.n, tensors.pointers, tensors.views, 0, NULL));
  test_write_text(folder, "config.json", config_json);
  for (int i = 0; i < tensors.n; i++) free(tensors.views[i].data);
}

/* A new folder under /tmp. */
static inline void test_make_folder(char out[64]) {
  strcpy(out, "/tmp/attend_XXXXXX");
  assert_non_null(mkdtemp(out));
}

/* With everything in it. */
static inline void test_remove_folder(const char *folder) {
  DIR *all = opendir(folder);
  for (struct dirent *e; all && (e = readdir(all));) {
    char path[512];
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (n < (int)sizeof path && unlink(path)) test_remove_folder(path);
  }
  if (all) closedir(all);
  rmdir(folder);
}

/* How many names are in a folder, hidden ones too. */
static inline int test_entries(const char *folder) {
  int n = 0;
  DIR *all = opendir(folder);
  for (struct dirent *e; all && (e = readdir(all));)
    n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
  if (all) closedir(all);
  return n;
}

/* A random model, opened; its folder is gone again. */
static inline att_model *test_random_model(att_runtime *runtime, const char *config_json,
                                           uint64_t seed) {
  char folder[64];
  test_make_folder(folder);
  test_write_model(runtime, folder, config_json, seed);
  att_model *model = test_open(runtime, folder);
  test_remove_folder(folder);
  return model;
}

#define TEST_LLAMA                                                                                 \
  "{\"model_type\": \"llama\", \"hidden_size\": 40, \"intermediate_size\": 52, "                   \
  "\"num_hidden_layers\": 2, \"num_attention_heads\": 6, \"num_key_value_heads\": 2, "             \
  "\"head_dim\": 10, \"vocab_size\": 77, \"max_position_embeddings\": 300, "                       \
  "\"rms_norm_eps\": 1e-5, \"attention_bias\": true, \"tie_word_embeddings\": true}"
#define TEST_GPT2                                                                                  \
  "{\"model_type\": \"gpt2\", \"n_embd\": 36, \"n_layer\": 2, \"n_head\": 3, "                     \
  "\"vocab_size\": 50, \"n_positions\": 200, \"n_inner\": 70, "                                    \
  "\"scale_attn_by_inverse_layer_idx\": true}"
#define TEST_BARE                                                                                  \
  "{\"model_type\": \"attend\", \"hidden_size\": 24, \"num_hidden_layers\": 2, "                   \
  "\"num_attention_heads\": 2, \"head_dim\": 8, \"vocab_size\": 30, "                              \
  "\"max_position_embeddings\": 150, \"positions\": \"none\", \"norm\": \"none\", "                \
  "\"ffn\": \"none\"}"

static const char *const test_families[] = {TEST_LLAMA, TEST_GPT2, TEST_BARE};
enum { TEST_FAMILIES = sizeof test_families / sizeof *test_families };

/* Ids of no meaning, below `vocab`. */
static inline void test_ids(int32_t *ids, int64_t n, int64_t vocab, uint64_t seed) {
  for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)(test_random(&seed) % (uint64_t)vocab);
}

/* A learner of a small model with random weights: 2 layers of width 24, 4 heads,
 * which in llama read 2 keys and values. Sequences have the length of the options. */
static inline att_learner *test_learner_of(att_runtime *runtime, const char *family, int64_t vocab,
                                           const att_learn_options *options) {
  att_init_options model;
  att_init_options_init(&model);
  model.family = family;
  model.layers = 2;
  model.width = 24;
  model.heads = 4;
  model.kv_heads = strcmp(family, "llama") ? 4 : 2;
  model.ffn_width = 40;
  model.vocab = vocab;
  model.context = options->length;
  model.seed = 7;
  att_learner *learner;
  assert_ok(att_learner_create(&learner, runtime, &model, options));
  return learner;
}

#endif
