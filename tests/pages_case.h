/* A random call's keys and values in pages of a pool: a random number of slots,
 * pages in random order with others between them, one of several layouts. What is
 * not a key is NaN, what no key needs in the table no page. */
#ifndef ATT_TESTS_PAGES_CASE_H
#define ATT_TESTS_PAGES_CASE_H

#include "attention_case.h"

/* [P,G,slots,width] with memory in one of four orders, all of it NaN. */
static inline att_view pages_pool(att_case *c, att_dtype dtype, const int64_t shape[4]) {
  static const int orders[4][4] = {{0, 2, 1, 3}, {0, 1, 2, 3}, {1, 0, 2, 3}, {0, 1, 3, 2}};
  const int *order = orders[case_below(c, 4)];
  int64_t step = 1, stride[4];
  for (int n = 3; n >= 0; n--) {
    stride[order[n]] = step;
    step = step * shape[order[n]] + (case_chance(c, 20) ? case_below(c, 9) : 0);
  }
  size_t bytes = (size_t)(step * att_dtype_bytes(dtype));
  att_view pool = att_view_of(case_alloc(c, bytes), dtype, 4, shape);
  memset(pool.data, 0xff, bytes);
  memcpy(pool.stride, stride, sizeof stride);
  return pool;
}

/* Copies the keys that sequences have to their slots, rounded to the pool's type;
 * the tensor gets the rounded number too. */
static inline void pages_fill(const att_pages *pages, const att_view *pool, const att_view *rows) {
  int64_t slots = pool->shape[2];
  for (int64_t b = 0; b < rows->shape[0]; b++)
    for (int64_t t = 0; t < pages->lengths[b]; t++) {
      int64_t page = pages->table[b * pages->table_row + t / slots];
      for (int64_t n = 0; n < rows->shape[1] * rows->shape[3]; n++) {
        int64_t g = n / rows->shape[3], d = n % rows->shape[3];
        unsigned char *from =
            (unsigned char *)rows->data + (b * rows->stride[0] + g * rows->stride[1] +
                                           t * rows->stride[2] + d * rows->stride[3]) *
                                              att_dtype_bytes(rows->dtype);
        unsigned char *to =
            (unsigned char *)pool->data + (page * pool->stride[0] + g * pool->stride[1] +
                                           t % slots * pool->stride[2] + d * pool->stride[3]) *
                                              att_dtype_bytes(pool->dtype);
        if (pool->dtype == rows->dtype) {
          memcpy(to, from, (size_t)att_dtype_bytes(pool->dtype));
          continue;
        }
        float x;
        memcpy(&x, from, sizeof x);
        case_store(to, pool->dtype, x);
        uint16_t half;
        memcpy(&half, to, sizeof half);
        x = pool->dtype == ATT_F16 ? att_f16_to_f32(half) : att_bf16_to_f32(half);
        memcpy(from, &x, sizeof x);
      }
    }
}

/* Sizes with as many keys as whole pages have. */
static inline int64_t pages_sizes(att_case *c, uint64_t seed, unsigned features, att_dtype dtype) {
  case_sizes(c, seed, features & ~(unsigned)(CASE_PACKED | CASE_REPEATS), dtype);
  int64_t slots =
      case_chance(c, 40) ? (int64_t[]){1, 16, 32, 128}[case_below(c, 4)] : 1 + case_below(c, 40);
  int64_t most = case_chance(c, 15) ? 700 : c->s;
  c->s = most / slots * slots;
  while (features & CASE_TREE && c->s < c->t) c->s += slots;
  return slots;
}

/* The call over pages of `slots` positions; `lengths` [B] of its keys. */
static inline att_sdpa_args pages_of(att_case *c, int64_t slots, const int64_t *lengths,
                                     att_dtype dtype) {
  int64_t used = c->s / slots, row = used + case_below(c, 3), pool = c->b * used + case_below(c, 5);
  int32_t *table = case_alloc(c, (size_t)(c->b * row) * sizeof *table);
  int32_t *order = case_alloc(c, (size_t)pool * sizeof *order);
  for (int32_t n = 0; n < pool; n++) order[n] = n;
  for (int64_t n = pool - 1; n > 0; n--) {
    int64_t other = case_below(c, n + 1);
    int32_t swap = order[n];
    order[n] = order[other], order[other] = swap;
  }
  for (int64_t n = 0; n < c->b * row; n++) table[n] = n % 2 ? INT32_MIN : INT32_MAX;
  for (int64_t b = 0; b < c->b; b++)
    for (int64_t n = 0; n * slots < lengths[b]; n++) table[b * row + n] = order[b * used + n];
  const int64_t k[4] = {pool, c->g, slots, c->d}, v[4] = {pool, c->g, slots, c->dv};
  att_pages *pages = case_alloc(c, sizeof *pages);
  *pages = (att_pages){.k = pages_pool(c, dtype, k),
                       .v = pages_pool(c, dtype, v),
                       .table = table,
                       .table_pages = used,
                       .table_row = row,
                       .lengths = lengths};
  pages_fill(pages, &pages->k, &c->args.k);
  pages_fill(pages, &pages->v, &c->args.v);
  att_sdpa_args over = c->args;
  over.k = over.v = att_view_none();
  over.pages = pages;
  return over;
}

#endif
