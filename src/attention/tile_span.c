/* Keys and values of a span in the micro-kernel's layout, and what the rules
 * say about a tile. */
#include <string.h>

#include "attention/dropout.h"
#include "attention/tiles.h"
#include "base/alloc.h"
#include "kv/cache.h"
#include "kv/foreign.h"

/* 16-bit numbers are widened once for this many rows or more; fewer widen while
 * they read. */
#define WIDEN_ROWS 16

void att_tile_pack(const att_kernels *kernels, float *to, const void *from, int64_t skip,
                   att_dtype dtype, const att_pack *how) {
  switch (dtype) {
  case ATT_F16: kernels->pack_f16(to, (const uint16_t *)from + skip, how); break;
  case ATT_BF16: kernels->pack_bf16(to, (const uint16_t *)from + skip, how); break;
  default: kernels->pack_f32(to, (const float *)from + skip, how); break;
  }
}

/* n values from `from` + skip with the given strides. */
static void load_values(att_tile_work *w, const void *from, int64_t skip, int64_t row, int64_t col,
                        int64_t n) {
  const att_problem *p = w->problem;
  if (w->keys_only) return;
  if (w->rows < ATT_PACK_ROWS && p->dtype == ATT_F32 && col == 1 && p->dv % ATT_LANES == 0) {
    w->v = (const float *)from + skip;
    w->v_row = row;
    w->v_panel = ATT_LANES;
    return;
  }
  att_pack how = {
      .n = p->dv, .k = n, .row_stride = col, .k_stride = row, .panel_stride = n * ATT_LANES};
  att_tile_pack(w->kernels, w->v_store, from, skip, p->dtype, &how);
  w->v = w->v_store;
  w->v_row = ATT_LANES;
  w->v_panel = n * ATT_LANES;
}

static const void *cached_keys(const att_tile_work *w, int64_t position) {
  const att_sdpa_args *a = w->problem->args;
  return att_cache_keys(a->cache, a->cache_layer, w->sequence.cached, w->kv_head, position);
}

static const void *cached_values(const att_tile_work *w, int64_t position) {
  const att_sdpa_args *a = w->problem->args;
  return att_cache_values(a->cache, a->cache_layer, w->sequence.cached, w->kv_head, position);
}

/* n keys of a page, at a panel's edge, as f32 panels. */
static void unpack_keys(const att_tile_work *w, float *to, int64_t position, int64_t n) {
  const att_problem *p = w->problem;
  int64_t panels = (n + ATT_LANES - 1) / ATT_LANES;
  const unsigned char *from = cached_keys(w, position);
  if (p->dtype == ATT_F32) {
    memcpy(to, from, (size_t)(panels * w->k_panel) * sizeof(float));
  } else if (att_dtype_is_float(p->dtype)) {
    att_pack how = {.n = ATT_LANES, .k = panels * p->d, .row_stride = 1, .k_stride = ATT_LANES};
    att_tile_pack(w->kernels, to, from, 0, p->dtype, &how);
  } else {
    int64_t groups = panels * p->d / att_dtype_block(p->dtype);
    (p->dtype == ATT_Q8_0 ? w->kernels->unpack_keys_q8 : w->kernels->unpack_keys_q4)(to, from,
                                                                                     groups);
  }
}

/* The span's keys as f32 panels. A sequence whose first key is not at a panel's
 * edge has its keys moved one by one. */
static void gather_keys(att_tile_work *w, int64_t first, int64_t n) {
  const att_problem *p = w->problem;
  const att_sdpa_args *a = p->args;
  w->k = w->k_store;
  if (first % ATT_LANES == 0) {
    for (int64_t r = 0, run; r < n; r += run) {
      run = att_at_most(att_cache_run(a->cache, first + r), n - r);
      unpack_keys(w, w->k_store + r * p->d, first + r, run);
    }
    return;
  }
  memset(w->k_store, 0, (size_t)((n + ATT_LANES - 1) / ATT_LANES * w->k_panel) * sizeof(float));
  for (int64_t r = 0; r < n; r++)
    att_cache_load_key(a->cache, a->cache_layer, w->sequence.cached, w->kv_head, first + r,
                       w->k_store + r / ATT_LANES * w->k_panel + r % ATT_LANES, ATT_LANES);
}

/* n values of a page as rows of f32 panels. */
static void unpack_values(const att_tile_work *w, float *to, int64_t position, int64_t n) {
  const att_problem *p = w->problem;
  const unsigned char *from = cached_values(w, position);
  if (att_dtype_is_float(p->dtype)) {
    att_pack how = {
        .n = p->dv, .k = n, .row_stride = 1, .k_stride = p->dv, .panel_stride = w->v_panel};
    att_tile_pack(w->kernels, to, from, 0, p->dtype, &how);
  } else {
    (p->dtype == ATT_Q8_0 ? w->kernels->unpack_values_q8 : w->kernels->unpack_values_q4)(
        to, w->v_panel, from, n, p->dv / att_dtype_block(p->dtype));
  }
}

/* The span's values packed for many rows. */
static void gather_values(att_tile_work *w, int64_t first, int64_t n) {
  if (w->keys_only) return;
  w->v = w->v_store;
  w->v_row = ATT_LANES;
  w->v_panel = n * ATT_LANES;
  for (int64_t r = 0, run; r < n; r += run) {
    run = att_at_most(att_cache_run(w->problem->args->cache, first + r), n - r);
    unpack_values(w, w->v_store + r * ATT_LANES, first + r, run);
  }
}

/* Few rows let the kernel widen or unpack numbers as it reads them. */
static bool read_in_place(att_tile_work *w) {
  const att_problem *p = w->problem;
  const att_kernels *k = w->kernels;
  int64_t block = att_dtype_block(p->dtype), bytes = att_dtype_bytes(p->dtype);
  w->element = att_dtype_is_float(p->dtype) ? bytes : 1;
  switch (p->dtype) {
  case ATT_F16: w->product = w->mix = k->tile_product_f16; return true;
  case ATT_BF16: w->product = w->mix = k->tile_product_bf16; return true;
  case ATT_Q8_0: w->product = k->tile_keys_q8, w->mix = k->tile_values_q8; break;
  case ATT_Q4_0: w->product = k->tile_keys_q4, w->mix = k->tile_values_q4; break;
  default: return false;
  }
  w->k_panel = p->d / block * bytes * ATT_LANES;
  w->v_row = p->dv / block * bytes;
  return true;
}

/* f32 keys are always read where they lie, and values where packing does not pay. */
static void load_cache_span(att_tile_work *w, int64_t at, int64_t n) {
  const att_problem *p = w->problem;
  bool edge = at % ATT_LANES == 0, lanes = p->dv % ATT_LANES == 0;
  w->k_panel = p->d * ATT_LANES;
  w->k = w->v = NULL;
  w->v_row = p->dv;
  w->v_panel = ATT_LANES;
  if (edge && lanes && w->rows < WIDEN_ROWS && read_in_place(w)) return;
  w->element = sizeof(float);
  if (!edge || p->dtype != ATT_F32) gather_keys(w, at, n);
  if (p->dtype != ATT_F32 || !lanes || w->rows >= ATT_PACK_ROWS) gather_values(w, at, n);
}

/* How far a page's keys go, in the span's counting. */
static void clip_to_page(const att_tile_work *w, int64_t first, int64_t position, int64_t *end) {
  const att_sdpa_args *a = w->problem->args;
  int64_t run = a->pages ? att_pages_run(a->pages, position) : att_cache_run(a->cache, position);
  *end = att_at_most(*end, first + run);
}

const void *att_tile_keys(const att_tile_work *w, int64_t first, int64_t *end) {
  int64_t position = w->sequence.k_first + first;
  if (w->k)
    return (const unsigned char *)w->k +
           (first - w->span_first) / ATT_LANES * w->k_panel * w->element;
  clip_to_page(w, first, position, end);
  return cached_keys(w, position);
}

const void *att_tile_values(const att_tile_work *w, int64_t first, int64_t *end) {
  int64_t position = w->sequence.k_first + first;
  if (w->v) return (const unsigned char *)w->v + (first - w->span_first) * w->v_row * w->element;
  clip_to_page(w, first, position, end);
  const att_pages *pages = w->problem->args->pages;
  if (!pages) return cached_values(w, position);
  return (const float *)pages->v.data +
         att_pages_at(pages, &pages->v, w->sequence.cached, w->kv_head, position);
}

void att_tile_load_span(att_tile_work *w, int64_t first, int64_t end) {
  const att_problem *p = w->problem;
  const att_sdpa_args *a = p->args;
  int64_t n = end - first, at = w->sequence.k_first + first;
  w->span_first = first;
  w->span_end = end;
  w->element = sizeof(float);
  w->product = w->mix = w->kernels->tile_product;
  if (a->cache) {
    load_cache_span(w, at, n);
    return;
  }
  if (a->pages) {
    att_tile_load_pages(w, at, n);
    return;
  }
  att_pack how = {.n = n,
                  .k = p->d,
                  .row_stride = a->k.stride[2],
                  .k_stride = a->k.stride[3],
                  .panel_stride = p->d * ATT_LANES};
  att_tile_pack(w->kernels, w->k_store, a->k.data,
                att_view_at(&a->k, w->sequence.batch, w->kv_head, at), p->dtype, &how);
  w->k = w->k_store;
  w->k_panel = p->d * ATT_LANES;
  load_values(w, a->v.data, att_view_at(&a->v, w->sequence.batch, w->kv_head, at), a->v.stride[2],
              a->v.stride[3], n);
}

/* The caller's rows from key `next` on. Those of a cache or of pages come as they
 * are found. */
static att_fetch fetch_rows(const att_tile_work *w, const att_view *x, int64_t next) {
  if (next >= w->high || !x->data || x->stride[3] != 1) return (att_fetch){0};
  int64_t bytes = att_dtype_bytes(x->dtype);
  int64_t at = att_view_at(x, w->sequence.batch, w->kv_head, w->sequence.k_first + next);
  return (att_fetch){
      .from = (const unsigned char *)x->data + at * bytes,
      .row = x->stride[2] * bytes,
      .width = x->shape[3] * bytes,
  };
}

att_fetch att_tile_fetch_keys(const att_tile_work *w, int64_t first) {
  if (w->next_span == 0) return (att_fetch){0};
  att_fetch fetch = fetch_rows(w, &w->problem->args->k, first + w->next_span);
  fetch.rows = ATT_LANES;
  return fetch;
}

/* Values that are read as they lie are needed earlier: the next block's. */
att_fetch att_tile_fetch_values(const att_tile_work *w, int64_t first) {
  const att_problem *p = w->problem;
  if (w->next_span == 0 || p->dv == 0) return (att_fetch){0};
  int64_t panels = (p->dv + ATT_LANES - 1) / ATT_LANES, next = first + p->block;
  if (w->v == w->v_store)
    next = first + w->next_span;
  else if (next >= w->span_end)
    next += w->next_span - p->span;
  att_fetch fetch = fetch_rows(w, &p->args->v, next);
  fetch.rows = (p->block + panels - 1) / panels;
  return fetch;
}

bool att_tile_trim(const att_tile_work *w, int64_t row, int64_t rows, int64_t *first,
                   int64_t *end) {
  int64_t low = *end, high = *first;
  for (int64_t r = row; r < row + rows; r++) {
    if (w->lows[r] >= w->highs[r]) continue;
    if (low > w->lows[r]) low = w->lows[r];
    if (high < w->highs[r]) high = w->highs[r];
  }
  /* Whole panels only, so that a key keeps its lane. */
  if (low > *first) *first += (low - *first) / ATT_LANES * ATT_LANES;
  if (high < *end) *end = high;
  return *first < *end;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

/* Does a row of bytes hide a key, and show one? */
static void look_at(const uint8_t *visible, int64_t n, bool *all, bool *any) {
  *all = *all && memchr(visible, 0, (size_t)n) == NULL;
  for (int64_t c = 0; c < n && !*any; c++) *any = visible[c] != 0;
}

/* Single hidden keys of each row, as the caller's bytes tell them or as a copy that all
 * rules have written; *all and *any tell about the whole tile. */
static void find_holes(att_tile_work *w, int64_t row, int64_t rows, int64_t first,
                       att_tile_mask *mask, bool *all, bool *any) {
  const att_problem *p = w->problem;
  const uint8_t *bytes = NULL;
  *mask = (att_tile_mask){.visible = w->visible, .visible_row = p->block};
  for (int64_t r = 0; r < rows; r++) {
    int64_t low = w->tile_low[r], high = w->tile_high[r];
    int64_t h = w->kv_head * p->group + (row + r) / w->positions;
    int64_t i = w->first_position + (row + r) % w->positions;
    att_mask_query query;
    if (!bytes) query = att_problem_query(p, &w->sequence, w->b, h, i);
    if (r == 0 && row / w->positions == (row + rows - 1) / w->positions) {
      int64_t step;
      bytes = att_mask_bytes(&p->args->mask, &query, &step);
      if (bytes) *mask = (att_tile_mask){.visible = bytes + first, .visible_row = step};
    }
    if (low >= high) continue;
    if (!bytes)
      att_mask_visible(&p->args->mask, &query, first + low, first + high,
                       w->visible + r * p->block + low);
    look_at(mask->visible + r * mask->visible_row + low, high - low, all, any);
  }
}

static void find_bias(att_tile_work *w, int64_t row, int64_t rows, int64_t first, int64_t end,
                      att_tile_mask *mask) {
  const att_problem *p = w->problem;
  const att_view *bias = &p->args->bias;
  for (int64_t r = 0; r < rows; r++) {
    int64_t h = w->kv_head * p->group + (row + r) / w->positions;
    int64_t i = w->first_position + (row + r) % w->positions;
    int64_t at = w->b * p->bias_stride[0] + h * p->bias_stride[1] + i * p->bias_stride[2] +
                 (first + w->sequence.start) * p->bias_stride[3];
    if (!w->bias_store) {
      w->bias_rows[r] = (const float *)bias->data + at;
      continue;
    }
    float *own = w->bias_store + r * p->block;
    for (int64_t c = 0; c < end - first; c++)
      own[c] = att_load_f32(bias->data, at + c * p->bias_stride[3], bias->dtype);
    w->bias_rows[r] = own;
  }
  mask->bias = w->bias_rows;
  mask->bias_col = w->bias_store ? 1 : p->bias_stride[3];
}

static void find_dropout(att_tile_work *w, int64_t row, int64_t rows, int64_t first, int64_t end) {
  const att_problem *p = w->problem;
  for (int64_t r = 0; r < rows; r++) {
    int64_t h = w->kv_head * p->group + (row + r) / w->positions;
    int64_t i = w->first_position + (row + r) % w->positions;
    att_dropout_row_factors(w->kernels, p->args, w->keep + r * p->block, w->b, h, i, first,
                            end - first);
  }
}

att_tile_class att_tile_classify(att_tile_work *w, int64_t row, int64_t rows, int64_t first,
                                 int64_t end, bool whole, att_tile_mask *mask) {
  bool full = true, any = whole;
  for (int64_t r = 0; r < rows && (!whole || w->problem->holes); r++) {
    int64_t low = w->lows[row + r], high = w->highs[row + r];
    full &= low <= first && high >= end;
    any |= low < end && high > first;
    w->tile_low[r] = (int32_t)clamp(low - first, 0, end - first);
    w->tile_high[r] = (int32_t)clamp(high - first, 0, end - first);
  }
  if (!any) return ATT_TILE_SKIP;
  *mask = (att_tile_mask){0};
  if (w->problem->holes) {
    bool all = true;
    any = false;
    find_holes(w, row, rows, first, mask, &all, &any);
    if (!any) return ATT_TILE_SKIP;
    if (all) mask->visible = NULL;
  }
  if (!full) mask->low = w->tile_low, mask->high = w->tile_high;
  full &= !mask->visible;
  if (w->bias_rows) find_bias(w, row, rows, first, end, mask);
  if (w->keep) {
    find_dropout(w, row, rows, first, end);
    mask->keep = w->keep;
  }
  return full ? ATT_TILE_FULL : ATT_TILE_PARTIAL;
}

/* A hidden key carries -0; a dropped one (times 0) its sign too, or +0. */
static bool is_hidden(const att_tile_work *w, const att_tile *mix, int64_t r, int64_t j) {
  if (att_tile_is_mark(mix->a[r * mix->a_row + j])) return true;
  return w->keep && w->keep[r * w->problem->block + (mix->a - w->s) + j] == 0.0f;
}

void att_tile_mix_visible(const att_tile_work *w, const att_tile *mix) {
  for (int64_t r = 0; r < mix->rows; r++) {
    att_tile run = *mix;
    run.rows = 1;
    run.c = mix->c + r * mix->c_row;
    run.scale = mix->scale ? mix->scale + r : NULL;
    for (int64_t j = 0; j < mix->k; j += run.k + 1) {
      run.k = 0;
      while (j + run.k < mix->k && !is_hidden(w, mix, r, j + run.k)) run.k++;
      if (run.k == 0) continue;
      run.a = mix->a + r * mix->a_row + j;
      run.b = (const unsigned char *)mix->b + j * mix->b_k * w->element;
      w->mix(&run);
      run.scale = NULL;
    }
    if (run.scale) { /* every visible key was dropped: the factor alone */
      run.k = 0;
      w->mix(&run);
    }
  }
}
