/* Files of encoders as people have them: older names, heads that are or are not there,
 * both formats of one checkpoint, and settings that are not to be run wrong. */
#include "support.h"

#include "attend/encoder.h"
#include "model.h"

#define TINY ATT_SHARED_DIR "/golden_models/tiny_random/"

static const int32_t ids[9] = {2, 15, 33, 47, 15, 3, 60, 61, 3};

/* The vectors of a text, in new memory. */
static float *hidden_of(const att_model *model, int64_t *n) {
  att_session *session;
  assert_ok(att_session_create(&session, model, NULL));
  att_text text = {.tokens = ids, .n = 9};
  assert_ok(att_session_encode(session, &text, 1));
  att_view hidden = att_session_hidden(session);
  *n = att_view_count(&hidden);
  float *copy = malloc((size_t)*n * sizeof *copy);
  memcpy(copy, hidden.data, (size_t)*n * sizeof *copy);
  att_session_free(session);
  return copy;
}

static void compare_hidden(att_runtime *runtime, const char *one, const char *other) {
  att_model *a = test_open(runtime, one), *b = test_open(runtime, other);
  int64_t n, m;
  float *x = hidden_of(a, &n), *y = hidden_of(b, &m);
  assert_int_equal(n, m);
  assert_same_bits(x, y, n);
  free(x);
  free(y);
  att_model_close(a);
  att_model_close(b);
}

/* A constant that the two formats round differently. */
static void test_both_formats_give_the_same_bits(void **state) {
  (void)state;
  static const char *const folders[] = {"bert", "roberta", "distilbert", "t5_gated",
                                        "t5_relu_tied"};
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    char folder[512], gguf[544];
    snprintf(folder, sizeof folder, TINY "%s", folders[i]);
    snprintf(gguf, sizeof gguf, "%s/model.F32.gguf", folder);
    test_need(gguf);
    compare_hidden(runtime, folder, gguf);
  }
  att_runtime_free(runtime);
}

/* Logits of a decoder's tokens over the text. */
static void test_both_formats_of_t5_write_the_same(void **state) {
  (void)state;
  test_need(TINY "t5_gated/model.F32.gguf");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  const char *const paths[] = {TINY "t5_gated", TINY "t5_gated/model.F32.gguf"};
  float logits[2][96];
  for (int i = 0; i < 2; i++) {
    att_model *model = test_open(runtime, paths[i]);
    att_session *session;
    att_text text = {.tokens = ids, .n = 9};
    assert_ok(att_session_create(&session, model, NULL));
    assert_ok(att_session_encode(session, &text, 1));
    assert_ok(att_session_eval(session, ids, 7));
    memcpy(logits[i], att_session_logits(session).data, sizeof logits[i]);
    att_session_free(session);
    att_model_close(model);
  }
  assert_same_bits(logits[0], logits[1], 96);
  att_runtime_free(runtime);
}

/* Tensors of another file under other names; NULL leaves one out. */
typedef struct renaming {
  const char *from, *to;
} renaming;

static const char *renamed(char out[128], const char *name, const renaming *rules) {
  for (; rules->from; rules++) {
    const char *at = strstr(name, rules->from);
    if (!at) continue;
    if (!rules->to) return NULL;
    snprintf(out, 128, "%.*s%s%s", (int)(at - name), name, rules->to, at + strlen(rules->from));
    return out;
  }
  return name;
}

static void rewrite(att_runtime *runtime, const char *folder, const char *source,
                    const char *config, const renaming *rules, const char *extra) {
  static char names[128][128];
  static const char *pointers[128];
  static att_view views[128];
  att_archive *archive;
  char path[512];
  int n = 0;
  float one[1] = {0};
  snprintf(path, sizeof path, "%s/model.safetensors", source);
  assert_ok(att_archive_open(&archive, runtime, path));
  for (int64_t i = 0; i < att_archive_count(archive); i++) {
    const char *name = att_archive_name(archive, i);
    const char *other = renamed(names[n], name, rules);
    if (!other) continue;
    pointers[n] = other;
    assert_ok(att_archive_get(&views[n++], archive, name));
  }
  if (extra) {
    pointers[n] = extra;
    views[n++] = att_view_of(one, ATT_F32, 1, (int64_t[]){1});
  }
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  assert_ok(att_safetensors_write(runtime, path, n, pointers, views, 0, NULL));
  att_archive_close(archive);
  test_write_text(folder, "config.json", config);
}

#define BERT_SIZES                                                                                 \
  "\"model_type\": \"bert\", \"vocab_size\": 96, \"hidden_size\": 32, "                            \
  "\"intermediate_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "              \
  "\"max_position_embeddings\": 40, \"layer_norm_eps\": 0.003"

/* Norms called gamma and beta, a sentence head that nobody runs, no prefix. */
static void test_older_names_and_bare_models(void **state) {
  (void)state;
  static const renaming old[] = {
      {"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}, {0}};
  static const renaming bare[] = {{"cls.predictions", NULL}, {"bert.", ""}, {0}};
  test_need(TINY "bert/config.json");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  char folder[64];
  test_make_folder(folder);
  rewrite(runtime, folder, TINY "bert",
          "{" BERT_SIZES ", \"architectures\": [\"BertForPreTraining\"]}", old,
          "cls.seq_relationship.bias");
  compare_hidden(runtime, TINY "bert", folder);
  rewrite(runtime, folder, TINY "bert",
          "{" BERT_SIZES ", \"architectures\": [\"BertModel\"], \"directionality\": \"bidi\", "
          "\"pooler_fc_size\": 768, \"pooler_num_attention_heads\": 12, "
          "\"pooler_num_fc_layers\": 3, \"pooler_size_per_head\": 128, "
          "\"pooler_type\": \"first_token_transform\"}", /* as bert-base-multilingual has it */
          bare, NULL);
  compare_hidden(runtime, TINY "bert", folder);
  att_model *model = test_open(runtime, folder);
  assert_false(att_model_describe(model)->fills_gaps);
  assert_true(att_model_describe(model)->pooling_head);
  att_model_close(model);
  test_remove_folder(folder);
  att_runtime_free(runtime);
}

/* Settings that change what a model computes and that attend does not run. */
/* The same wiring by another name, and what an absent setting means there. */
static void test_relatives_are_other_models(void **state) {
  (void)state;
  static const renaming none[] = {{0}};
  static const struct {
    const char *source, *config;
  } rows[] = {
      {"roberta", "{\"model_type\": \"xlm-roberta\", \"architectures\": "
                  "[\"XLMRobertaForMaskedLM\"], \"vocab_size\": 96, \"hidden_size\": 32, "
                  "\"intermediate_size\": 64, \"num_hidden_layers\": 2, "
                  "\"num_attention_heads\": 4, \"max_position_embeddings\": 40, "
                  "\"layer_norm_eps\": 1e-5, \"type_vocab_size\": 1}"},
      {"roberta", "{\"model_type\": \"camembert\", \"vocab_size\": 96, \"hidden_size\": 32, "
                  "\"intermediate_size\": 64, \"num_hidden_layers\": 2, "
                  "\"num_attention_heads\": 4, \"max_position_embeddings\": 40, "
                  "\"layer_norm_eps\": 1e-5, \"type_vocab_size\": 1}"},
      {"t5_gated", "{\"model_type\": \"mt5\", \"d_model\": 32, \"d_kv\": 8, \"d_ff\": 40, "
                   "\"num_layers\": 2, \"num_heads\": 4, \"vocab_size\": 96, "
                   "\"relative_attention_num_buckets\": 8, \"layer_norm_epsilon\": 0.002}"},
  };
  test_need(TINY "roberta/config.json");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char folder[64], source[512];
    test_make_folder(folder);
    snprintf(source, sizeof source, TINY "%s", rows[i].source);
    rewrite(runtime, folder, source, rows[i].config, none, NULL);
    compare_hidden(runtime, source, folder);
    test_remove_folder(folder);
  }
  att_runtime_free(runtime);
}

static void test_what_is_not_run_is_refused(void **state) {
  (void)state;
  static const renaming none[] = {{0}};
  static const renaming no_head[] = {{"cls.predictions", NULL}, {0}};
  static const struct {
    const char *source, *config;
    const renaming *rules;
    const char *message;
  } rows[] = {
      {"bert", "{" BERT_SIZES ", \"position_embedding_type\": \"relative_key\"}", none,
       "relative_key"},
      {"bert", "{" BERT_SIZES ", \"is_decoder\": true}", none, "is_decoder"},
      {"bert", "{" BERT_SIZES ", \"hidden_act\": \"swoosh\"}", none, "swoosh"},
      {"bert", "{" BERT_SIZES ", \"architectures\": [\"BertForTokenClassification\"]}", none,
       "BertForTokenClassification"},
      {"bert", "{" BERT_SIZES ", \"architectures\": [\"BertForMaskedLM\"]}", no_head,
       "cls.predictions"},
      {"bert", "{" BERT_SIZES ", \"type_vocab_size\": 3}", none, "token_type_embeddings"},
      {"t5_gated",
       "{\"model_type\": \"t5\", \"d_model\": 32, \"d_kv\": 8, \"d_ff\": 40, \"num_layers\": 2, "
       "\"num_heads\": 4, \"vocab_size\": 96, \"relative_attention_num_buckets\": 8, "
       "\"feed_forward_proj\": \"gated-gelu\", \"is_gated_act\": false}",
       none, "is_gated_act"},
      {"t5_gated",
       "{\"model_type\": \"t5\", \"d_model\": 32, \"d_kv\": 8, \"d_ff\": 40, \"num_layers\": 2, "
       "\"num_heads\": 4, \"vocab_size\": 96, \"relative_attention_num_buckets\": 7}",
       none, "7 buckets"},
      {"t5_gated",
       "{\"model_type\": \"t5\", \"d_model\": 32, \"d_kv\": 8, \"d_ff\": 40, \"num_layers\": 2, "
       "\"num_heads\": 4, \"vocab_size\": 96, \"decoder_start_token_id\": 96, "
       "\"relative_attention_num_buckets\": 8}",
       none, "starts with token 96"},
      {"t5_gated",
       "{\"model_type\": \"t5\", \"d_model\": 32, \"d_kv\": 8, \"d_ff\": 40, \"num_layers\": 2, "
       "\"num_heads\": 4, \"vocab_size\": 96, \"feed_forward_proj\": \"gated-mish\"}",
       none, "gated-mish"},
  };
  test_need(TINY "bert/config.json");
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  char folder[64], source[512];
  test_make_folder(folder);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    att_open_options options;
    att_open_options_init(&options);
    options.without_tokenizer = true;
    att_model *model;
    snprintf(source, sizeof source, TINY "%s", rows[i].source);
    rewrite(runtime, folder, source, rows[i].config, rows[i].rules, NULL);
    assert_int_not_equal(att_model_open(&model, runtime, folder, &options), ATT_OK);
    assert_message_is_a_line();
    assert_message_has(rows[i].message);
  }
  test_remove_folder(folder);
  att_runtime_free(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_both_formats_give_the_same_bits),
      cmocka_unit_test(test_both_formats_of_t5_write_the_same),
      cmocka_unit_test(test_older_names_and_bare_models),
      cmocka_unit_test(test_relatives_are_other_models),
      cmocka_unit_test(test_what_is_not_run_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
