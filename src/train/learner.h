/* Inside of an att_learner. */
#ifndef ATT_TRAIN_LEARNER_H
#define ATT_TRAIN_LEARNER_H

#include "attend/train.h"
#include "model/model.h"
#include "train/optimizer.h"
#include "train/pass.h"

enum { ATT_SLICES_MOST = 64, ATT_LEVELS_MOST = 8 };

struct att_learner {
  att_runtime *runtime;
  bool measuring; /* of att_learner_measure */
  att_learn_options options;
  char family[32];
  att_parameters parameters;
  float *values;
  att_model *model; /* the same weights packed; owned */
  att_optimizer optimizer;

  /* Gradients of finished subtrees of slices, by level; while a pass works, the
   * one it writes. Which memory is which level changes. */
  float *gradient[ATT_LEVELS_MOST];
  int levels;
  double *norm_scratch;
  double slice_loss[ATT_SLICES_MOST];

  att_pass_plan plan;
  int64_t cuts[ATT_SLICES_MOST + 1];
  int64_t pass_first; /* the first sequence of the pass that runs */
  att_tap *taps;      /* who looks at the way back */
  att_tap tap;        /* of att_learner_observe */
  att_gradient_fn *see;
  void *see_payload;
  int64_t bytes;
  char *note; /* of the last resume */
  int64_t note_bytes;
};

/* A learner that att_learner_open would make of `path` or, if `model` is not NULL,
 * att_learner_create of that, but without weights and memory: it tells its parameters and
 * bytes, and is freed. */
att_status att_learner_measure(att_learner **out, att_runtime *runtime, const char *path,
                               const att_init_options *model, const att_learn_options *options);

/* The first parameter of `array` with a number that is not finite, or NULL. */
const att_parameter *att_learner_find_bad(const att_learner *learner, const float *array);

/* ---- looking ---- */

enum { ATT_GRADIENT_NAME = ATT_PARAMETER_NAME + 8 };

/* "blocks.0.attn.hook_q_grad" */
void att_gradient_name(char out[ATT_GRADIENT_NAME], att_site site, int64_t layer);

/* `tap`, which is the caller's, sees every way back until it is detached. */
void att_learner_attach(att_learner *learner, att_tap *tap);
void att_learner_detach(att_learner *learner, const att_tap *tap);

/* ---- checkpoints ---- */

enum { ATT_CHECKPOINT_FILES = 4, ATT_NOTE_MOST = 4096, ATT_SETTINGS_TEXT = 1024 };
/* model.safetensors, config.json, optimizer.safetensors, tokenizer.json */
extern const char *const att_checkpoint_files[ATT_CHECKPOINT_FILES];

/* FNV-1a over 8 bytes at a time, then the rest one by one. */
uint64_t att_checksum(const void *bytes, size_t n);
att_status att_checksum_file(uint64_t *out, const char *path);

/* The settings that the bits of a step depend on, as members of a JSON object. */
void att_learner_settings(char out[ATT_SETTINGS_TEXT], const att_learner *learner);

#endif
