/* The parameters of a model that learns, as one flat array of f32.
 *
 * Every weight has a place in it, row-major [rows, columns] in canonical layout
 * (model/weights.h), beginning at a multiple of 16. Gradients and the optimiser's
 * moments are arrays of the same form, so that what is done to all parameters is
 * a loop over numbers. A tied table occurs once; the gradient of its use as an
 * embedding has a place of its own at the end, for it is summed apart. */
#ifndef ATT_TRAIN_PARAMETERS_H
#define ATT_TRAIN_PARAMETERS_H

#include "model/checkpoint.h"

enum { ATT_PARAMETER_NAME = 64 };

typedef struct att_parameter {
  char name[ATT_PARAMETER_NAME]; /* "blocks.0.attn.q.weight" */
  att_slot slot;
  int64_t layer; /* -1: of the model */
  int64_t rows, columns, at;
  bool decays; /* a matrix or table; norms and biases do not */
} att_parameter;

typedef struct att_parameters {
  att_config config;
  int64_t n, count;   /* parameters, and numbers in them */
  int64_t floats;     /* of an array of values or moments */
  int64_t gradients;  /* of an array of gradients */
  int64_t tied_table; /* where the tied embedding's gradient begins */
  att_parameter *list;
} att_parameters;

att_status att_parameters_create(att_parameters *out, const att_runtime *runtime,
                                 const att_config *config);
void att_parameters_release(att_parameters *parameters, const att_runtime *runtime);

/* The weight's place in `array`, or NULL if the model has no such weight. */
float *att_parameter_in(const att_parameters *parameters, float *array, att_slot slot,
                        int64_t layer);

/* A view of its numbers in `array`: [rows, columns], or [rows] of a vector. */
att_view att_parameter_view(const att_parameter *parameter, float *array);

/* values: from a checkpoint; to the model's own layout. */
att_status att_parameters_read(const att_parameters *parameters, float *values,
                               const att_checkpoint *checkpoint);
void att_parameters_apply(const att_parameters *parameters, const float *values,
                          att_model_weights *weights, const att_runtime *runtime);

/* A checkpoint whose weights are `values`; closing it does nothing. */
typedef struct att_live_weights {
  const att_parameters *parameters;
  float *values;
} att_live_weights;
att_checkpoint att_live_checkpoint(att_live_weights *live, att_runtime *runtime, const char *family,
                                   const char *name);

#endif
