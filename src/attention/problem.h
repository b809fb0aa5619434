/* A call of attention, checked and resolved: sizes, numbers and, for each
 * sequence, where its rows and keys lie. Everything behind this point trusts
 * it. */
#ifndef ATT_ATTENTION_PROBLEM_H
#define ATT_ATTENTION_PROBLEM_H

#include "attend/sdpa.h"
#include "attention/mask.h"

/* Largest number of batch members, heads, queries, keys and features: the
 * distance of two positions then fits an int32_t, all counts an int64_t. */
#define ATT_MAX_SIZE ((int64_t)1 << 30)

typedef struct att_problem {
  const att_sdpa_args *args;
  int64_t b, h, g, t, s, d, dv; /* t, s: largest of a sequence */
  int64_t group;                /* query heads per key/value head */
  int64_t block, span;
  double scale;           /* resolved */
  double softcap;         /* INFINITY: none */
  att_dtype dtype;        /* of k and v, or of the cache */
  int64_t bias_stride[4]; /* b, h, i, j */
  bool holes;             /* the mask hides keys inside intervals */
} att_problem;

/* One sequence: its query rows and its keys. */
typedef struct att_sequence {
  int64_t batch;      /* index into the batch dimension of tensors */
  int64_t key_batch;  /* of column sums: packed queries may have keys of their own */
  int64_t q_first, t; /* rows q_first … q_first+t-1 of the T dimension */
  int64_t k_first, n; /* keys k_first … k_first+n-1 of the S dimension */
  int64_t start;      /* of key 0 counted from where the sequence begins in S */
  int64_t offset;     /* position of row 0 */
  int64_t cached;     /* which sequence of the cache or of the page table, if there is one */
} att_sequence;

/* Checks everything but the contents of tensors and of arrays [B]. */
att_status att_problem_resolve(att_problem *out, const att_sdpa_args *args);

/* Its part about what is written: shapes, types, no element named twice. */
att_status att_problem_check_outputs(const att_problem *problem);

/* None of n (at most 8) outputs meets another of them, an input of the call or
 * one of `more` tensors that are read. */
typedef struct att_named_view {
  const char *name;
  const att_view *view;
} att_named_view;
att_status att_problem_check_apart(const att_problem *problem, const att_named_view *outputs, int n,
                                   const att_named_view *more, int n_more);

/* Sequence b. Reads offsets, lengths, starts and cu arrays, whose contents
 * att_problem_check_sequences has verified. */
att_sequence att_problem_sequence(const att_problem *problem, int64_t b);

/* Verifies the contents of those arrays before anything is read through them. */
att_status att_problem_check_sequences(const att_problem *problem);

/* The query of row i (0 … t-1) of head h. */
att_mask_query att_problem_query(const att_problem *problem, const att_sequence *sequence,
                                 int64_t b, int64_t h, int64_t i);

/* Element (b, h, row, column) of a view [B,H,T,·]; rows count over the packed
 * dimension. */
int64_t att_view_at(const att_view *view, int64_t b, int64_t h, int64_t row);

/* One element as f32. */
float att_load_f32(const void *data, int64_t at, att_dtype dtype);
void att_store_f32(void *data, int64_t at, float value, att_dtype dtype);

/* Dropout factor of a weight: 0, or 1/(1-p). Philox4x32-10 with key = seed and
 * counter (b, h, i, j), first word. */
float att_dropout_factor(const att_sdpa_args *args, int64_t b, int64_t h, int64_t i, int64_t j);

#endif
