/* Models whose matrices are stored in any type: the bits of a token depend neither on
 * threads, nor on how its text is cut, nor on who goes along. */
#include "support.h"

#include "model.h"

/* Rows: one, few, more than any kernel widens in registers, and a piece of 240. */
enum { TOKENS = 250, SESSIONS = 17 };

static const char *const types[] = {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_K", "q6_K"};
enum { TYPES = sizeof types / sizeof *types };

/* Under emulation every other type and cut, which still has a kind of each. */
static int every(void) { return test_calls(2) < 2 ? 2 : 1; }

static void path_of(char out[128], const char *folder, const char *type) {
  snprintf(out, 128, "%s/%s.gguf", folder, type);
}

/* A vocabulary of 600: more columns than a piece, and no whole panels. */
static void write_models(att_runtime *runtime, const char *folder) {
  for (int i = 0; i < TYPES; i++) {
    att_init_options options;
    att_init_options_init(&options);
    options.family = "llama";
    options.layers = 1;
    options.width = options.ffn_width = 256;
    options.heads = 4;
    options.kv_heads = 2;
    options.vocab = 600;
    options.context = TOKENS + 8;
    options.dtype = types[i];
    char path[128];
    path_of(path, folder, types[i]);
    assert_ok(att_init_model(runtime, path, &options));
  }
}

static void check_cut(const att_model *model, const int32_t *ids, const float *whole, int64_t cut) {
  const int64_t v = att_model_describe(model)->vocab;
  att_session *session = test_session(model, cut, true);
  assert_ok(att_session_eval(session, ids, TOKENS));
  assert_same_bits(att_session_logits(session).data, whole, TOKENS * v);
  att_session_free(session);
}

/* Session i has read i tokens and goes on with token i. */
static void check_batch(const att_model *model, const int32_t *ids, const float *whole) {
  const int64_t v = att_model_describe(model)->vocab;
  att_session *together[SESSIONS];
  for (int i = 0; i < SESSIONS; i++) {
    together[i] = test_session(model, 32, false);
    if (i) assert_ok(att_session_eval(together[i], ids, i));
  }
  assert_ok(att_session_step(together, ids, SESSIONS));
  for (int i = 0; i < SESSIONS; i++) {
    assert_same_bits(att_session_logits(together[i]).data, whole + i * v, v);
    att_session_free(together[i]);
  }
}

/* That it is kept as stored, so that the comparison is of what its name says. */
static void check_kept(const att_model *model, const char *type) {
  const att_model_info *info = att_model_describe(model);
  const bool small = !strcmp(type, "q4_0") || !strcmp(type, "q4_K") || !strcmp(type, "q6_K");
  assert_string_equal(info->dtype, type);
  assert_int_equal(info->rounded > 0, small);
}

static void check_runtime(const char *folder, const char *type, int threads, const int32_t *ids,
                          const float *whole) {
  char path[128];
  path_of(path, folder, type);
  att_runtime *runtime = test_runtime_of(NULL, threads, NULL);
  att_model *model = test_open(runtime, path);
  check_kept(model, type);
  static const int64_t cuts[] = {TOKENS, 41, 1, 16};
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i += (size_t)every())
    check_cut(model, ids, whole, cuts[i]);
  check_batch(model, ids, whole);
  att_model_close(model);
  att_runtime_free(runtime);
}

static void a_type_depends_on_threads_cuts_or_company(void **state) {
  (void)state;
  char folder[64], path[128];
  int32_t ids[TOKENS];
  test_make_folder(folder);
  test_ids(ids, TOKENS, 600, 3);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  write_models(runtime, folder);
  for (int i = 0; i < TYPES; i += every()) {
    path_of(path, folder, types[i]);
    att_model *model = test_open(runtime, path);
    float *whole = test_logits(model, ids, TOKENS);
    for (int threads = 3; threads > 3 - (int)test_calls(3); threads--)
      check_runtime(folder, types[i], threads, ids, whole);
    free(whole);
    att_model_close(model);
  }
  att_runtime_free(runtime);
  test_remove_folder(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_type_depends_on_threads_cuts_or_company),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
