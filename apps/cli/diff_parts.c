/* diff_parts.c — which parts set a word's two vectors apart (attend/compare.h). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/compare.h"
#include "diff.h"
#include "memory.h"

typedef struct parting {
  const diff_side *sides;
  att_view ends[2]; /* the streams that the parts sum to */
  diff_part *parts;
  int64_t n, room;
} parting;

att_view diff_site(const diff_side *s, int64_t layer, const char *site) {
  char name[96];
  att_view view;
  if (layer < 0)
    snprintf(name, sizeof name, "%s", site);
  else
    snprintf(name, sizeof name, "blocks.%" PRId64 ".%s", layer, site);
  if (att_capture_get(&view, s->row, name) != ATT_OK) return att_view_none();
  const bool pairs = !strcmp(site, "attn.hook_pattern"); /* [H,T,S] */
  return att_view_select(view, pairs ? 1 : 0, 0);
}

static diff_part *next_part(parting *p, int64_t layer, int64_t head) {
  if (p->n == p->room) {
    p->room = 2 * p->room + 64;
    p->parts = memory_resize(p->parts, (size_t)p->room, sizeof *p->parts);
  }
  diff_part *part = &p->parts[p->n++];
  *part = (diff_part){.layer = layer, .head = head};
  return part;
}

/* Where head h of the layer looks most. */
static void find_key(diff_part *part, const parting *p) {
  for (int i = 0; i < 2; i++) {
    const att_view pattern = diff_site(&p->sides[i], part->layer, "attn.hook_pattern");
    const float *a = (const float *)pattern.data + part->head * pattern.stride[0];
    for (int64_t j = 1; j < pattern.shape[1]; j++)
      if (a[j * pattern.stride[1]] > a[part->key[i] * pattern.stride[1]]) part->key[i] = j;
    part->weight[i] = a[part->key[i] * pattern.stride[1]];
  }
}

/* The rows of a site as parts: [H,C], one for each head, or [C], one by that name. */
static att_status add(parting *p, int64_t layer, const char *site, const char *name) {
  att_view x[2];
  for (int i = 0; i < 2; i++) x[i] = diff_site(&p->sides[i], layer, site);
  if (!x[0].data || !x[1].data) return ATT_OK;
  const bool heads = x[0].ndim == 2;
  const int64_t n = heads ? x[0].shape[0] : 1, c = x[0].shape[x[0].ndim - 1];
  for (int i = 0; i < 2 && !heads; i++)
    x[i] = att_view_of(x[i].data, ATT_F32, 2, (int64_t[]){1, c});
  double *shares = memory_get((size_t)(2 * n), sizeof *shares);
  att_status status = att_parts_apart(shares, shares + n, x[0], x[1], p->ends[0], p->ends[1]);
  for (int64_t h = 0; h < n && status == ATT_OK; h++) {
    diff_part *part = next_part(p, layer, heads ? h : -1);
    part->share = shares[h], part->distance = shares[n + h];
    if (heads) {
      snprintf(part->name, sizeof part->name, "L%" PRId64 ".H%" PRId64, layer, h);
      find_key(part, p);
    } else {
      char layer_name[32] = "";
      if (layer >= 0) snprintf(layer_name, sizeof layer_name, "L%" PRId64 " ", layer);
      snprintf(part->name, sizeof part->name, "%s%s", layer_name, name);
    }
  }
  free(shares);
  return status;
}

/* Biases are the same in both and no part. What is normed before it is added counts so. */
static att_status add_block(parting *p, int64_t layer) {
  const bool after[2] = {diff_site(p->sides, layer, "ln1_post.hook_normalized").data != NULL,
                         diff_site(p->sides, layer, "ln2_post.hook_normalized").data != NULL};
  att_status status = after[0] ? add(p, layer, "ln1_post.hook_normalized", "attention")
                               : add(p, layer, "attn.hook_result", NULL);
  if (status != ATT_OK) return status;
  return add(p, layer, after[1] ? "ln2_post.hook_normalized" : "hook_mlp_out", "feed-forward");
}

static int by_share(const void *a, const void *b) {
  const diff_part *x = a, *y = b;
  const double s = fabs(x->share), t = fabs(y->share);
  if (s != t && !isnan(s) && !isnan(t)) return s < t ? 1 : -1;
  if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
  return x->head < y->head ? -1 : x->head > y->head;
}

att_status diff_find_parts(diff_part **out, int64_t *n, double *sum, const diff_side sides[2],
                           int64_t last) {
  parting p = {.sides = sides};
  for (int i = 0; i < 2; i++) p.ends[i] = diff_site(&sides[i], last, "hook_resid_post");
  att_status status = add(&p, -1, "hook_embed", "token embedding");
  if (status == ATT_OK) status = add(&p, -1, "hook_pos_embed", "position embedding");
  for (int64_t l = 0; l <= last && status == ATT_OK; l++) status = add_block(&p, l);
  *sum = 0;
  for (int64_t i = 0; i < p.n; i++) *sum += p.parts[i].share;
  if (p.n) qsort(p.parts, (size_t)p.n, sizeof *p.parts, by_share);
  *out = p.parts;
  *n = p.n;
  return status;
}
