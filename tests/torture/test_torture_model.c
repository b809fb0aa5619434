/* Every allocation of opening and creating fails once, in turn: each time the
 * answer is OUT_OF_MEMORY and nothing is left behind. */
#include "support.h"

#include "attend/capture.h"
#include "attend/generate.h"
#include "model.h"

typedef struct rig {
  att_runtime *runtime;
  const char *path; /* NULL: the default model */
  bool with_tokenizer;
  att_model *model;
  att_session *session;
} rig;

static att_status open_model(void *context) {
  rig *r = context;
  att_open_options options;
  att_open_options_init(&options);
  options.without_tokenizer = !r->with_tokenizer;
  att_model *model;
  ATT_TRY(att_model_open(&model, r->runtime, r->path, &options));
  att_model_close(model);
  return ATT_OK;
}

static att_status create_session(void *context) {
  rig *r = context;
  att_session *session;
  ATT_TRY(att_session_create(&session, r->model, NULL));
  att_session_free(session);
  return ATT_OK;
}

static att_status create_capture(void *context) {
  rig *r = context;
  att_capture *capture;
  ATT_TRY(att_capture_create(&capture, r->session, "*", 20, 0));
  att_capture_free(capture);
  return ATT_OK;
}

static att_status create_sampler(void *context) {
  rig *r = context;
  att_sampler *sampler;
  ATT_TRY(att_sampler_create(&sampler, r->runtime, NULL, 100));
  att_sampler_free(sampler);
  return ATT_OK;
}

static void torture(const char *config) {
  test_memory memory = {0};
  rig r = {.runtime = test_runtime_of(NULL, 1, &memory)};
  char folder[64];
  test_make_folder(folder);
  test_write_model(r.runtime, folder, config, 61);
  r.path = folder;
  test_torture(&memory, open_model, &r);
  r.model = test_open(r.runtime, folder);
  test_torture(&memory, create_session, &r);
  r.session = test_session(r.model, 8, false);
  test_torture(&memory, create_capture, &r);
  test_torture(&memory, create_sampler, &r);
  att_session_free(r.session);
  att_model_close(r.model);
  test_remove_folder(folder);
  att_runtime_free(r.runtime);
  assert_no_leak(&memory);
}

static void test_llama_survives_every_failing_allocation(void **state) {
  (void)state;
  torture(TEST_LLAMA);
}

static void test_gpt2_survives_every_failing_allocation(void **state) {
  (void)state;
  torture(TEST_GPT2);
}

static void test_builtin_survives_every_failing_allocation(void **state) {
  (void)state;
  test_memory memory = {0};
  rig r = {.runtime = test_runtime_of(NULL, 1, &memory), .with_tokenizer = true};
  test_torture(&memory, open_model, &r);
  r.path = "hand";
  test_torture(&memory, open_model, &r);
  att_runtime_free(r.runtime);
  assert_no_leak(&memory);
}

static void test_llama2c_survives_every_failing_allocation(void **state) {
  (void)state;
  test_need(TEST_STORIES "stories260K.bin");
  test_memory memory = {0};
  rig r = {.runtime = test_runtime_of(NULL, 1, &memory),
           .path = TEST_STORIES "stories260K.bin",
           .with_tokenizer = true};
  test_torture(&memory, open_model, &r);
  att_runtime_free(r.runtime);
  assert_no_leak(&memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_llama_survives_every_failing_allocation),
      cmocka_unit_test(test_gpt2_survives_every_failing_allocation),
      cmocka_unit_test(test_builtin_survives_every_failing_allocation),
      cmocka_unit_test(test_llama2c_survives_every_failing_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
