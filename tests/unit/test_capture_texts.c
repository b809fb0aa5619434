/* Captures and edits of several texts that an encoder reads together: each text has the
 * bits that it has alone, and none looks at another. */
#include "support.h"

#include "attend/edit.h"
#include "attend/encoder.h"
#include "model.h"

static const char BERT[] = "{\"model_type\": \"bert\", \"hidden_size\": 24, "
                           "\"num_hidden_layers\": 2, \"num_attention_heads\": 3, "
                           "\"intermediate_size\": 40, \"vocab_size\": 30, "
                           "\"max_position_embeddings\": 160, \"layer_norm_eps\": 1e-12, "
                           "\"architectures\": [\"BertForMaskedLM\"]}";

/* The second is longer than a block of keys; alone its blocks begin elsewhere. */
enum { TEXTS = 3, FIRST = 5, SECOND = 150, THIRD = 1, ALL = FIRST + SECOND + THIRD };
static const int64_t lengths[TEXTS] = {FIRST, SECOND, THIRD};
static const int64_t begins[TEXTS] = {0, FIRST, FIRST + SECOND};

typedef struct fixture {
  att_runtime *runtime;
  att_model *model;
  int32_t ids[ALL];
  att_text texts[TEXTS];
} fixture;

static void open_fixture(fixture *f) {
  f->runtime = test_runtime_of(NULL, 2, NULL);
  f->model = test_random_model(f->runtime, BERT, 7);
  test_ids(f->ids, ALL, 30, 5);
  for (int t = 0; t < TEXTS; t++)
    f->texts[t] = (att_text){.tokens = f->ids + begins[t], .n = lengths[t]};
}

static void close_fixture(fixture *f) {
  att_model_close(f->model);
  att_runtime_free(f->runtime);
}

/* A session with a capture of `select` on it, with `edits` if there are any. */
typedef struct watched {
  att_session *session;
  att_capture *capture;
  att_edits *edits;
} watched;

static watched watch(const fixture *f, const char *select, att_range positions,
                     const att_edit *edit) {
  watched w = {0};
  att_session_options options;
  att_session_options_init(&options);
  options.encoder_tokens = ALL;
  assert_ok(att_session_create(&w.session, f->model, &options));
  att_capture_options parts;
  att_capture_options_init(&parts);
  parts.positions = positions;
  assert_ok(att_capture_create_part(&w.capture, w.session, select, &parts));
  if (edit) assert_ok(att_edits_create(&w.edits, w.session, edit, 1));
  return w;
}

static void unwatch(watched *w) {
  att_edits_free(w->edits);
  att_capture_free(w->capture);
  att_session_free(w->session);
}

/* Of any strides, the last axis adjacent. */
static void assert_same_views(att_view a, att_view b) {
  assert_int_equal(a.ndim, b.ndim);
  for (int d = 0; d < a.ndim; d++) assert_int_equal(a.shape[d], b.shape[d]);
  int64_t outer = a.ndim == 3 ? a.shape[0] : 1, rows = a.shape[a.ndim - 2];
  for (int64_t o = 0; o < outer; o++)
    for (int64_t r = 0; r < rows; r++) {
      int64_t at[2] = {r * a.stride[a.ndim - 2], r * b.stride[b.ndim - 2]};
      if (a.ndim == 3) at[0] += o * a.stride[0], at[1] += o * b.stride[0];
      assert_same_bits((const float *)a.data + at[0], (const float *)b.data + at[1],
                       a.shape[a.ndim - 1]);
    }
}

/* Text t of `together` is what `alone` has read. */
static void assert_same_text(const att_capture *together, const att_capture *alone, int64_t t) {
  assert_int_equal(att_capture_count(together), att_capture_count(alone));
  for (int64_t i = 0; i < att_capture_count(alone); i++) {
    const char *name = att_capture_name(alone, i);
    att_view a, b;
    assert_ok(att_capture_get_text(&a, together, name, t));
    assert_ok(att_capture_get(&b, alone, name));
    assert_same_views(a, b);
  }
}

/* A text whose captured numbers depend on its neighbours. */
static void test_each_text_has_the_bits_that_it_has_alone(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  watched together = watch(&f, "*", (att_range){0}, NULL);
  assert_ok(att_session_encode(together.session, f.texts, TEXTS));
  for (int t = 0; t < TEXTS; t++) {
    watched alone = watch(&f, "*", (att_range){0}, NULL);
    assert_ok(att_session_encode(alone.session, &f.texts[t], 1));
    assert_same_text(together.capture, alone.capture, t);
    unwatch(&alone);
  }
  unwatch(&together);
  close_fixture(&f);
}

static bool same_text(int64_t i, int64_t j) {
  int64_t t = i < FIRST ? 0 : i < FIRST + SECOND ? 1 : 2;
  return j >= begins[t] && j < begins[t] + lengths[t];
}

/* Numbers of an earlier call, or of other texts, that are left between the blocks. */
static void test_nothing_lies_between_texts(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  watched w = watch(&f, "*hook_pattern,*scores", (att_range){0}, NULL);
  att_text whole = {.tokens = f.ids, .n = ALL};
  assert_ok(att_session_encode(w.session, &whole, 1)); /* fills what will lie between */
  assert_ok(att_session_encode(w.session, f.texts, TEXTS));
  for (int64_t n = 0; n < att_capture_count(w.capture); n++) {
    const char *name = att_capture_name(w.capture, n);
    float hidden = strstr(name, "pattern") ? 0 : -INFINITY;
    att_view v;
    assert_ok(att_capture_get(&v, w.capture, name));
    assert_int_equal(v.shape[1], ALL);
    assert_int_equal(v.shape[2], ALL);
    for (int64_t h = 0; h < v.shape[0]; h++)
      for (int64_t i = 0; i < ALL; i++)
        for (int64_t j = 0; j < ALL; j++) {
          const float *x = (const float *)v.data + h * v.stride[0] + i * v.stride[1] + j;
          assert_true(same_text(i, j) ? *x != hidden : *x == hidden);
        }
  }
  unwatch(&w);
  close_fixture(&f);
}

/* Rows or keys of the wrong text where not all positions are kept. */
static void test_kept_positions_count_on_over_texts(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  att_range kept = {FIRST + 10, FIRST + 13}; /* of the second text, 10 to 12 */
  watched part = watch(&f, "*", kept, NULL), alone = watch(&f, "*", (att_range){10, 13}, NULL);
  assert_ok(att_session_encode(part.session, f.texts, TEXTS));
  assert_ok(att_session_encode(alone.session, &f.texts[1], 1));
  assert_same_text(part.capture, alone.capture, 1);
  att_view none;
  assert_ok(att_capture_get_text(&none, part.capture, "blocks.0.attn.hook_pattern", 0));
  assert_int_equal(none.shape[1], 0);
  assert_ok(att_capture_get_text(&none, part.capture, "blocks.0.hook_resid_post", 2));
  assert_int_equal(none.shape[0], 0);
  unwatch(&part);
  unwatch(&alone);
  close_fixture(&f);
}

/* An edit that reaches into a neighbour, or hits another place than it does alone. */
static void test_edits_keep_to_their_text(void **state) {
  (void)state;
  static const char *const words[] = {
      "hide blocks.0.attn.hook_attn_scores head=1 pos=3 key=2", /* an edge before the softmax */
      "set blocks.1.attn.hook_pattern pos=2-6 key=0-9 value=0.25",
      "zero blocks.0.attn.hook_z head=2 pos=7"};
  fixture f;
  open_fixture(&f);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    att_edit edit, moved;
    int64_t n;
    assert_ok(att_edits_read(&edit, &n, 1, f.runtime, words[i]));
    moved = edit;
    moved.positions.first += FIRST, moved.positions.end += FIRST;
    if (edit.keys.end) moved.keys.first += FIRST, moved.keys.end += FIRST;
    watched together = watch(&f, "*", (att_range){0}, &moved);
    watched edited = watch(&f, "*", (att_range){0}, &edit);
    watched plain = watch(&f, "*", (att_range){0}, NULL);
    assert_ok(att_session_encode(together.session, f.texts, TEXTS));
    assert_ok(att_session_encode(edited.session, &f.texts[1], 1));
    assert_ok(att_session_encode(plain.session, &f.texts[0], 1));
    assert_same_text(together.capture, edited.capture, 1);
    assert_same_text(together.capture, plain.capture, 0);
    unwatch(&together);
    unwatch(&edited);
    unwatch(&plain);
  }
  close_fixture(&f);
}

static void assert_same_texts(const att_capture *x, const att_capture *y, const char *name) {
  for (int t = 0; t < TEXTS; t++) {
    att_view a, b;
    assert_ok(att_capture_get_text(&a, x, name, t));
    assert_ok(att_capture_get_text(&b, y, name, t));
    assert_same_views(a, b);
  }
}

/* A run of several texts that, copied into itself, changes a bit, or that is copied into
 * other texts at the wrong rows. */
static void test_a_run_of_texts_is_a_source(void **state) {
  (void)state;
  fixture f, other;
  open_fixture(&f);
  open_fixture(&other);
  test_ids(other.ids, ALL, 30, 6);
  watched clean = watch(&f, "*", (att_range){0}, NULL);
  watched source = watch(&f, "*", (att_range){0}, NULL);
  assert_ok(att_session_encode(clean.session, f.texts, TEXTS));
  assert_ok(att_session_encode(source.session, other.texts, TEXTS));
  att_edit copy = {.at = "blocks.*.attn.hook_pattern", .op = ATT_EDIT_COPY, .run = clean.capture};
  watched again = watch(&f, "*", (att_range){0}, &copy);
  assert_ok(att_session_encode(again.session, f.texts, TEXTS));
  assert_same_texts(again.capture, clean.capture, "blocks.1.hook_resid_post");
  copy.run = source.capture;
  watched frozen = watch(&f, "*hook_pattern", (att_range){0}, &copy);
  assert_ok(att_session_encode(frozen.session, f.texts, TEXTS));
  assert_same_texts(frozen.capture, source.capture, "blocks.1.attn.hook_pattern");
  unwatch(&frozen);
  unwatch(&again);
  unwatch(&source);
  unwatch(&clean);
  close_fixture(&other);
  close_fixture(&f);
}

/* A text that is not there and is handed out, or texts that stay after they are forgotten. */
static void test_texts_that_are_not_there_are_named(void **state) {
  (void)state;
  static const char site[] = "blocks.0.attn.hook_pattern";
  fixture f;
  open_fixture(&f);
  watched w = watch(&f, site, (att_range){0}, NULL);
  att_view v = att_view_none();
  assert_ok(att_session_encode(w.session, f.texts, TEXTS));
  assert_status(ATT_BAD_ARGUMENT, att_capture_get_text(&v, w.capture, site, TEXTS));
  assert_message_has("text 3 of 3");
  assert_status(ATT_BAD_ARGUMENT, att_capture_get_text(&v, w.capture, site, -1));
  assert_status(ATT_NOT_FOUND, att_capture_get_text(&v, w.capture, "blocks.0.hook_q", 0));
  assert_status(ATT_BAD_ARGUMENT, att_capture_get_text(NULL, w.capture, site, 0));
  assert_status(ATT_BAD_ARGUMENT, att_capture_get_text(&v, NULL, site, 0));
  assert_status(ATT_BAD_ARGUMENT, att_capture_get_text(&v, w.capture, NULL, 0));
  assert_null(v.data);
  assert_ok(att_session_encode(w.session, f.texts + 2, 1));
  assert_status(ATT_BAD_ARGUMENT, att_capture_get_text(&v, w.capture, site, 1));
  assert_ok(att_session_truncate(w.session, 0));
  assert_ok(att_capture_get_text(&v, w.capture, site, 0));
  assert_int_equal(v.shape[1], 0);
  assert_ok(att_session_encode(w.session, f.texts, 2));
  att_session_free(w.session); /* what was captured stays */
  w.session = NULL;
  assert_ok(att_capture_get_text(&v, w.capture, site, 1));
  assert_int_equal(v.shape[2], SECOND);
  unwatch(&w);
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_text_has_the_bits_that_it_has_alone),
      cmocka_unit_test(test_nothing_lies_between_texts),
      cmocka_unit_test(test_kept_positions_count_on_over_texts),
      cmocka_unit_test(test_edits_keep_to_their_text),
      cmocka_unit_test(test_a_run_of_texts_is_a_source),
      cmocka_unit_test(test_texts_that_are_not_there_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
