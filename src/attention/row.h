/* One query row in the terms of the definition (kernels/kernels.h,
 * att_attention_row): shared by the forward by rows and the backward. */
#ifndef ATT_ATTENTION_ROW_H
#define ATT_ATTENTION_ROW_H

#include "attention/plan.h"
#include "kernels/kernels.h"

/* k and v hold a head's keys and values as f32 rows where the caller's are in
 * another type, a cache or pages. */
typedef struct att_row_memory {
  float *q, *k, *v, *bias, *keep;
  uint8_t *visible;
} att_row_memory;

att_row_memory att_row_lay_out(att_workspace *workspace, const att_problem *problem);

/* Keys and values of a head: fills row->k, v and their strides. */
void att_row_find_keys(const att_problem *problem, const att_sequence *sequence, int64_t head,
                       att_row_memory *memory, att_attention_row *row);

/* What mask, bias, ALiBi and dropout say about row i of head h. */
void att_row_find_rules(const att_problem *problem, const att_sequence *sequence, int64_t b,
                        int64_t h, int64_t i, att_row_memory *memory, att_attention_row *row);

/* Row i of head h of a view [B,H,T,·] as adjacent f32. */
void att_row_load(const att_view *view, const att_sequence *sequence, int64_t h, int64_t i,
                  float *to);

#endif
