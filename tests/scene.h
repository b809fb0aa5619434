/* A session of a model with a capture on it, and a text for it to read: what tests
 * of captures, edits and lenses begin with. Include support.h first. */
#ifndef ATT_TESTS_SCENE_H
#define ATT_TESTS_SCENE_H

#include "attend/capture.h"
#include "model.h"

typedef struct scene {
  att_runtime *runtime;
  att_model *model;
  att_session *session;
  att_capture *capture;
  const att_model_info *info;
  int32_t ids[64]; /* of no meaning; nothing is read yet */
} scene;

/* Of a scene that has a runtime and a model: the rest. */
static inline void start_scene(scene *s, int64_t chunk, const char *select) {
  s->info = att_model_describe(s->model);
  s->session = test_session(s->model, chunk, true);
  test_ids(s->ids, sizeof s->ids / sizeof *s->ids, s->info->vocab, 12);
  assert_ok(att_capture_create(&s->capture, s->session, select, 0, 0));
}

/* Of a random model. */
static inline void open_scene(scene *s, const char *config, int64_t chunk, const char *select) {
  s->runtime = test_runtime_of(NULL, 2, NULL);
  s->model = test_random_model(s->runtime, config, 11);
  start_scene(s, chunk, select);
}

static inline void close_scene(scene *s) {
  att_capture_free(s->capture);
  att_session_free(s->session);
  att_model_close(s->model);
  att_runtime_free(s->runtime);
}

/* What a capture keeps of a site of a layer, or of one outside of layers with -1. */
static inline att_status find_kept(att_view *view, const att_capture *capture, int64_t layer,
                                   const char *site) {
  char name[80];
  if (layer >= 0)
    snprintf(name, sizeof name, "blocks.%lld.%s", (long long)layer, site);
  else
    snprintf(name, sizeof name, "%s", site);
  return att_capture_get(view, capture, name);
}

/* The same, of a site that must be there. */
static inline att_view kept(const att_capture *capture, int64_t layer, const char *site) {
  att_view view;
  assert_ok(find_kept(&view, capture, layer, site));
  assert_int_equal(view.dtype, ATT_F32);
  return view;
}

/* Of pairs [H,T,S]: head h, query i, key j. */
static inline float pair_at(att_view view, int64_t h, int64_t i, int64_t j) {
  return ((const float *)view.data)[h * view.stride[0] + i * view.stride[1] + j * view.stride[2]];
}

#endif
