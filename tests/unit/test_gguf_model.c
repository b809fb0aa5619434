/* GGUF as a checkpoint: the same bits as from other formats, the tokenizer
 * inside, and keys that cannot be. */
#include "support.h"

#include "attend/tokenizer.h"
#include "model.h"

#define MODELS ATT_SHARED_DIR "/golden_models/"

static void assert_same_model(att_runtime *runtime, const char *a_path, const char *b_path) {
  test_need(b_path);
  att_model *a = test_open(runtime, a_path), *b = test_open(runtime, b_path);
  const att_model_info *x = att_model_describe(a), *y = att_model_describe(b);
  assert_string_equal(y->format, "gguf");
  assert_string_equal(x->family, y->family);
  assert_int_equal(x->tied_output, y->tied_output);
  int32_t ids[32];
  test_ids(ids, 32, x->vocab, 5);
  float *p = test_logits(a, ids, 32), *q = test_logits(b, ids, 32);
  assert_same_bits(p, q, 32 * x->vocab);
  free(p);
  free(q);
  att_model_close(a);
  att_model_close(b);
}

static void a_checkpoint_gives_other_bits_as_gguf(void **state) {
  (void)state;
  static const char *const names[] = {
      "gpt2",           "gpt2_noprefix_f16",    "gpt2_untied_invlayer", "llama_mha",
      "llama_mqa_bias", "llama_gqa_llama3rope", "llama_yarn_bf16",      "llama_linear_rope"};
  att_runtime *runtime = test_runtime_of(NULL, 2, NULL);
  assert_same_model(runtime, TEST_STORIES "stories260K.bin",
                    TEST_STORIES "gguf/stories260K.F32.gguf");
  assert_same_model(runtime, TEST_STORIES "hf", TEST_STORIES "gguf/stories260K.F32.gguf");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char folder[512], file[600];
    snprintf(folder, sizeof folder, MODELS "tiny_random/%s", names[i]);
    snprintf(file, sizeof file, "%s/model.F32.gguf", folder);
    assert_same_model(runtime, folder, file);
  }
  att_runtime_free(runtime);
}

/* ---- tokenizers ---- */

static void assert_same_ids(const att_tokenizer *a, const att_tokenizer *b, const char *text) {
  for (int way = 0; way < 4; way++) {
    att_encode_options options = {.add_special = way & 1, .parse_special = way & 2};
    att_encoding *x, *y;
    assert_ok(att_encode(&x, a, text, strlen(text), &options));
    assert_ok(att_encode(&y, b, text, strlen(text), &options));
    assert_int_equal(x->n, y->n);
    assert_memory_equal(x->ids, y->ids, (size_t)x->n * sizeof *x->ids);
    assert_memory_equal(x->begin, y->begin, (size_t)x->n * sizeof *x->begin);
    att_encoding_free(x);
    att_encoding_free(y);
  }
}

static void the_tokenizer_in_the_file_gives_other_tokens(void **state) {
  (void)state;
  static const char *const texts[] = {"Once upon a time",
                                      "",
                                      " ",
                                      "  two  spaces ",
                                      "a <s> b</s>c<unk>",
                                      "line\nline\r\n\ttab",
                                      "Zoë ate 3 crêpes & 2 \xF0\x9F\x8D\x8E!",
                                      "<0x41>",
                                      "\xff\x80 bad"};
  test_need(TEST_STORIES "gguf/stories260K.Q8_0.gguf");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_model *model;
  att_tokenizer *other;
  assert_ok(att_model_open(&model, runtime, TEST_STORIES "gguf/stories260K.Q8_0.gguf", NULL));
  assert_ok(att_tokenizer_open(&other, runtime, TEST_STORIES "hf", 512));
  const att_tokenizer *own = att_model_tokenizer(model);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_same_ids(own, other, texts[i]);
  for (int32_t id = 0; id < 512; id++) {
    const char *a, *b;
    size_t n, m;
    assert_ok(att_tokenizer_bytes(&a, &n, own, id));
    assert_ok(att_tokenizer_bytes(&b, &m, other, id));
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    assert_int_equal(att_tokenizer_is_special(own, id), att_tokenizer_is_special(other, id));
    assert_int_equal(att_tokenizer_is_end(own, id), id == 2);
  }
  assert_int_equal(att_tokenizer_bos(own), 1);
  assert_string_equal(att_model_describe(model)->dtype, "q8_0");
  att_tokenizer_free(other);
  assert_ok(att_tokenizer_open(&other, runtime, TEST_STORIES "gguf/stories260K.F16.gguf", 0));
  assert_same_ids(own, other, texts[0]);
  att_tokenizer_free(other);
  att_model_close(model);
  att_runtime_free(runtime);
}

/* 96 tokens, far fewer than the 256 bytes of a whole vocabulary. */
static void a_dummy_vocabulary_does_not_load(void **state) {
  (void)state;
  static const char *const names[] = {"gpt2", "llama_mha"};
  test_need(MODELS "tiny_random/gpt2/model.F32.gguf");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  for (int i = 0; i < 2; i++) {
    char path[512];
    att_model *model;
    att_encoding *encoding;
    snprintf(path, sizeof path, MODELS "tiny_random/%s/model.F32.gguf", names[i]);
    assert_ok(att_model_open(&model, runtime, path, NULL));
    const att_tokenizer *t = att_model_tokenizer(model);
    assert_int_equal(att_tokenizer_size(t), 96);
    assert_ok(att_encode(&encoding, t, "the", 3, NULL));
    int32_t last = encoding->ids[encoding->n - 1];
    const char *bytes;
    size_t n;
    assert_ok(att_tokenizer_bytes(&bytes, &n, t, last));
    assert_memory_equal(bytes + n - 1, "e", 1);
    att_encoding_free(encoding);
    att_model_close(model);
  }
  att_runtime_free(runtime);
}

static att_status open_one(void *context) {
  att_model *model;
  ATT_TRY(att_model_open(&model, context, TEST_STORIES "gguf/stories260K.Q8_0.gguf", NULL));
  att_model_close(model);
  return ATT_OK;
}

static void a_failed_allocation_leaks(void **state) {
  (void)state;
  static test_memory memory;
  test_need(TEST_STORIES "gguf/stories260K.Q8_0.gguf");
  att_runtime *runtime = test_runtime_of(NULL, 1, &memory);
  test_torture(&memory, open_one, runtime);
  att_runtime_free(runtime);
  assert_no_leak(&memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_checkpoint_gives_other_bits_as_gguf),
      cmocka_unit_test(the_tokenizer_in_the_file_gives_other_tokens),
      cmocka_unit_test(a_dummy_vocabulary_does_not_load),
      cmocka_unit_test(a_failed_allocation_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
