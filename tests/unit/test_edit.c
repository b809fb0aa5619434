/* Edits: they do what they say, nothing else, and leave nothing behind. */
#include "support.h"

#include "attend/edit.h"
#include "scene.h"

enum { TOKENS = 23, CHUNK = 8 };

static att_edits *edit(scene *s, att_edit one) {
  att_edits *edits;
  assert_ok(att_edits_create(&edits, s->session, &one, 1));
  return edits;
}

static const float *read_all(scene *s) {
  assert_ok(att_session_truncate(s->session, 0));
  assert_ok(att_session_eval(s->session, s->ids, TOKENS));
  return att_session_logits(s->session).data;
}

/* ---- nothing changes ---- */

static void test_taken_away_nothing_is_left(void **state) {
  (void)state;
  for (int f = 0; f < TEST_FAMILIES; f++) {
    scene s;
    open_scene(&s, test_families[f], CHUNK, "*");
    float *clean = test_logits(s.model, s.ids, TOKENS);
    int64_t n = TOKENS * s.info->vocab;
    static const att_edit_op ops[] = {ATT_EDIT_ZERO, ATT_EDIT_ADD};
    static const char *const sites[] = {"*.hook_resid_pre", "*.attn.hook_v", "*.hook_attn_scores",
                                        "*.hook_pattern"};
    for (int i = 0; i < 8; i++) {
      att_edit one = {.op = ops[i / 4], .value = 0.5f};
      snprintf(one.at, sizeof one.at, "%s", sites[i % 4]);
      att_edits *edits = edit(&s, one);
      bool shift = i == 6; /* all scores of a row move alike: softmax does not see it */
      bool same = !memcmp(read_all(&s), clean, (size_t)n * sizeof(float));
      if (!shift) assert_false(same);
      att_edits_free(edits);
      assert_int_equal(att_session_length(s.session), 0);
      assert_same_bits(read_all(&s), clean, n);
    }
    free(clean);
    close_scene(&s);
  }
}

/* Times one, and another run's numbers where that run is the same one. */
static void test_what_changes_no_number_changes_no_bit(void **state) {
  (void)state;
  static const char *const sites[] = {"*.hook_resid_pre",   "*.attn.hook_q", "*.attn.hook_rot_k",
                                      "*.attn.hook_v",      "*.attn.hook_z", "*.hook_attn_out",
                                      "*.hook_attn_scores", "*.hook_pattern"};
  for (int f = 0; f < TEST_FAMILIES; f++) {
    scene s;
    open_scene(&s, test_families[f], CHUNK, "*");
    float *clean = test_logits(s.model, s.ids, TOKENS);
    att_session *other = test_session(s.model, 5, false);
    att_capture *run;
    assert_ok(att_capture_create(&run, other, "*", 0, 0));
    assert_ok(att_session_eval(other, s.ids, TOKENS));
    for (size_t i = 0; i < 2 * sizeof sites / sizeof *sites; i++) {
      att_edit one = {.op = i % 2 ? ATT_EDIT_COPY : ATT_EDIT_SCALE, .value = 1, .run = run};
      snprintf(one.at, sizeof one.at, "%s", sites[i / 2]);
      att_edits *edits = edit(&s, one);
      assert_same_bits(read_all(&s), clean, TOKENS * s.info->vocab);
      att_edits_free(edits);
    }
    att_capture_free(run);
    att_session_free(other);
    free(clean);
    close_scene(&s);
  }
}

static void test_hidden_keys_stay_hidden(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "*");
  float *clean = test_logits(s.model, s.ids, TOKENS);
  static const char *const sites[] = {"blocks.0.attn.hook_attn_scores",
                                      "blocks.0.attn.hook_pattern"};
  for (int i = 0; i < 2; i++) {
    att_edit one = {.op = ATT_EDIT_SET, .value = 1, .positions = {0, 10}, .keys = {10, TOKENS}};
    snprintf(one.at, sizeof one.at, "%s", sites[i]);
    att_edits *edits = edit(&s, one);
    assert_same_bits(read_all(&s), clean, TOKENS * s.info->vocab);
    att_edits_free(edits);
  }
  free(clean);
  close_scene(&s);
}

/* What passes before an edited place is as it was, also where another capture keeps that place:
 * both may be made by one call. */
static void test_captures_side_by_side_keep_what_lies_before_an_edit(void **state) {
  (void)state;
  static const char *const sites[2] = {"*.hook_scaled_scores", "*.hook_attn_scores"};
  for (int order = 0; order < 2; order++) {
    scene s;
    open_scene(&s, TEST_LLAMA, CHUNK, sites[order]);
    att_capture *other;
    assert_ok(att_capture_create(&other, s.session, sites[!order], 0, 0));
    att_capture *before = order ? other : s.capture, *at = order ? s.capture : other;
    read_all(&s);
    const att_view scaled = kept(before, 0, "attn.hook_scaled_scores");
    const int64_t n = scaled.shape[0] * scaled.stride[0];
    float *clean = malloc((size_t)n * sizeof *clean);
    memcpy(clean, scaled.data, (size_t)n * sizeof *clean);
    att_edits *edits = edit(&s, (att_edit){.at = "blocks.0.attn.hook_attn_scores",
                                           .op = ATT_EDIT_SET,
                                           .value = 7,
                                           .positions = {5, 9},
                                           .keys = {2, 3}});
    read_all(&s);
    assert_same_bits(kept(before, 0, "attn.hook_scaled_scores").data, clean, n);
    const att_view edited = kept(at, 0, "attn.hook_attn_scores");
    assert_true(((const float *)edited.data)[6 * edited.stride[1] + 2 * edited.stride[2]] == 7);
    att_edits_free(edits);
    att_capture_free(other);
    free(clean);
    close_scene(&s);
  }
}

/* ---- what each one does ---- */

static void test_without_heads_a_block_adds_its_bias(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "*");
  att_edits *edits = edit(&s, (att_edit){.at = "blocks.1.attn.hook_z", .op = ATT_EDIT_ZERO});
  read_all(&s);
  const float *bias = s.model->weights.layer[1].attention.o.bias;
  const float *out = kept(s.capture, 1, "hook_attn_out").data;
  for (int64_t i = 0; i < TOKENS * s.info->width; i++)
    assert_true(out[i] == (bias ? bias[i % s.info->width] : 0));
  att_edits_free(edits);
  close_scene(&s);
}

/* Weights after an edge is knocked out of row I of a head, and the output they give. */
static void check_edge(scene *s, att_edit one, bool before_softmax) {
  enum { H = 3, I = 15, J = 6 };
  double clean[TOKENS], rest = 0;
  read_all(s);
  for (int64_t j = 0; j <= I; j++) {
    clean[j] = (double)pair_at(kept(s->capture, 1, "attn.hook_pattern"), H, I, j);
    if (j != J) rest += clean[j];
  }
  one.heads = (att_range){H, H + 1};
  one.positions = (att_range){I, I + 1};
  one.keys = (att_range){J, J + 1};
  att_edits *edits = edit(s, one);
  read_all(s);
  att_view w = kept(s->capture, 1, "attn.hook_pattern"), v = kept(s->capture, 1, "attn.hook_v");
  const float *z = kept(s->capture, 1, "attn.hook_z").data;
  int64_t heads = s->info->heads, g = s->info->kv_heads, d = s->info->head_dim;
  for (int64_t j = 0; j <= I; j++) {
    double want = j == J ? 0 : before_softmax ? clean[j] / rest : clean[j];
    assert_true(fabs((double)pair_at(w, H, I, j) - want) < 1e-6);
  }
  for (int64_t c = 0; c < d; c++) {
    double sum = 0;
    for (int64_t j = 0; j <= I; j++)
      sum += (double)pair_at(w, H, I, j) *
             (double)((const float *)v.data)[(j * g + H / (heads / g)) * d + c];
    assert_true(fabs(sum - (double)z[(I * heads + H) * d + c]) < 1e-5);
  }
  float score = pair_at(kept(s->capture, 1, "attn.hook_attn_scores"), H, I, J);
  assert_true(before_softmax == (score == -INFINITY));
  att_edits_free(edits);
}

static void test_an_edge_is_knocked_out_before_or_after_softmax(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "*");
  check_edge(&s, (att_edit){.at = "blocks.1.attn.hook_attn_scores", .op = ATT_EDIT_HIDE}, true);
  check_edge(&s, (att_edit){.at = "blocks.1.attn.hook_pattern", .op = ATT_EDIT_ZERO}, false);
  close_scene(&s);
}

static void check_rows(scene *s, att_edit one, float from_clean, float plus) {
  read_all(s);
  att_view view = kept(s->capture, 0, "hook_resid_mid");
  int64_t n = att_view_count(&view), c = s->info->width;
  float *clean = malloc((size_t)n * sizeof *clean);
  memcpy(clean, view.data, (size_t)n * sizeof *clean);
  snprintf(one.at, sizeof one.at, "blocks.0.hook_resid_mid");
  one.positions = (att_range){4, 7};
  att_edits *edits = edit(s, one);
  read_all(s);
  const float *got = view.data;
  for (int64_t i = 0; i < n; i++) {
    bool chosen = i / c >= 4 && i / c < 7;
    assert_true(got[i] == (chosen ? clean[i] * from_clean + plus : clean[i]));
  }
  att_edits_free(edits);
  free(clean);
}

static void test_rows_become_what_is_said(void **state) {
  (void)state;
  scene s;
  float vector[40];
  open_scene(&s, TEST_LLAMA, CHUNK, "*");
  for (int i = 0; i < 40; i++) vector[i] = 2;
  att_view row = att_view_of(vector, ATT_F32, 2, (int64_t[]){1, 40});
  check_rows(&s, (att_edit){.op = ATT_EDIT_ZERO}, 0, 0);
  check_rows(&s, (att_edit){.op = ATT_EDIT_SET, .value = 3}, 0, 3);
  check_rows(&s, (att_edit){.op = ATT_EDIT_SCALE, .value = -2}, -2, 0);
  check_rows(&s, (att_edit){.op = ATT_EDIT_ADD, .value = 0.25f}, 1, 0.25f);
  check_rows(&s, (att_edit){.op = ATT_EDIT_COPY, .rows = row}, 0, 2);
  check_rows(&s, (att_edit){.op = ATT_EDIT_MEAN, .rows = row}, 0, 2);
  check_rows(&s, (att_edit){.op = ATT_EDIT_DELTA, .value = 0.5f, .rows = row}, 1, 1);
  close_scene(&s);
}

static void double_it(float *x, int64_t n, const char *name, int64_t head, int64_t position,
                      int64_t first, void *payload) {
  assert_string_equal(name, "blocks.0.hook_resid_mid");
  assert_true(head == -1 && position >= 4 && position < 7 && first == 0);
  ++*(int *)payload;
  for (int64_t i = 0; i < n; i++) x[i] *= 2;
}

static void test_a_callers_function_is_an_edit(void **state) {
  (void)state;
  scene s;
  int calls = 0;
  open_scene(&s, TEST_LLAMA, CHUNK, "*");
  check_rows(&s, (att_edit){.change = double_it, .payload = &calls}, 2, 0);
  assert_int_equal(calls, 3);
  close_scene(&s);
}

/* ---- sources of a part ---- */

enum { PART_FIRST = 4, PART_END = 9 };

/* A capture of some positions of another text of the model. */
static att_capture *open_part(att_session **session, const scene *s) {
  att_capture_options options;
  att_capture_options_init(&options);
  options.positions = (att_range){PART_FIRST, PART_END};
  int32_t ids[TOKENS];
  test_ids(ids, TOKENS, s->info->vocab, 13);
  *session = test_session(s->model, 8, false);
  att_capture *part;
  assert_ok(att_capture_create_part(&part, *session, "*.hook_z,*.hook_pattern", &options));
  assert_ok(att_session_eval(*session, ids, TOKENS));
  return part;
}

/* The file that a trace of these positions is. */
static att_archive *write_part(const scene *s, const att_capture *part, const char *first) {
  const char *names[8];
  att_view views[8];
  int64_t n = att_capture_count(part);
  assert_true(n <= 8);
  for (int64_t i = 0; i < n; i++) {
    names[i] = att_capture_name(part, i);
    assert_ok(att_capture_get(&views[i], part, names[i]));
  }
  char folder[64], path[96];
  test_make_folder(folder);
  snprintf(path, sizeof path, "%s/part.safetensors", folder);
  const char *const metadata[] = {"first_position", first};
  assert_ok(att_safetensors_write(s->runtime, path, n, names, views, 1, metadata));
  att_archive *file;
  assert_ok(att_archive_open(&file, s->runtime, path));
  test_remove_folder(folder);
  return file;
}

/* Rows PART_FIRST to PART_END of both sites become the part's, the others stay. */
static void check_part(scene *s, att_edit one, const att_capture *part) {
  att_view z, pattern;
  assert_ok(att_capture_get(&z, part, "blocks.0.attn.hook_z"));
  assert_ok(att_capture_get(&pattern, part, "blocks.0.attn.hook_pattern"));
  int64_t row = s->info->heads * s->info->head_dim;
  read_all(s);
  float *clean = malloc((size_t)(TOKENS * row) * sizeof *clean);
  memcpy(clean, kept(s->capture, 0, "attn.hook_z").data, (size_t)(TOKENS * row) * sizeof *clean);
  for (int range = 0; range < 2; range++) {
    one.positions = range ? (att_range){PART_FIRST + 1, PART_END} : (att_range){0, 0};
    int64_t first = PART_FIRST + range;
    snprintf(one.at, sizeof one.at, "blocks.0.attn.hook_z");
    att_edits *edits = edit(s, one);
    read_all(s);
    for (int64_t i = 0; i < TOKENS; i++) {
      const float *want = clean + i * row;
      if (i >= first && i < PART_END) want = (const float *)z.data + (i - PART_FIRST) * row;
      assert_same_bits((const float *)kept(s->capture, 0, "attn.hook_z").data + i * row, want, row);
    }
    att_edits_free(edits);
    snprintf(one.at, sizeof one.at, "blocks.0.attn.hook_pattern");
    edits = edit(s, one);
    read_all(s);
    for (int64_t i = first; i < PART_END; i++)
      for (int64_t j = 0; j <= i; j++)
        assert_true(pair_at(kept(s->capture, 0, "attn.hook_pattern"), 2, i, j) ==
                    pair_at(pattern, 2, i - PART_FIRST, j));
    att_edits_free(edits);
  }
  free(clean);
}

static void test_a_part_of_a_run_is_read_at_other_positions(void **state) {
  (void)state;
  scene s;
  att_session *other;
  open_scene(&s, TEST_LLAMA, CHUNK, "*");
  att_capture *part = open_part(&other, &s);
  att_archive *file = write_part(&s, part, "4"), *wrong = write_part(&s, part, "4x");
  check_part(&s, (att_edit){.op = ATT_EDIT_COPY, .run = part}, part);
  check_part(&s, (att_edit){.op = ATT_EDIT_COPY, .file = file}, part);
  static const att_range absent[] = {{0, 1}, {3, 6}, {8, 10}, {12, 13}};
  for (int i = 0; i < 8; i++) {
    att_edits *edits;
    att_edit one = {.op = ATT_EDIT_COPY, .file = file, .positions = absent[i / 2]};
    snprintf(one.at, sizeof one.at, "blocks.0.attn.%s", i % 2 ? "hook_z" : "hook_pattern");
    assert_status(ATT_BAD_ARGUMENT, att_edits_create(&edits, s.session, &one, 1));
    assert_message_has("4 to 9");
    one = (att_edit){.at = "*.hook_z", .op = ATT_EDIT_COPY, .file = wrong};
    assert_status(ATT_CORRUPT, att_edits_create(&edits, s.session, &one, 1));
  }
  att_archive_close(file);
  att_archive_close(wrong);
  att_capture_free(part);
  att_session_free(other);
  close_scene(&s);
}

/* Weights over three keys for a row that sees more would not sum to 1. */
static void test_half_a_row_is_copied(void **state) {
  (void)state;
  enum { ROWS = 6, KEYS = 3, HEADS = 6 };
  scene s;
  static float weights[HEADS * ROWS * KEYS];
  open_scene(&s, TEST_LLAMA, CHUNK, "*");
  float *clean = test_logits(s.model, s.ids, TOKENS);
  att_edit one = {.at = "blocks.0.attn.hook_pattern", .op = ATT_EDIT_COPY};
  one.rows = att_view_of(weights, ATT_F32, 3, (int64_t[]){HEADS, ROWS, KEYS});
  att_edits *edits = edit(&s, one);
  assert_ok(att_session_eval(s.session, s.ids, KEYS)); /* as many keys as there are */
  assert_status(ATT_BAD_SHAPE, att_session_eval(s.session, s.ids + KEYS, 1));
  assert_message_has("3 keys");
  att_edits_free(edits);
  one.keys = (att_range){0, KEYS};
  edits = edit(&s, one);
  read_all(&s);
  att_edits_free(edits);
  assert_same_bits(read_all(&s), clean, TOKENS * s.info->vocab);
  free(clean);
  close_scene(&s);
}

/* Of a model with sinks; scores all alike, so that a share has a closed form. */
static void test_an_edited_row_and_its_sink_do_not_sum_to_1(void **state) {
  (void)state;
  static const char path[] = ATT_SHARED_DIR "/golden_models/tiny_random/gpt_oss";
  test_need(path);
  scene s = {.runtime = test_runtime_of(NULL, 1, NULL)};
  s.model = test_open(s.runtime, path);
  start_scene(&s, CHUNK, "*.hook_sink,*.hook_pattern");
  att_edits *edits =
      edit(&s, (att_edit){.at = "*.hook_attn_scores", .op = ATT_EDIT_SET, .value = 3});
  read_all(&s);
  for (int64_t l = 0; l < s.info->layers; l++)
    for (int64_t h = 0; h < s.info->heads; h++)
      for (int64_t i = 0; i < TOKENS; i++) {
        const float *sink = kept(s.capture, l, "attn.hook_sink").data;
        double share = (double)sink[i * s.info->heads + h], sum = share, seen = 0;
        for (int64_t j = 0; j < TOKENS; j++) {
          double w = (double)pair_at(kept(s.capture, l, "attn.hook_pattern"), h, i, j);
          sum += w;
          seen += w > 0;
        }
        double own = exp((double)s.model->weights.layer[l].attention.sinks[h] - 3);
        assert_true(fabs(sum - 1) < 1e-5);
        assert_true(fabs(share - own / (own + seen)) < 1e-6);
      }
  att_edits_free(edits);
  close_scene(&s);
}

/* ---- sessions ---- */

static void test_steps_are_the_whole_under_edits(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "*");
  const att_edit list[3] = {
      {.at = "blocks.0.attn.hook_attn_scores",
       .op = ATT_EDIT_HIDE,
       .keys = {0, 1},
       .positions = {1, 99}},
      {.at = "blocks.*.attn.hook_z", .op = ATT_EDIT_SCALE, .value = 0.5f, .heads = {1, 3}},
      {.at = "blocks.1.attn.hook_pattern", .op = ATT_EDIT_ZERO, .heads = {5, 6}, .keys = {2, 4}}};
  att_edits *edits, *again, *more;
  assert_ok(att_edits_create(&edits, s.session, list, 3));
  const float *whole = read_all(&s);
  att_session *steps = test_session(s.model, 3, false);
  assert_ok(att_edits_create(&again, steps, list, 3));
  for (int i = 0; i < TOKENS; i++) assert_ok(att_session_eval(steps, s.ids + i, 1));
  assert_same_bits(att_session_logits(steps).data, whole + (TOKENS - 1) * s.info->vocab,
                   s.info->vocab);
  assert_status(ATT_WRONG_STATE, att_edits_create(&more, steps, list, 1));
  att_session_free(steps);
  att_edits_free(again); /* after its session */
  att_edits_free(edits);
  close_scene(&s);
}

static void test_what_was_read_before_is_forgotten_where_it_differs(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_GPT2, CHUNK, "*");
  read_all(&s);
  att_edit one = {.at = "blocks.0.hook_resid_pre", .op = ATT_EDIT_ZERO, .positions = {9, 10}};
  att_edits *edits = edit(&s, one);
  assert_int_equal(att_session_length(s.session), 9);
  assert_ok(att_session_eval(s.session, s.ids + 9, TOKENS - 9));
  float *part = malloc((size_t)s.info->vocab * sizeof *part);
  memcpy(part, (const float *)att_session_logits(s.session).data + (TOKENS - 10) * s.info->vocab,
         (size_t)s.info->vocab * sizeof *part);
  assert_same_bits(part, read_all(&s) + (TOKENS - 1) * s.info->vocab, s.info->vocab);
  att_edits_free(edits);
  assert_int_equal(att_session_length(s.session), 9);
  free(part);
  close_scene(&s);
}

/* ---- words ---- */

static void test_words_and_json_say_the_same(void **state) {
  (void)state;
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_edit words[3], json[3];
  int64_t n, m;
  assert_ok(
      att_edits_read(words, &n, 3, runtime,
                     "zero blocks.4.attn.hook_z head=7;  hide *.hook_attn_scores pos=2-5 key=0;"
                     "scale x value=-0.5"));
  assert_ok(att_edits_read(
      json, &m, 3, runtime,
      "[{\"op\":\"zero\",\"at\":\"blocks.4.attn.hook_z\",\"head\":7},"
      "{\"at\":\"*.hook_attn_scores\",\"op\":\"hide\",\"pos\":\"2-5\",\"key\":\"0\"},"
      "{\"op\":\"scale\",\"at\":\"x\",\"value\":-0.5}]"));
  assert_int_equal(n, 3);
  assert_int_equal(m, 3);
  for (int i = 0; i < 3; i++) {
    assert_string_equal(words[i].at, json[i].at);
    assert_int_equal(words[i].op, json[i].op);
    assert_memory_equal(&words[i].heads, &json[i].heads, sizeof(att_range));
    assert_memory_equal(&words[i].positions, &json[i].positions, sizeof(att_range));
    assert_memory_equal(&words[i].keys, &json[i].keys, sizeof(att_range));
    assert_true(words[i].value == json[i].value);
  }
  assert_true(words[0].heads.first == 7 && words[0].heads.end == 8);
  assert_true(words[1].positions.first == 2 && words[1].positions.end == 6);
  static const char *const bad[] = {"erase x",
                                    "zero",
                                    "scale x",
                                    "zero x head=-1",
                                    "zero x head=5-3",
                                    "zero x foo=1",
                                    "set x value=a",
                                    "zero x head=1x",
                                    "[1]",
                                    "[{\"op\":\"zero\"}]",
                                    "[{}",
                                    "zero a;zero a;zero a;zero a",
                                    "set x value=1e99",
                                    "[{\"op\":\"zero\",\"at\":true}]"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (att_edits_read(words, &n, 3, runtime, bad[i]) == ATT_OK) fail_msg("read: %s", bad[i]);
  assert_int_equal(n, 3); /* a failure writes no number */
  assert_status(ATT_BAD_ARGUMENT, att_edits_read(NULL, &n, 3, runtime, ""));
  assert_string_equal(att_edit_op_name(ATT_EDIT_DELTA), "delta");
  assert_null(att_edit_op_name(ATT_EDIT_COUNT));
  att_runtime_free(runtime);
}

static void test_bad_edits_are_named(void **state) {
  (void)state;
  scene s;
  open_scene(&s, TEST_LLAMA, CHUNK, "*");
  float *clean = test_logits(s.model, s.ids, TOKENS);
  att_edits *edits;
  float x[4] = {0};
  static const struct {
    att_edit edit;
    att_status status;
  } bad[] = {{{.at = "blocks.0.attn.hok_z"}, ATT_NOT_FOUND},
             {{.at = ""}, ATT_BAD_ARGUMENT},
             {{.at = "a,b"}, ATT_BAD_ARGUMENT},
             {{.at = "logits"}, ATT_UNSUPPORTED},
             {{.at = "blocks.0.attn.hook_result"}, ATT_UNSUPPORTED},
             {{.at = "blocks.0.attn.hook_raw_scores"}, ATT_UNSUPPORTED},
             {{.at = "blocks.0.attn.hook_z", .heads = {5, 7}}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_k", .heads = {2, 3}}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_z", .keys = {1, 2}}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_z", .op = ATT_EDIT_HIDE}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_z", .op = ATT_EDIT_COPY}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_pattern", .op = ATT_EDIT_MEAN}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_z", .op = 99}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_pattern", .keys = {-3, 1}}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_pattern", .keys = {7, 2}}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_pattern", .keys = {3, 0}}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_z", .positions = {0, -1}}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_z", .positions = {7, 2}}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_z", .positions = {4, 4}}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_z", .heads = {-1, 0}}, ATT_BAD_ARGUMENT},
             {{.at = "blocks.0.attn.hook_z", .heads = {2, 1}}, ATT_BAD_ARGUMENT}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_status(bad[i].status, att_edits_create(&edits, s.session, &bad[i].edit, 1));
  att_edit wrong = {.at = "blocks.0.hook_resid_mid", .op = ATT_EDIT_COPY};
  wrong.rows = att_view_of(x, ATT_F32, 2, (int64_t[]){1, 4});
  assert_status(ATT_BAD_SHAPE, att_edits_create(&edits, s.session, &wrong, 1));
  assert_status(ATT_BAD_ARGUMENT, att_edits_create(NULL, s.session, &wrong, 1));
  assert_status(ATT_BAD_ARGUMENT, att_edits_create(&edits, NULL, &wrong, 1));
  assert_status(ATT_BAD_ARGUMENT, att_edits_create(&edits, s.session, NULL, 1));
  assert_same_bits(read_all(&s), clean, TOKENS * s.info->vocab);
  att_edits_free(NULL);
  free(clean);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_taken_away_nothing_is_left),
      cmocka_unit_test(test_what_changes_no_number_changes_no_bit),
      cmocka_unit_test(test_hidden_keys_stay_hidden),
      cmocka_unit_test(test_without_heads_a_block_adds_its_bias),
      cmocka_unit_test(test_an_edge_is_knocked_out_before_or_after_softmax),
      cmocka_unit_test(test_rows_become_what_is_said),
      cmocka_unit_test(test_a_callers_function_is_an_edit),
      cmocka_unit_test(test_a_part_of_a_run_is_read_at_other_positions),
      cmocka_unit_test(test_half_a_row_is_copied),
      cmocka_unit_test(test_an_edited_row_and_its_sink_do_not_sum_to_1),
      cmocka_unit_test(test_steps_are_the_whole_under_edits),
      cmocka_unit_test(test_what_was_read_before_is_forgotten_where_it_differs),
      cmocka_unit_test(test_words_and_json_say_the_same),
      cmocka_unit_test(test_captures_side_by_side_keep_what_lies_before_an_edit),
      cmocka_unit_test(test_bad_edits_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
