/* A pass: some sequences of a batch forward through the model, and back.
 *
 * The forward is that of inference (the same layers and kernels, so the same
 * bits) over whole sequences instead of a cache. It keeps what the way back
 * needs, or only the residual stream between blocks if blocks are to be computed
 * again. All memory is laid out once, for the largest pass. */
#ifndef ATT_TRAIN_PASS_H
#define ATT_TRAIN_PASS_H

#include "attend/backward.h"
#include "nn/backward.h"
#include "nn/tap.h"
#include "train/parameters.h"

/* What one block leaves for its way back; rows are those of the pass. */
typedef struct att_kept {
  float *x;             /* [rows,C] residual stream before the block */
  float *q, *k, *v, *z; /* [rows,H D], [rows,G D], turned */
  float *lse;           /* [sequences,H,T] */
  float *middle;        /* [rows,C] residual stream between the two parts */
  float *pre, *up;      /* [rows,F]; up only if gated */
} att_kept;

typedef struct att_pass_plan {
  att_runtime *runtime;
  const att_parameters *parameters;
  const att_model_weights *weights; /* packed, for the forward */
  const float *values;              /* row-major, for the way back */
  int64_t sequences, length;        /* of the largest pass */
  int64_t slices;                   /* of the largest pass */
  bool recompute, documents;
  double dropout;
  bool measuring; /* only `bytes` are found out; nothing can be computed */

  att_kept *kept;                   /* [layers]; if recomputed they share all but x */
  float *last;                      /* [rows,C] the stream behind the last block */
  float *normed, *branch, *hidden;  /* scratch of the forward */
  float *logits, *loss;             /* [rows,V], [rows] */
  float *dstream, *dnormed, *terms; /* [rows,C] */
  float *dq, *dk, *dv, *dz;         /* like q, k, v, z */
  float *dhidden, *dup;             /* [rows,F] */
  int32_t *positions, *order;       /* [rows] */
  int64_t *starts;                  /* [largest table + 1] */
  float *memory;                    /* all of the above but kept */
  int64_t floats;
  att_rope_table rope, back; /* back: turned the other way round */
  att_sdpa_plan *attention;  /* of every layer */
  att_sdpa_backward_plan *attention_back;
  att_backward way_back;
  int64_t bytes; /* of everything */
} att_pass_plan;

/* `plan` has runtime … measuring set. BAD_ARGUMENT, TOO_LARGE, OUT_OF_MEMORY. */
att_status att_pass_plan_create(att_pass_plan *plan);
void att_pass_plan_release(att_pass_plan *plan);

/* Bytes that keeping activations takes more than computing them again. */
int64_t att_pass_kept_bytes(const att_pass_plan *plan);

/* One pass over `sequences` sequences of `length` tokens. */
typedef struct att_pass {
  int64_t sequences;
  int64_t first;            /* the first one's number in its batch, for dropout */
  const int32_t *tokens;    /* [sequences, length] */
  const int32_t *targets;   /* the same; < 0: no loss there */
  const int32_t *documents; /* the same, with plan->documents: who may see whom */
  uint64_t seed;            /* of dropout; 0 with training false */
  bool training;            /* dropout is on */
  const int64_t *cuts;      /* [slices + 1] rows at which slices begin */
  int64_t slices;
  const att_tap *tap; /* sees gradients by site, and the attention before its own; or NULL */
} att_pass;

/* plan->loss [rows] and, unless scale is 0, plan->logits = gradient of scale
 * times their sum. */
att_status att_pass_forward(att_pass_plan *plan, const att_pass *pass, float scale);

/* The forward's block l once more into plan->kept[l]. */
att_status att_pass_block(att_pass_plan *plan, const att_pass *pass, int64_t l, bool again);

/* Writes every gradient (att_parameters.gradients floats), after a forward. */
att_status att_pass_backward(att_pass_plan *plan, const att_pass *pass, float *gradients);

/* After a forward: the first thing in it that is not finite, by its site's name. */
bool att_pass_find_bad(char out[ATT_PARAMETER_NAME], const att_pass_plan *plan,
                       const att_pass *pass);

/* ---- shared by the two directions ---- */

int64_t att_pass_rows(const att_pass_plan *plan, const att_pass *pass);

/* The arguments of layer l's attention over the sequences from `sequence` on:
 * all of them or, where dropout must know each one's number, one. */
void att_pass_attention(att_sdpa_args *args, const att_pass_plan *plan, const att_pass *pass,
                        int64_t l, int64_t sequence);
/* Sequences of one attention call. */
int64_t att_pass_together(const att_pass_plan *plan, const att_pass *pass);

/* Places of dropout. */
enum { ATT_DROP_EMBED = 0, ATT_DROP_ATTENTION = 1, ATT_DROP_FFN = 2 };
void att_pass_drop(const att_pass_plan *plan, const att_pass *pass, int64_t l, int place, float *x);

/* y += x over [rows, C]. */
void att_pass_add(const att_pass_plan *plan, const att_pass *pass, float *y, const float *x);

#endif
