/* One query row in the terms of the definition: its keys and values as strided
 * f32, its query, and what the rules say about it. */
#include "attention/row.h"

#include "attention/result.h"
#include "kv/foreign.h"

static bool needs_copy(const att_problem *p) {
  return p->args->cache || p->args->pages || p->dtype != ATT_F32;
}

/* Key or value j of a head, from where the caller keeps them. */
static void copy_row(const att_problem *p, const att_sequence *s, const att_view *view,
                     int64_t head, int64_t j, float *to) {
  const att_pages *pages = p->args->pages;
  int64_t at = pages ? att_pages_at(pages, view, s->cached, head, s->k_first + j)
                     : att_view_at(view, s->batch, head, s->k_first + j);
  for (int64_t d = 0; d < view->shape[3]; d++)
    to[d] = att_load_f32(view->data, at + d * view->stride[3], p->dtype);
}

att_row_memory att_row_lay_out(att_workspace *workspace, const att_problem *p) {
  int64_t copy = needs_copy(p) ? p->s : 0, f = sizeof(float), s = p->s + 16;
  return (att_row_memory){
      .q = att_workspace_take(workspace, p->d, f),
      .k = att_workspace_take(workspace, copy * p->d, f),
      .v = att_workspace_take(workspace, copy * p->dv, f),
      .bias = att_workspace_take(workspace, s, f),
      .keep = att_workspace_take(workspace, p->args->dropout > 0.0 ? s : 0, f),
      .visible = att_workspace_take(workspace, p->holes ? s : 0, 1),
  };
}

void att_row_find_keys(const att_problem *p, const att_sequence *s, int64_t head, att_row_memory *m,
                       att_attention_row *row) {
  const att_sdpa_args *a = p->args;
  if (a->cache) {
    att_result_cache_rows(a->cache, a->cache_layer, s->cached, head, s->k_first, s->n, m->k, m->v);
  } else if (needs_copy(p)) {
    for (int64_t j = 0; j < s->n; j++) {
      copy_row(p, s, a->pages ? &a->pages->k : &a->k, head, j, m->k + j * p->d);
      copy_row(p, s, a->pages ? &a->pages->v : &a->v, head, j, m->v + j * p->dv);
    }
  } else {
    row->k = (const float *)a->k.data + att_view_at(&a->k, s->batch, head, s->k_first);
    row->v = (const float *)a->v.data + att_view_at(&a->v, s->batch, head, s->k_first);
    row->k_row = a->k.stride[2], row->k_col = a->k.stride[3];
    row->v_row = a->v.stride[2], row->v_col = a->v.stride[3];
    return;
  }
  row->k = m->k, row->v = m->v;
  row->k_row = p->d, row->v_row = p->dv;
  row->k_col = row->v_col = 1;
}

void att_row_find_rules(const att_problem *p, const att_sequence *s, int64_t b, int64_t h,
                        int64_t i, att_row_memory *m, att_attention_row *row) {
  const att_sdpa_args *a = p->args;
  att_mask_query query = att_problem_query(p, s, b, h, i);
  att_mask_interval(&a->mask, &query, &row->low, &row->high);
  row->position = query.position;
  row->visible = NULL;
  if (p->holes) {
    att_mask_visible(&a->mask, &query, row->low, row->high, m->visible + row->low);
    row->visible = m->visible;
  }
  row->bias = NULL;
  if (a->bias.data) {
    int64_t at = b * p->bias_stride[0] + h * p->bias_stride[1] + i * p->bias_stride[2];
    for (int64_t r = row->low; r < row->high; r++)
      m->bias[r] =
          att_load_f32(a->bias.data, at + (r + s->start) * p->bias_stride[3], a->bias.dtype);
    row->bias = m->bias;
    row->bias_col = 1;
  }
  row->slope =
      a->alibi_slopes.data
          ? att_load_f32(a->alibi_slopes.data, h * a->alibi_slopes.stride[0], a->alibi_slopes.dtype)
          : 0.0f;
  row->keep = NULL;
  if (a->dropout > 0.0) {
    for (int64_t r = row->low; r < row->high; r++) m->keep[r] = att_dropout_factor(a, b, h, i, r);
    row->keep = m->keep;
  }
}

void att_row_load(const att_view *view, const att_sequence *s, int64_t h, int64_t i, float *to) {
  int64_t at = att_view_at(view, s->batch, h, s->q_first + i);
  for (int64_t d = 0; d < view->shape[3]; d++)
    to[d] = att_load_f32(view->data, at + d * view->stride[3], view->dtype);
}
