/* attend/pattern.h — what attention weights do, in numbers.
 *
 * Pure functions of a pattern, a matrix of weights whose rows are queries: nothing is
 * changed, and the same pattern gives the same numbers. patterns.inc lists the
 * measures. They describe a pattern; whether a head matters, an edit shows (edit.h).
 */
#ifndef ATTEND_PATTERN_H
#define ATTEND_PATTERN_H

#include "attend/runtime.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_pattern {
#define ATT_PATTERN(name, value, text, brief, needs, doc) ATT_PATTERN_##name = value,
#include "attend/patterns.inc"
#undef ATT_PATTERN
  ATT_PATTERN_COUNT
} att_pattern;

/* "induction", "ind" for narrow columns, and one line of explanation. */
ATT_API const char *att_pattern_name(att_pattern measure);
ATT_API const char *att_pattern_brief(att_pattern measure);
ATT_API const char *att_pattern_about(att_pattern measure);

typedef struct att_pattern_options {
  size_t struct_size;     /* set by att_pattern_options_init */
  int64_t first_row;      /* rows before it do not count; default 1: row 0 sees itself alone */
  bool without_first_key; /* leaves key 0 out and scales the rest of a row to sum 1 */
  bool ratio;             /* of a mass: sum(A P) / sum(A) over all rows together, P being 1
                             where the measure looks, in place of the mean of rows */
} att_pattern_options;

ATT_API void att_pattern_options_init(att_pattern_options *options);

/* A number together with how it came about. */
typedef struct att_pattern_value {
  double value; /* NaN where no row counted */
  int64_t rows; /* that counted */
  att_pattern_options options;
} att_pattern_value;

/* One measure of weights [T,S], f32, any strides. `tokens` [T] may be NULL where the
 * measure needs none; `options` NULL: defaults. A row counts if it has what the measure
 * looks for. BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE. Cost T·S. */
ATT_API att_status att_pattern_measure(att_pattern_value *out, att_pattern measure,
                                       att_view weights, const int32_t *tokens,
                                       const att_pattern_options *options);

/* Mean of A[i, i - offset] over rows from `first_row` on: with offset R - 1 and row R on
 * R random tokens that are there twice, the usual probe of induction. */
ATT_API att_status att_pattern_diagonal(att_pattern_value *out, att_view weights, int64_t offset,
                                        int64_t first_row);

/* out [W,V] f32: weights [T,S] between words in place of tokens,
 *     out[a,b] = mean over queries i of word a of the sum over keys j of word b of A[i,j];
 * rows sum to what they did. query_word [T] and key_word [S] say whose token is whose, words
 * numbered from 0 in the order of their tokens. BAD_ARGUMENT (words without tokens, or out of
 * order), BAD_SHAPE, BAD_DTYPE, OUT_OF_MEMORY. Sums in double. Cost T·S. */
ATT_API att_status att_pattern_words(att_view out, att_runtime *runtime, att_view weights,
                                     const int64_t *query_word, const int64_t *key_word);

/* Heads of a layer as one matrix, before layers are multiplied. */
typedef enum att_rollout_heads {
  ATT_ROLLOUT_MEAN,
  ATT_ROLLOUT_MAX,
  ATT_ROLLOUT_MIN
} att_rollout_heads;

typedef struct att_rollout_options {
  size_t struct_size;      /* set by att_rollout_options_init */
  att_rollout_heads heads; /* default mean */
  double residual;         /* share of the identity, in [0,1], default 0.5 */
  double discard;          /* in [0,1), default 0: of a layer's n numbers over 0 those smaller
                              than the floor(discard n)-th in ascending order become 0 */
} att_rollout_options;

ATT_API void att_rollout_options_init(att_rollout_options *options);

/* out [T,T] f32 = R of the last layer, where
 *   M_l = heads of layer l as one, its smallest weights discarded,
 *   A_l = rows of (1 - residual) M_l + residual I, each scaled to sum 1,
 *   R_0 = A_0,  R_l = A_l R_(l-1).
 * patterns[l] is [H,T,T] f32; `options` NULL: defaults. It says nothing of values
 * and feed-forward parts, and drifts to position 0 in causal models.
 * BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, OUT_OF_MEMORY. Cost L·(H·T² + T³). */
ATT_API att_status att_rollout(att_view out, att_runtime *runtime, const att_view *patterns,
                               int64_t layers, const att_rollout_options *options);

#ifdef __cplusplus
}
#endif
#endif
