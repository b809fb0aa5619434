/* attend/train.h — models that learn.
 *
 *   loss  = mean over targets t >= 0 of -log softmax(logits)[t]
 *   g     = d loss / d w, times min(1, clip / |g|) over all parameters together
 *   m     = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
 *   w     = w (1 - rate decay) - rate (m / (1 - beta1^n)) / (sqrt(v / (1 - beta2^n)) + eps)
 *
 * A batch is `batch` sequences of `length` tokens. It is cut into slices whose
 * gradients are added as a fixed tree, so the bits of a step depend neither on
 * threads nor on how many slices a pass takes at once. Matrices and tables decay,
 * norms and biases do not.
 *
 *     att_learn_options options;
 *     att_learn_options_init(&options);
 *     att_learner *learner;
 *     att_learner_open(&learner, runtime, "model-folder", &options);
 *     att_learner_step(learner, &batch, 1e-3, &result);     // as often as wanted
 *     att_learner_save(learner, "checkpoint", NULL);
 */
#ifndef ATTEND_TRAIN_H
#define ATTEND_TRAIN_H

#include "attend/convert.h"
#include "attend/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_learner att_learner;

typedef struct att_learn_options {
  size_t struct_size;    /* set by att_learn_options_init */
  int64_t batch, length; /* default 8 sequences of 256 tokens */
  int64_t slices;        /* 1 … 64, default 8 */
  int64_t pass_slices;   /* most slices that are computed at once, 0 (default):
                            all. Fewer take less memory; the bits are the same */
  bool recompute;        /* activations are computed again instead of kept */
  bool documents;        /* tokens see their own document only */
  bool gradients_only;   /* no optimiser: att_learner_step is refused */
  double dropout;        /* of embeddings, weights and branches; default 0 */
  double beta1, beta2;   /* 0.9, 0.95 */
  double eps;            /* 1e-8 */
  double decay;          /* 0.1 */
  double clip;           /* 1; 0: gradients are not clipped */
  uint64_t seed;         /* of dropout */
} att_learn_options;

ATT_API void att_learn_options_init(att_learn_options *options);

/* A learner for the model at `path` (whatever att_model_open reads; NULL: the
 * default built-in one), or for a new one as `model` describes (att_init_model draws the
 * same). Families gpt2 and llama, and models built of the same parts; UNSUPPORTED
 * says which part is not. `options` NULL: defaults. Takes all memory that steps
 * need. BAD_ARGUMENT, OUT_OF_MEMORY, TOO_LARGE, and as att_model_open. */
ATT_API att_status att_learner_open(att_learner **out, att_runtime *runtime, const char *path,
                                    const att_learn_options *options);
ATT_API att_status att_learner_create(att_learner **out, att_runtime *runtime,
                                      const att_init_options *model,
                                      const att_learn_options *options);
ATT_API void att_learner_free(att_learner *learner);

/* Arrays [batch, length]. targets[i] is what follows tokens[i]; negative ones are
 * ignored. `documents` numbers the document of each token, only with that option. */
typedef struct att_batch {
  const int32_t *tokens, *targets, *documents;
} att_batch;

typedef struct att_step_result {
  double loss;    /* before the step; 0 without any target */
  double norm;    /* of the gradient, before it is clipped */
  int64_t tokens; /* targets that counted */
} att_step_result;

/* Loss and gradients; weights stay. Allocates nothing. BAD_ARGUMENT (an id
 * outside the vocabulary, with its place); DIVERGED (not finite; the message
 * names the first tensor). */
ATT_API att_status att_learner_gradients(att_learner *learner, const att_batch *batch,
                                         att_step_result *result);

/* The same and one step of the optimiser. After a failure weights and optimiser
 * are as before. */
ATT_API att_status att_learner_step(att_learner *learner, const att_batch *batch, double rate,
                                    att_step_result *result);

/* Loss without dropout and gradients. */
ATT_API att_status att_learner_evaluate(att_learner *learner, const att_batch *batch,
                                        att_step_result *result);

/* The model as it is now; usable by sessions between steps, not during one. */
ATT_API const att_model *att_learner_model(const att_learner *learner);

/* Steps taken, those before a resume too. */
ATT_API int64_t att_learner_steps(const att_learner *learner);

/* Bytes: of everything; of the activations among them; and what those would be
 * with the other choice of `recompute`. */
ATT_API int64_t att_learner_bytes(const att_learner *learner);
ATT_API int64_t att_learner_activation_bytes(const att_learner *learner);
ATT_API int64_t att_learner_activation_bytes_other(const att_learner *learner);

/* Parameter `index`, 0 … count-1: its name ("blocks.0.attn.q.weight"), its values
 * and the gradient of the last step or att_learner_gradients, both [rows,
 * columns] or [rows] f32. Borrowed. Any output may be NULL. BAD_ARGUMENT. */
ATT_API int64_t att_learner_count(const att_learner *learner);
ATT_API att_status att_learner_parameter(const char **name, att_view *value, att_view *gradient,
                                         const att_learner *learner, int64_t index);

/* `see` is called with the gradient at every site (attend/sites.h) that the way
 * back passes: "blocks.1.attn.hook_q_grad", rows of the pass first. NULL: no more. */
typedef void att_gradient_fn(const char *name, const att_view *gradient, void *payload);
ATT_API void att_learner_observe(att_learner *learner, att_gradient_fn *see, void *payload);

/* Writes a folder: the model (config.json, model.safetensors, and a copy of the
 * tokenizer.json at `tokenizer` unless NULL), optimizer.safetensors and
 * learner.json, which holds the settings, a checksum of each file, and `note`, a
 * line of the caller's (NULL: none). It appears under its name when complete and
 * on the disk, or not at all. IO, OUT_OF_MEMORY, UNSUPPORTED. */
ATT_API att_status att_learner_save(att_learner *learner, const char *folder, const char *tokenizer,
                                    const char *note);

/* Takes weights, moments and steps from such a folder, so that the next steps are,
 * bit for bit, those that would have followed. CORRUPT (a file that is not what
 * was written, by name), UNSUPPORTED (other settings, another numerics version or
 * class of bits), NOT_FOUND. After a failure the learner is as before, unless it
 * was IO. *note (may be NULL) is the line, borrowed until the next call. */
ATT_API att_status att_learner_resume(att_learner *learner, const char *folder, const char **note);

#ifdef __cplusplus
}
#endif
#endif
