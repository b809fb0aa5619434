/* diff_dumps.c — weights that other programs saved, two dumps compared head by head. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "diff.h"
#include "dump.h"
#include "memory.h"
#include "table.h"

enum { KEY_ROOM = 12 };

/* One dump and who spells its tokens. */
typedef struct side {
  subject what;
  dump saved;
} side;

/* How a head differs, and the row where it does most. */
typedef struct head {
  int64_t layer, head, query;
  double moved, most; /* mean over rows; of that row */
  int64_t key[2];     /* where it looks most in A and in B */
  float weight[2];
} head;

/* ---- comparing ---- */

static float weight_at(att_view row, int64_t j) {
  const float w = ((const float *)row.data)[j * row.stride[0]];
  return isnan(w) ? 0 : w; /* of a row that saw nothing */
}

static double row_moved(att_view a, att_view b) {
  double sum = 0;
  for (int64_t j = 0; j < a.shape[0]; j++)
    sum += fabs((double)weight_at(a, j) - (double)weight_at(b, j));
  return sum / 2;
}

double diff_moved(att_view a, att_view b) {
  double sum = 0;
  for (int64_t i = 0; i < a.shape[0]; i++)
    sum += row_moved(att_view_select(a, 0, i), att_view_select(b, 0, i));
  return sum / (double)a.shape[0];
}

static head compare(const side sides[2], int64_t layer, int64_t h) {
  att_view map[2];
  for (int s = 0; s < 2; s++) map[s] = att_view_select(sides[s].saved.patterns[layer], 0, h);
  head out = {.layer = layer, .head = h, .moved = diff_moved(map[0], map[1]), .most = -1};
  for (int64_t i = 0; i < map[0].shape[0]; i++) {
    const double moved = row_moved(att_view_select(map[0], 0, i), att_view_select(map[1], 0, i));
    if (moved > out.most) out.most = moved, out.query = i;
  }
  for (int s = 0; s < 2; s++) {
    const att_view row = att_view_select(map[s], 0, out.query);
    for (int64_t j = 1; j < row.shape[0]; j++)
      if (weight_at(row, j) > weight_at(row, out.key[s])) out.key[s] = j;
    out.weight[s] = weight_at(row, out.key[s]);
  }
  return out;
}

static int by_moved(const void *a, const void *b) {
  const head *x = a, *y = b;
  if (x->moved != y->moved) return x->moved < y->moved ? 1 : -1;
  if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
  return x->head < y->head ? -1 : x->head > y->head;
}

/* All heads, what differs most first. */
static head *compare_all(const side sides[2]) {
  const dump *d = &sides[0].saved;
  head *heads = memory_get((size_t)(d->layers * d->heads), sizeof *heads);
  for (int64_t l = 0, n = 0; l < d->layers; l++)
    for (int64_t h = 0; h < d->heads; h++) heads[n++] = compare(sides, l, h);
  qsort(heads, (size_t)(d->layers * d->heads), sizeof *heads, by_moved);
  return heads;
}

/* ---- showing ---- */

static int64_t first_query(const dump *d) { return d->keys - d->queries; }

static void print_json(const side sides[2], const head *heads, int64_t n) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  for (int s = 0; s < 2; s++) {
    const dump *d = &sides[s].saved;
    json_open(&j, s ? "b" : "a", '{');
    json_string(&j, "dump", subject_name(&sides[s].what));
    subject_json_ids(&j, &sides[s].what, "key", d->ids, d->keys);
    json_close(&j);
  }
  json_int(&j, "first_query", first_query(&sides[0].saved));
  json_open(&j, "heads", '[');
  for (int64_t i = 0; i < n; i++) {
    json_open(&j, NULL, '{');
    json_int(&j, "layer", heads[i].layer);
    json_int(&j, "head", heads[i].head);
    json_double(&j, "moved", heads[i].moved);
    json_int(&j, "most_at", first_query(&sides[0].saved) + heads[i].query);
    json_double(&j, "most", heads[i].most);
    for (int s = 0; s < 2; s++) {
      json_int(&j, s ? "key_b" : "key_a", heads[i].key[s]);
      json_float(&j, s ? "weight_b" : "weight_a", heads[i].weight[s]);
    }
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void put_head(table *rows, const side sides[2], const head *h, const term *t) {
  const int64_t query = first_query(&sides[0].saved) + h->query;
  const label at = subject_label(&sides[0].what, t, sides[0].saved.ids[query], KEY_ROOM);
  table_put(rows, INK_OFF, "L%" PRId64 ".H%" PRId64, h->layer, h->head);
  table_put(rows, INK_STRONG, "%.4f", h->moved);
  table_put(rows, INK_Q, "%" PRId64 " %s %.2f", query, at.text, h->most);
  for (int s = 0; s < 2; s++) {
    const int32_t id = sides[s].saved.ids[h->key[s]];
    const label key = subject_label(&sides[s].what, t, id, KEY_ROOM);
    table_put(rows, INK_K, "%" PRId64 " %s %.2f", h->key[s], key.text, (double)h->weight[s]);
  }
  table_bar(rows, h->moved);
}

static void print_text(const side sides[2], const head *heads, int64_t n, const term *t) {
  const dump *d = &sides[0].saved;
  const label a = label_name(t, subject_name(&sides[0].what), LABEL_COLUMNS);
  const label b = label_name(t, subject_name(&sides[1].what), LABEL_COLUMNS);
  text_say(t, INK_STRONG, 0,
           "A, %s, and B, %s: %" PRId64 " layers × %" PRId64 " heads, %" PRId64
           " queries × %" PRId64 " keys",
           a.text, b.text, d->layers, d->heads, d->queries, d->keys);
  table *rows = table_new(t, "lrlllb");
  static const char *const titles[] = {"head", "moved", "most at", "A looks at", "B looks at", ""};
  for (int i = 0; i < 6; i++) table_head(rows, titles[i]);
  for (int64_t i = 0; i < n; i++) put_head(rows, sides, &heads[i], t);
  table_print(rows, 0);
  text_say(t, INK_FAINT, 0,
           "moved: the share of a row's weight that lies on other positions, mean over rows; most "
           "at: the row of which it is largest, and the keys with the most weight there.");
}

/* ---- running ---- */

static int check_alike(const side sides[2], const cli *c) {
  const dump *a = &sides[0].saved, *b = &sides[1].saved;
  if (a->layers == b->layers && a->heads == b->heads && a->queries == b->queries &&
      a->keys == b->keys)
    return CLI_OK;
  return cli_fail(c,
                  "%s has %" PRId64 " layers, %" PRId64 " heads, %" PRId64 " queries and %" PRId64
                  " keys, %s %" PRId64 ", %" PRId64 ", %" PRId64 " and %" PRId64
                  ": dumps of one model and of prompts of one length are compared",
                  subject_name(&sides[0].what), a->layers, a->heads, a->queries, a->keys,
                  subject_name(&sides[1].what), b->layers, b->heads, b->queries, b->keys);
}

int diff_dumps(const cli *c, const char *const paths[2], const char *tokenizer_path, int64_t top) {
  side sides[2] = {0};
  int code = CLI_OK;
  for (int s = 0; s < 2 && code == CLI_OK; s++) {
    const dump_options from = {.path = paths[s]};
    sides[s].what.tokenizer_path = tokenizer_path;
    code = dump_open(&sides[s].saved, &sides[s].what, c, &from);
    if (code != CLI_OK) cli_note(c, "%s is %s", s ? "B" : "A", paths[s]);
  }
  if (code == CLI_OK) code = check_alike(sides, c);
  if (code == CLI_OK) {
    const int64_t all = sides[0].saved.layers * sides[0].saved.heads, n = top < all ? top : all;
    head *heads = compare_all(sides);
    if (c->json)
      print_json(sides, heads, n);
    else
      print_text(sides, heads, n, &c->term);
    free(heads);
  }
  for (int s = 0; s < 2; s++) {
    dump_close(&sides[s].saved);
    subject_close(&sides[s].what);
  }
  return code;
}
