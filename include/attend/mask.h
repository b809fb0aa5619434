/* attend/mask.h — which key a query may see, as rules.
 *
 * A mask is a position for each query row and a list of rules; a key is
 * visible if every rule allows it. No rule: every key is visible. Rules never
 * become a matrix: a planner turns them into tiles that are skipped, full or
 * partial.
 *
 * Position: row i of sequence b stands at p = i + offset[b], where the offset
 * follows `align`: 0 (top-left), the sequence's key count minus its query
 * count (bottom-right; may be negative), or `offsets[b]` given. Key j stands
 * at position j, counted from the sequence's own first key (the first that all
 * rules "keys" leave). Causal, window, prefix and tree rules and ALiBi compare
 * positions; tables, documents, dense masks and biases are indexed by the place
 * in the tensor, wherever the first key lies. Of packed sequences rows and keys
 * count from the sequence's own beginning, in those tables as well.
 *
 *     att_mask mask = {.align = ATT_ALIGN_BOTTOM_RIGHT};
 *     att_mask_add(&mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
 *     att_mask_add(&mask, (att_mask_rule){.kind = ATT_MASK_WINDOW,
 *                                         .left = 127, .right = 0});
 */
#ifndef ATTEND_MASK_H
#define ATTEND_MASK_H

#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_mask_kind {
#define ATT_MASK(name, value, text, doc) ATT_MASK_##name = value,
#include "attend/masks.inc"
#undef ATT_MASK
} att_mask_kind;

typedef enum att_align {
  ATT_ALIGN_TOP_LEFT = 0,
  ATT_ALIGN_BOTTOM_RIGHT = 1,
  ATT_ALIGN_OFFSETS = 2
} att_align;

#define ATT_UNBOUNDED (-1) /* of a window's side */
#define ATT_MASK_MAX_RULES 8

/* One rule. Which fields a kind reads is written in masks.inc; the others must
 * be zero. Arrays and views are borrowed for the length of the call or plan
 * they are given to. */
typedef struct att_mask_rule {
  att_mask_kind kind;
  int64_t left, right;    /* bounds or sizes */
  const int64_t *starts;  /* [B] or NULL */
  const int64_t *lengths; /* [B] or NULL */
  att_view query_side;    /* a tensor over queries, or over pairs */
  att_view key_side;      /* a tensor over keys */
} att_mask_rule;

typedef struct att_mask {
  att_align align;
  const int64_t *offsets; /* [B], with ATT_ALIGN_OFFSETS; borrowed */
  int n_rules;
  att_mask_rule rules[ATT_MASK_MAX_RULES];
} att_mask;

/* Appends a rule. TOO_LARGE when the list is full, BAD_ARGUMENT for a kind
 * that is not in masks.inc. */
ATT_API att_status att_mask_add(att_mask *mask, att_mask_rule rule);

/* "causal", "window" …; "unknown" otherwise. Static string. */
ATT_API const char *att_mask_kind_name(att_mask_kind kind);

#ifdef __cplusplus
}
#endif
#endif
