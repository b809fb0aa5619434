/* Mask rules as the attention code sees them.
 *
 * Coordinates: inside a sequence the visible keys are numbered r = 0 … n-1
 * from the sequence's own first key; r is also the key's position. j = r +
 * start is its index in tensors over keys. A rule narrows an interval of r and,
 * where an interval cannot say it, hides single keys. Rules compose by
 * intersection, so each one is applied after the other. */
#ifndef ATT_ATTENTION_MASK_H
#define ATT_ATTENTION_MASK_H

#include "attend/mask.h"
#include "base/status.h"

/* Sizes that rules check their tensors against. */
typedef struct att_mask_sizes {
  int64_t b, h, t, s; /* largest query and key counts */
} att_mask_sizes;

/* One query row. */
typedef struct att_mask_query {
  int64_t b, h, i;
  int64_t position;
  int64_t t, n;  /* rows and keys of the sequence */
  int64_t start; /* j of its first key */
} att_mask_query;

/* What a rule can do; each function may be NULL. */
typedef struct att_mask_ops {
  /* Everything about the rule that can be told without reading tensors. */
  att_status (*check)(const att_mask_rule *rule, const att_mask_sizes *sizes);
  /* What can be told only from the contents of arrays [B] and tables of rows,
   * for sequence b with t rows and `keys` keys in its buffer. */
  att_status (*contents)(const att_mask_rule *rule, int64_t b, int64_t t, int64_t keys);
  /* Narrows [*low, *high) to a range outside which nothing is visible. */
  void (*interval)(const att_mask_rule *rule, const att_mask_query *query, int64_t *low,
                   int64_t *high);
  /* Clears visible[r - low] of hidden keys low <= r < high. NULL: the interval
   * says it all. */
  void (*hide)(const att_mask_rule *rule, const att_mask_query *query, int64_t low, int64_t high,
               uint8_t *visible);
  /* The caller's own bytes that say the same as `hide` for this row and the next ones of
   * its head: of key r at [r], not 0 where it is visible, *row bytes to the next row's.
   * NULL if there are none. Such a rule may leave the function out. */
  const uint8_t *(*bytes)(const att_mask_rule *rule, const att_mask_query *query, int64_t *row);
} att_mask_ops;

#define ATT_MASK(NAME, value, name, doc) extern const att_mask_ops att_mask_##name;
#include "attend/masks.inc"
#undef ATT_MASK

/* Checks all rules. BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE. */
att_status att_mask_check(const att_mask *mask, const att_mask_sizes *sizes);

/* Checks the contents that all rules have for sequence b. BAD_ARGUMENT. */
att_status att_mask_check_contents(const att_mask *mask, int64_t b, int64_t t, int64_t keys);

/* True if some rule hides single keys inside its interval. */
bool att_mask_has_holes(const att_mask *mask);

/* The interval that all rules leave of [0, n); empty is low = high = 0. */
void att_mask_interval(const att_mask *mask, const att_mask_query *query, int64_t *low,
                       int64_t *high);

/* visible[r - low] = 1 or 0 for low <= r < high, holes only. */
void att_mask_visible(const att_mask *mask, const att_mask_query *query, int64_t low, int64_t high,
                      uint8_t *visible);

/* Bytes that say the same as they lie in the caller's memory, if one rule alone has
 * holes and keeps them so: not 0 at [r] where key r is visible, *row bytes from row to
 * row of the head. NULL otherwise. */
const uint8_t *att_mask_bytes(const att_mask *mask, const att_mask_query *query, int64_t *row);

/* Strides of a tensor broadcast from the right to `ndim` dimensions of the
 * given sizes: 0 where it has size 1 or no such dimension. BAD_SHAPE. */
att_status att_broadcast(int64_t *strides, const att_view *view, int ndim, const int64_t *sizes,
                         const char *what);

#endif
