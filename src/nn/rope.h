/* Rotary positions: pair (i, i+pairs) of a head at position p is turned by
 *
 *   angle(p, i) = p * theta^(-i / pairs) / divisor(i)
 *
 * so that q . k depends on positions only through their difference. Scaled
 * variants for longer contexts (linear, llama3, yarn, longrope) differ in the
 * divisors, yarn and longrope also in a factor on the turned vectors. What a
 * variant makes of the length of a text is fixed by the length that a session is
 * made for: keys once turned stay as they are, however the text is read.
 *
 * Angles, sines and cosines are float64 and rounded once. Divisors are float32
 * because that is how files that store them do: a checkpoint gives the same
 * bits whether its format brings the table or the settings it follows from. */
#ifndef ATT_NN_ROPE_H
#define ATT_NN_ROPE_H

#include <stdbool.h>

#include "base/runtime.h"

typedef enum att_rope_scaling {
  ATT_ROPE_PLAIN,    /* divisor 1 */
  ATT_ROPE_LINEAR,   /* divisor = factor */
  ATT_ROPE_LLAMA3,   /* long waves divided by factor, short ones kept, a blend between */
  ATT_ROPE_YARN,     /* the same idea with the border counted in turns */
  ATT_ROPE_TABLE,    /* the checkpoint brings the divisors */
  ATT_ROPE_LONGROPE, /* it brings two tables, one for longer contexts than the original */
  ATT_ROPE_DYNAMIC   /* theta grows with the context beyond the original */
} att_rope_scaling;

typedef struct att_rope {
  int64_t pairs; /* half of the rotated part of a head */
  double theta;
  att_rope_scaling scaling;
  double factor;
  double original;             /* context the model was first trained for */
  double low, high;            /* llama3: original/high … original/low is the blend */
  double beta_fast, beta_slow; /* yarn: turns over the original context */
  bool truncate;               /* yarn: the border falls on whole pairs */
  double magnitude;            /* factor on cosine and sine; 1 unless yarn or longrope */
} att_rope;

/* out [pairs] by the settings; all 1 where the checkpoint brings them. */
void att_rope_divisors(float *out, const att_rope *rope);

/* The rotation of a context of that length: plain, if it was dynamic. */
att_rope att_rope_at_length(const att_rope *rope, int64_t context);

/* longrope's usual magnitude, sqrt(1 + ln(factor) / ln(original)), 1 for factors
 * up to 1, in f32 as files keep it. */
double att_rope_long_magnitude(double factor, double original);

/* yarn's usual magnitude, 0.1 ln(factor) + 1. */
double att_rope_yarn_magnitude(double factor);

/* Cosines and sines [positions, pairs]. */
typedef struct att_rope_table {
  float *cosine, *sine;
  int64_t positions, pairs;
} att_rope_table;

/* TOO_LARGE, OUT_OF_MEMORY. Cost: 2 * positions * pairs float64 functions. */
att_status att_rope_table_create(att_rope_table *out, const att_runtime *runtime,
                                 const att_rope *rope, const float *divisors, int64_t positions);
void att_rope_table_release(att_rope_table *table, const att_runtime *runtime);

/* Turns x [rows, heads, dim] in place; row r stands at position first + r. */
void att_rope_forward(const att_runtime *runtime, const att_rope_table *table, float *x,
                      int64_t rows, int64_t heads, int64_t dim, int64_t first);

#endif
