/* Activation patching against a model written out here in double, attribution patching
 * against central differences of real patches. */
#include "support.h"

#include "attend/attend.h"
#include "model.h"

/* ---- the reference: attention and nothing else, in double ---- */

enum { T = 6, L = 2, C = 24, H = 2, D = 8, V = 30 }; /* of TEST_BARE */
enum { RESID, OUT, Z, PATTERN, NONE };

typedef struct numbers {
  double resid[L + 1][T][C], out[L][T][C], z[L][T][H][D], pattern[L][H][T][T];
  double logits[V]; /* of the last position */
} numbers;

/* Which numbers are another run's: position or head -1 are all. */
typedef struct place {
  int site;
  int64_t layer, head, position;
} place;

static bool covers(const place *p, int site, int64_t layer, int64_t head, int64_t position) {
  return p->site == site && p->layer == layer && (p->head < 0 || p->head == head) &&
         (p->position < 0 || p->position == position);
}

static void times(double *y, const att_linear *linear, const double *x) {
  for (int64_t n = 0; n < linear->weight.n; n++) {
    float row[64];
    att_packed_row(&linear->weight, n, row);
    y[n] = linear->bias ? (double)linear->bias[n] : 0;
    for (int64_t k = 0; k < linear->weight.k; k++) y[n] += (double)row[k] * x[k];
  }
}

static void attend_to(numbers *m, const numbers *other, const place *p, int64_t l,
                      double q[T][H][D], double k[T][H][D], double v[T][H][D]) {
  for (int h = 0; h < H; h++)
    for (int i = 0; i < T; i++) {
      double *a = m->pattern[l][h][i], sum = 0;
      for (int j = 0; j <= i; j++) {
        double score = 0;
        for (int d = 0; d < D; d++) score += q[i][h][d] * k[j][h][d];
        sum += a[j] = exp(score / sqrt(D));
      }
      for (int j = 0; j < T; j++) a[j] = j <= i ? a[j] / sum : 0;
      if (covers(p, PATTERN, l, h, i)) memcpy(a, other->pattern[l][h][i], sizeof(double[T]));
      for (int d = 0; d < D; d++) {
        m->z[l][i][h][d] = 0;
        for (int j = 0; j <= i; j++) m->z[l][i][h][d] += a[j] * v[j][h][d];
      }
      if (covers(p, Z, l, h, i)) memcpy(m->z[l][i][h], other->z[l][i][h], sizeof(double[D]));
    }
}

static void read_all(numbers *m, const att_model *model, const int32_t *ids, const numbers *other,
                     place p) {
  for (int i = 0; i < T; i++) {
    float row[C];
    att_embedding_row(&model->weights.tokens, ids[i], row);
    for (int c = 0; c < C; c++) m->resid[0][i][c] = (double)row[c];
  }
  for (int l = 0; l < L; l++) {
    const att_self_attention *a = &model->weights.layer[l].attention;
    double q[T][H][D], k[T][H][D], v[T][H][D];
    for (int i = 0; i < T; i++) {
      double *x = m->resid[l][i];
      if (covers(&p, RESID, l, 0, i)) memcpy(x, other->resid[l][i], sizeof(double[C]));
      times(q[i][0], &a->q, x), times(k[i][0], &a->k, x), times(v[i][0], &a->v, x);
    }
    attend_to(m, other, &p, l, q, k, v);
    for (int i = 0; i < T; i++) {
      times(m->out[l][i], &a->o, m->z[l][i][0]);
      if (covers(&p, OUT, l, 0, i)) memcpy(m->out[l][i], other->out[l][i], sizeof(double[C]));
      for (int c = 0; c < C; c++) m->resid[l + 1][i][c] = m->resid[l][i][c] + m->out[l][i][c];
    }
  }
  times(m->logits, &model->weights.output, m->resid[L][T - 1]);
}

/* ---- patching ---- */

static const struct {
  const char *name;
  int site;
  int64_t heads;
} sites[] = {{"hook_resid_pre", RESID, 0},
             {"hook_attn_out", OUT, 0},
             {"attn.hook_z", Z, H},
             {"attn.hook_pattern", PATTERN, H}};

typedef struct scene {
  att_runtime *runtime;
  att_model *model;
  int32_t clean[T], corrupted[T];
  numbers one, other;
} scene;

static void open_prompts(scene *s) {
  s->runtime = test_runtime_of(NULL, 2, NULL);
  s->model = test_random_model(s->runtime, TEST_BARE, 5);
  test_ids(s->clean, T, V, 3);
  memcpy(s->corrupted, s->clean, sizeof s->clean);
  s->corrupted[1] = (s->clean[1] + 7) % V;
  s->corrupted[T - 1] = (s->clean[T - 1] + 4) % V;
  read_all(&s->one, s->model, s->clean, NULL, (place){.site = NONE});
  read_all(&s->other, s->model, s->corrupted, NULL, (place){.site = NONE});
}

static void close_prompts(scene *s) {
  att_model_close(s->model);
  att_runtime_free(s->runtime);
}

static place place_of(int site, att_patch_grid grid, int64_t row, int64_t column) {
  if (grid == ATT_PATCH_LAYER_POSITION) return (place){site, row, -1, column};
  if (grid == ATT_PATCH_LAYER_HEAD) return (place){site, row, column, -1};
  return (place){site, row / H, row % H, column};
}

static double difference(const numbers *m) { return m->logits[3] - m->logits[8]; }

static void check_grid(const scene *s, int site, att_patch_grid grid) {
  att_patch_options options;
  att_patch_options_init(&options);
  options.site = sites[site].name, options.grid = grid;
  options.target = 3, options.versus = 8;
  int64_t rows, columns;
  float scores[L * H * T];
  att_patch_result result;
  assert_ok(att_patch_shape(&rows, &columns, s->model, T, &options));
  assert_ok(att_patch(att_view_of(scores, ATT_F32, 2, (int64_t[]){rows, columns}), &result,
                      s->model, s->clean, s->corrupted, T, &options));
  const double clean = difference(&s->one), corrupted = difference(&s->other);
  assert_true(fabs(result.clean - clean) < 1e-5 && fabs(result.corrupted - corrupted) < 1e-5);
  assert_int_equal(result.runs, rows * columns + 1);
  for (int64_t i = 0; i < rows * columns; i++) {
    numbers patched;
    const place p = place_of(sites[site].site, grid, i / columns, i % columns);
    read_all(&patched, s->model, s->corrupted, &s->one, p);
    const double want = (difference(&patched) - corrupted) / (clean - corrupted);
    if (!(fabs((double)scores[i] - want) < 1e-4)) /* logits of order 1 in single precision */
      fail_msg("%s, grid %d, cell %d: %.7g, not %.7g", sites[site].name, (int)grid, (int)i,
               (double)scores[i], want);
  }
}

static void test_a_cell_is_not_what_its_patch_moves(void **state) {
  (void)state;
  static scene s;
  open_prompts(&s);
  for (int site = 0; site < 4; site++)
    for (int grid = 0; grid < (sites[site].heads ? 3 : 1); grid++)
      check_grid(&s, site, (att_patch_grid)grid);
  close_prompts(&s);
}

static void test_bad_calls_are_named(void **state) {
  (void)state;
  static scene s;
  open_prompts(&s);
  att_patch_options options = {0};
  att_patch_result r;
  int64_t rows, columns;
  float scores[L * T];
  const att_view out = att_view_of(scores, ATT_F32, 2, (int64_t[]){L, T});
  assert_status(ATT_BAD_ARGUMENT, att_patch(out, &r, s.model, s.clean, s.corrupted, T, NULL));
  options.site = "hook_resid_pre";
  assert_status(ATT_BAD_ARGUMENT, att_patch(out, &r, s.model, s.clean, s.corrupted, T, &options));
  att_patch_options_init(&options);
  options.target = 3;
  assert_status(ATT_BAD_ARGUMENT, att_patch(out, &r, s.model, s.clean, s.clean, T, &options));
  assert_message_has("nothing to move");
  assert_status(ATT_BAD_SHAPE, att_patch(out, &r, s.model, s.clean, s.corrupted, T - 1, &options));
  assert_status(ATT_BAD_ARGUMENT, att_patch(out, NULL, s.model, s.clean, s.corrupted, T, &options));
  assert_status(ATT_BAD_ARGUMENT, att_patch(out, &r, s.model, NULL, s.corrupted, T, &options));
  assert_status(ATT_BAD_ARGUMENT, att_patch(out, &r, NULL, s.clean, s.corrupted, T, &options));
  options.target = V;
  assert_status(ATT_BAD_ARGUMENT, att_patch(out, &r, s.model, s.clean, s.corrupted, T, &options));
  options.target = 3, options.site = "hook_mlp_out"; /* of a model without one */
  assert_status(ATT_NOT_FOUND, att_patch(out, &r, s.model, s.clean, s.corrupted, T, &options));
  assert_message_has("hook_mlp_out");
  options.site = "hook_attn_out", options.grid = ATT_PATCH_LAYER_HEAD;
  assert_status(ATT_BAD_ARGUMENT, att_patch_shape(&rows, &columns, s.model, T, &options));
  assert_message_has("no heads");
  options.grid = ATT_PATCH_LAYER_POSITION, options.site = "attn.hook_result";
  assert_status(ATT_UNSUPPORTED, att_patch(out, &r, s.model, s.clean, s.corrupted, T, &options));
  assert_message_has("only looked at");
  close_prompts(&s);
}

/* ---- attribution ---- */

static void test_attribution_sums_the_axes_that_out_lacks(void **state) {
  (void)state;
  float g[8] = {1, 2, 3, 4, 5, 6, 7, 8}, a[8], b[8] = {0}, out[8];
  for (int i = 0; i < 8; i++) a[i] = (float)(i % 3); /* 0 1 2 0 1 2 0 1 */
  a[7] = b[7] = -INFINITY;                           /* a hidden score in both */
  const att_view views[3] = {att_view_of(g, ATT_F32, 3, (int64_t[]){2, 2, 2}),
                             att_view_of(a, ATT_F32, 3, (int64_t[]){2, 2, 2}),
                             att_view_of(b, ATT_F32, 3, (int64_t[]){2, 2, 2})};
  static const struct {
    int64_t shape[3];
    float want[4];
  } cases[] = {{{2, 1, 1}, {8, 17}},
               {{1, 2, 1}, {19, 6}},
               {{2, 2, 1}, {2, 6, 17, 0}},
               {{1, 1, 2}, {11, 14}},
               {{1, 1, 1}, {25}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const att_view to = att_view_of(out, ATT_F32, 3, cases[i].shape);
    assert_ok(att_attribution(to, views[0], views[1], views[2]));
    for (int64_t k = 0; k < att_view_count(&to); k++) assert_true(out[k] == cases[i].want[k]);
  }
  const att_view wrong = att_view_of(out, ATT_F32, 3, (int64_t[]){2, 3, 1});
  assert_status(ATT_BAD_SHAPE, att_attribution(wrong, views[0], views[1], views[2]));
  const att_view flat = att_view_select(wrong, 0, 0);
  assert_status(ATT_BAD_SHAPE, att_attribution(flat, views[0], views[1], views[2]));
  assert_status(ATT_BAD_ARGUMENT, att_attribution(wrong, views[0], views[1], att_view_none()));
  assert_message_has("corrupted");
  assert_status(ATT_BAD_SHAPE, att_attribution(wrong, views[0], flat, views[2]));
}

enum { N = 7, VOCAB = 50, BLOCKS = 2 }; /* both families have as many tokens */

typedef struct way {
  att_runtime *runtime;
  att_learner *learner;
  att_gradients *gradients;
  att_session *session;
  att_capture *runs[2]; /* clean, corrupted */
  int32_t ids[2 * N];   /* corrupted, twice: the learner's batch */
} way;

static const char *const back_sites[] = {"hook_resid_pre", "hook_attn_out",     "hook_mlp_out",
                                         "attn.hook_z",    "attn.hook_pattern", "attn.hook_q",
                                         "attn.hook_k",    "attn.hook_v"};

static att_capture *run_of(const way *w, const int32_t *ids) {
  att_session *session;
  att_capture *capture;
  assert_ok(att_session_create(&session, att_learner_model(w->learner), NULL));
  assert_ok(att_capture_create(&capture, session, "*", 0, 0));
  assert_ok(att_session_eval(session, ids, N));
  att_session_free(session);
  return capture;
}

/* Gradients of -log p of tokens 3 and 8 behind the corrupted prompt, a sequence each. */
static void open_way(way *w, const char *config) {
  att_learn_options options;
  att_learn_options_init(&options);
  options.batch = options.slices = 2, options.length = N;
  options.gradients_only = true;
  w->runtime = test_runtime_of(NULL, 2, NULL);
  char folder[64];
  test_make_folder(folder);
  test_write_model(w->runtime, folder, config, 9);
  assert_ok(att_learner_open(&w->learner, w->runtime, folder, &options));
  test_remove_folder(folder);
  assert_ok(att_gradients_create(&w->gradients, w->learner, "*", 0));
  int32_t targets[2 * N], clean[N];
  test_ids(w->ids, N, VOCAB, 4);
  memcpy(w->ids + N, w->ids, sizeof clean);
  memcpy(clean, w->ids, sizeof clean);
  clean[1] = (clean[1] + 5) % VOCAB, clean[4] = (clean[4] + 9) % VOCAB;
  for (int i = 0; i < 2 * N; i++) targets[i] = i == N - 1 ? 3 : i == 2 * N - 1 ? 8 : -1;
  att_step_result result;
  assert_ok(att_learner_gradients(w->learner, &(att_batch){w->ids, targets, NULL}, &result));
  w->runs[0] = run_of(w, clean), w->runs[1] = run_of(w, w->ids);
  assert_ok(att_session_create(&w->session, att_learner_model(w->learner), NULL));
}

static void close_way(way *w) {
  for (int i = 0; i < 2; i++) att_capture_free(w->runs[i]);
  att_session_free(w->session);
  att_gradients_free(w->gradients);
  att_learner_free(w->learner);
  att_runtime_free(w->runtime);
}

/* d of the corrupted prompt with x + step (clean - corrupted) at a place. */
static double moved(const way *w, const char *name, int64_t position, float step) {
  att_edit edits[2] = {{.op = ATT_EDIT_DELTA, .value = step, .run = w->runs[0]},
                       {.op = ATT_EDIT_DELTA, .value = -step, .run = w->runs[1]}};
  for (int i = 0; i < 2; i++) {
    snprintf(edits[i].at, sizeof edits[i].at, "%s", name);
    edits[i].positions = (att_range){position, position + 1};
  }
  att_edits *attached;
  assert_ok(att_session_truncate(w->session, 0));
  assert_ok(att_edits_create(&attached, w->session, edits, 2));
  assert_ok(att_session_eval(w->session, w->ids, N));
  const float *logits = att_session_logits(w->session).data;
  const double d = (double)logits[3] - (double)logits[8];
  att_edits_free(attached);
  return d;
}

/* A central difference over steps of h and 2 h, right up to the fifth order. */
static double slope(const way *w, const char *name, int64_t position) {
  const float h = 0.015625f;
  const double near = moved(w, name, position, h) - moved(w, name, position, -h);
  const double far = moved(w, name, position, 2 * h) - moved(w, name, position, -2 * h);
  return (8 * near - far) / 12 / (double)h;
}

/* By position: what one way back says of every place at once. The gradient of the logits'
 * difference is that of the two losses, whose mean the learner takes: 2 (g1 - g0). */
static void attribute(double *out, const way *w, const char *name) {
  char grad[80];
  att_view views[2], both;
  snprintf(grad, sizeof grad, "%s_grad", name);
  assert_ok(att_gradients_get(&both, w->gradients, grad));
  for (int i = 0; i < 2; i++) assert_ok(att_capture_get(&views[i], w->runs[i], name));
  const bool pairs = strstr(name, "pattern") != NULL;
  int64_t shape[3] = {pairs ? 1 : N, pairs ? N : 1, 1};
  float sums[2][N];
  for (int i = 0; i < 2; i++)
    assert_ok(att_attribution(att_view_of(sums[i], ATT_F32, views[0].ndim, shape),
                              att_view_select(both, 0, i), views[0], views[1]));
  for (int t = 0; t < N; t++) out[t] = 2 * ((double)sums[1][t] - (double)sums[0][t]);
}

static void test_attribution_is_the_slope_of_patching(void **state) {
  (void)state;
  static const char *const families[] = {TEST_GPT2, TEST_LLAMA};
  for (int f = 0; f < 2; f++) {
    way w;
    open_way(&w, families[f]);
    for (size_t site = 0; site < sizeof back_sites / sizeof *back_sites; site++)
      for (int l = 0; l < BLOCKS; l++) {
        char name[64];
        double got[N], most = 0;
        snprintf(name, sizeof name, "blocks.%d.%s", l, back_sites[site]);
        attribute(got, &w, name);
        for (int t = 0; t < N; t++) most = fmax(most, fabs(got[t]));
        for (int t = 0; t < N; t++) {
          const double want = slope(&w, name, t);
          /* A rounding of two logits of order 10 over the step. */
          if (!(fabs(got[t] - want) < 5e-5 + 2e-4 * most))
            fail_msg("model %d, %s, position %d: %.7g, not %.7g", f, name, t, got[t], want);
        }
      }
    close_way(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_cell_is_not_what_its_patch_moves),
      cmocka_unit_test(test_bad_calls_are_named),
      cmocka_unit_test(test_attribution_sums_the_axes_that_out_lacks),
      cmocka_unit_test(test_attribution_is_the_slope_of_patching),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
