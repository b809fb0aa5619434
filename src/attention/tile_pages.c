/* A span out of the caller's own pages: rows of any strides, pages of any size.
 *
 * Keys go to panels of 16, values to rows of panels, as those of a tensor do. A
 * panel of keys is packed from where it lies if one page has it, else its rows are
 * first put together. Which page a number came from leaves no trace in the bits. */
#include <string.h>

#include "attention/tiles.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "kv/foreign.h"

/* Keys at position `at` … as they lie, row after row in w->panel. */
static void assemble(const att_tile_work *w, int64_t at, int64_t n) {
  const att_pages *pages = w->problem->args->pages;
  const att_view *k = &pages->k;
  int64_t d = w->problem->d;
  size_t bytes = (size_t)att_dtype_bytes(k->dtype);
  for (int64_t r = 0; r < n; r++) {
    const unsigned char *from =
        (const unsigned char *)k->data +
        (size_t)att_pages_at(pages, k, w->sequence.cached, w->kv_head, at + r) * bytes;
    unsigned char *to = w->panel + (size_t)(r * d) * bytes;
    if (k->stride[3] == 1)
      memcpy(to, from, (size_t)d * bytes);
    else
      for (int64_t c = 0; c < d; c++)
        memcpy(to + (size_t)c * bytes, from + (size_t)(c * k->stride[3]) * bytes, bytes);
  }
}

/* Keys of one page, or the last few of the span: as many as can be packed at once. */
static int64_t pack_keys(const att_tile_work *w, float *to, int64_t at, int64_t n) {
  const att_problem *p = w->problem;
  const att_pages *pages = p->args->pages;
  const att_view *k = &pages->k;
  att_pack how = {.k = p->d, .panel_stride = w->k_panel};
  int64_t run = att_pages_run(pages, at);
  if (run < ATT_LANES && run < n) {
    how.n = att_at_most(n, ATT_LANES);
    how.row_stride = p->d, how.k_stride = 1;
    assemble(w, at, how.n);
    att_tile_pack(w->kernels, to, w->panel, 0, p->dtype, &how);
  } else {
    how.n = run < n ? run / ATT_LANES * ATT_LANES : n;
    how.row_stride = k->stride[2], how.k_stride = k->stride[3];
    att_tile_pack(w->kernels, to, k->data,
                  att_pages_at(pages, k, w->sequence.cached, w->kv_head, at), p->dtype, &how);
  }
  return how.n;
}

static void pack_values(const att_tile_work *w, int64_t at, int64_t n) {
  const att_problem *p = w->problem;
  const att_pages *pages = p->args->pages;
  const att_view *v = &pages->v;
  att_pack how = {
      .n = p->dv, .row_stride = v->stride[3], .k_stride = v->stride[2], .panel_stride = w->v_panel};
  for (int64_t r = 0; r < n; r += how.k) {
    how.k = att_at_most(att_pages_run(pages, at + r), n - r);
    att_tile_pack(w->kernels, w->v_store + r * ATT_LANES, v->data,
                  att_pages_at(pages, v, w->sequence.cached, w->kv_head, at + r), p->dtype, &how);
  }
}

void att_tile_load_pages(att_tile_work *w, int64_t at, int64_t n) {
  const att_problem *p = w->problem;
  const att_view *v = &p->args->pages->v;
  w->k = w->k_store;
  w->k_panel = p->d * ATT_LANES;
  for (int64_t r = 0; r < n;) r += pack_keys(w, w->k_store + r * p->d, at + r, n - r);
  if (w->keys_only) return;
  /* Where they lie, each page is a call of the micro-kernel for every tile. */
  bool few = w->rows < ATT_PACK_ROWS && v->shape[2] >= ATT_LANES;
  if (few && p->dtype == ATT_F32 && v->stride[3] == 1 && p->dv % ATT_LANES == 0) {
    w->v = NULL; /* found page by page */
    w->v_row = v->stride[2];
    w->v_panel = ATT_LANES;
    return;
  }
  w->v = w->v_store;
  w->v_row = ATT_LANES;
  w->v_panel = n * ATT_LANES;
  pack_values(w, at, n);
}
