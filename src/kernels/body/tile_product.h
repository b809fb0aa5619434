/* Product of rows with packed panels: the micro-kernel under every matrix
 * product and under attention.
 *
 * A block of R rows x P panels lives in registers while k runs over its whole
 * length; lanes are columns, so each lane is one chain in index order and the
 * bits are those of ref/tile_product.h. Rows come in any layout (a_row, a_k);
 * three rows share one base pointer since an address can add one or two
 * strides for free. Panels go outermost: a pair of them stays in the first-level
 * cache while all rows pass by. */

/* Up to four rows are too few chains for a machine with many registers: there
 * they take more panels at once. */
#ifdef V_FEW_ROWS_PANELS
#define V_MOST_PANELS V_FEW_ROWS_PANELS
#else
#define V_MOST_PANELS V_TILE_PANELS
#endif

/* Targets without a prefetch instruction say V_FETCHES 0; V_HIDE makes the
 * compiler forget where an address comes from, where it knows too much. */
#ifndef V_HIDE
#define V_FETCHES 1
#define V_HIDE(address) (void)0
#endif

/* The row's address: base of its group of three, plus 0, 1 or 2 strides. */
#define V_A(base, r) ((base)[(r) / 3] + ((r) % 3) * a_row)

/* A block's sums as memory: columns that are no whole panels, and last steps that
 * most products do not have, pass through a copy. Loops over such cases would take
 * the array of sums out of its registers, also for everyone else. */
typedef float body_sums[V_TILE_ROWS * V_MOST_PANELS * VN];

/* Where a block's chains begin: +0, or the old c, scaled if asked. */
V_INLINE void body_product_begin(vf acc[V_TILE_ROWS][V_MOST_PANELS], const att_tile *t,
                                 const float *c, int64_t row, const int R, const int P,
                                 int64_t cols) {
  int64_t c_row = t->c_row;
  body_sums sums;
  if (!t->accumulate) {
    for (int r = 0; r < R; r++)
      for (int p = 0; p < P; p++) acc[r][p] = v_set1(0.0f);
    return;
  }
  if (cols < P * VN) {
    for (int64_t n = 0; n < R * P * VN; n += VN) {
      int64_t r = n / (P * VN), at = n % (P * VN), left = cols - at;
      v_store(sums + n, left < VN ? v_load_n(c + r * c_row + at, left > 0 ? (int)left : 0)
                                  : v_load(c + r * c_row + at));
    }
    c = sums;
    c_row = P * VN;
  }
  for (int r = 0; r < R; r++)
    for (int p = 0; p < P; p++) acc[r][p] = v_load(c + r * c_row + p * VN);
  if (!t->scale) return;
  for (int r = 0; r < R; r++)
    for (int p = 0; p < P; p++) acc[r][p] = v_mul(acc[r][p], v_set1(t->scale[row + r]));
}

V_INLINE void body_product_end(vf acc[V_TILE_ROWS][V_MOST_PANELS], const att_tile *t, float *c,
                               int64_t row, int64_t panel, const int R, const int P, int64_t cols) {
  bool plain = !t->bias && !t->residual && cols >= P * VN;
  body_sums sums;
  float *to = plain ? c : sums;
  int64_t to_row = plain ? t->c_row : P * VN;
  for (int r = 0; r < R; r++)
    for (int p = 0; p < P; p++) v_store(to + r * to_row + p * VN, acc[r][p]);
  if (plain) return;
  for (int64_t n = 0; n < R * P * VN; n += VN) {
    int64_t r = n / (P * VN), at = n % (P * VN), left = cols - at, column = panel * VN + at;
    int lanes = left < VN ? (int)left : VN;
    vf x = v_load(sums + n);
    if (t->bias) x = v_add(x, v_load_n(t->bias + column, lanes));
    if (t->residual)
      x = v_add(x, v_load_n(t->residual + (row + r) * t->residual_row + column, lanes));
    v_store_n(c + r * t->c_row + at, x, lanes);
  }
}

/* 16 columns of B at element `at`. `kind` is a constant: 0 f32, 1 f16, 2 bf16. */
V_INLINE vf body_product_column(const void *b, int64_t at, const int kind) {
  if (kind == 1) return v_load_f16((const uint16_t *)b + at);
  if (kind == 2) return v_load_bf16((const uint16_t *)b + at);
  return v_load((const float *)b + at);
}

/* With few rows, and beside the first of more, memory sets the pace, and B's next block
 * lies further away than the processor looks by itself. The address may be past the end. */
V_INLINE void body_product_fetch(const unsigned char *b, int64_t offset) {
  __builtin_prefetch((const void *)((uintptr_t)b + (uintptr_t)offset), 0, 2);
}

/* What few rows fetch. Panels that lie in line are fetched in line, which gives memory one
 * stream of ascending addresses instead of P: one row of f16 has 1.08 to 1.2 times the rate. */
typedef struct body_ahead {
  uintptr_t at;
  uintptr_t panel, step; /* to the next panel, to the next step */
} body_ahead;

/* From `at` on: panels of `panel` bytes that are `stride` apart, and of each `step` a step. */
V_INLINE body_ahead body_ahead_begin(const unsigned char *at, int64_t ahead, int64_t panel,
                                     int64_t stride, int64_t step, const int P) {
  bool in_line = stride == panel;
  return (body_ahead){(uintptr_t)at + (uintptr_t)ahead, (uintptr_t)(in_line ? step : stride),
                      (uintptr_t)(in_line ? P * step : step)};
}

V_INLINE void body_ahead_step(body_ahead *a, const int P) {
  for (int p = 0; p < P; p++)
    __builtin_prefetch((const void *)(a->at + (uintptr_t)p * a->panel), 0, 3);
  a->at += a->step;
}

/* Beside more rows there is time to fetch a line a step: the first P blocks of
 * rows take a panel's share each. Ascending addresses set off the processor's own
 * prefetching, which has more requests in flight than ours. */
typedef struct body_fetch {
  uintptr_t at;
  int64_t left, lines; /* in the row */
  uintptr_t turn;      /* from a row's end to the next one's beginning */
} body_fetch;

V_INLINE body_fetch body_fetch_begin(const att_fetch *f, int64_t share) {
  int64_t lines = (f->width + 63) / 64;
  uintptr_t skip = (uintptr_t)(share * f->rows * f->row);
  return (body_fetch){(uintptr_t)f->from + skip, lines, lines, (uintptr_t)(f->row - lines * 64)};
}

V_INLINE void body_fetch_step(body_fetch *f) {
  __builtin_prefetch((const void *)f->at, 0, 2);
  f->at += 64;
  if (--f->left > 0) return;
  f->left = f->lines;
  f->at += f->turn;
}

#ifdef V_STEPS
/* All k > 0 steps over adjacent numbers, several between two counts of the addresses: what
 * differs is each load's own offset. The way out after every step is not only for the last
 * ones: where nothing parts the steps, an engine does all their loads first and has too few
 * registers for them. */
V_INLINE void body_product_near(vf acc[V_TILE_ROWS][V_MOST_PANELS], const float *const *a,
                                int64_t a_row, const unsigned char *b, int64_t b_panel, int64_t k,
                                const int R, const int P, const int kind) {
  const float *x[V_TILE_ROWS];
  uint32_t left = (uint32_t)k;
  for (int r = 0; r < R; r++) x[r] = V_A(a, r);
  for (;;) {
    for (int r = 0; r < R; r++) V_HIDE(x[r]);
    V_HIDE(b);
    for (uint32_t step = 0; step < V_STEPS; step++) {
      vf column[V_MOST_PANELS];
      for (int p = 0; p < P; p++) column[p] = body_product_column(b, p * b_panel + step * VN, kind);
      for (int r = 0; r < R; r++) {
        vf y = v_set1(x[r][step]);
        for (int p = 0; p < P; p++) acc[r][p] = v_fma(y, column[p], acc[r][p]);
      }
      if (left == step + 1) return;
    }
    left -= V_STEPS;
    for (int r = 0; r < R; r++) x[r] += V_STEPS;
    b += V_STEPS * VN * (kind ? 2 : 4);
  }
}
#endif

/* `fetches` is a constant. */
V_INLINE void body_product_block(const att_tile *t, int64_t row, int64_t panel, const int R,
                                 const int P, int64_t cols, const int kind, const bool fetches) {
  vf acc[V_TILE_ROWS][V_MOST_PANELS];
  const int size = kind ? 2 : 4;
  const int64_t a_row = t->a_row, a_k = t->a_k, b_k = t->b_k, b_panel = t->b_panel, k = t->k;
  const float *a[(V_TILE_ROWS + 2) / 3];
  const unsigned char *b = (const unsigned char *)t->b + panel * b_panel * size;
  float *c = t->c + row * t->c_row + panel * VN;

  /* Two blocks of rows fetch a panel each, so that memory does not rest beside the second. */
  const bool turns = P == 2 && t->rows >= 2 * R;
  const bool ahead = (row == 0 || (turns && row == R)) && !fetches && t->ahead;
  const int64_t next = t->ahead + row / R * b_panel * size;
  /* Values of a cache are rows of all panels: their panels are never in line. */
  body_ahead few =
      body_ahead_begin(b, t->ahead, b_k == VN ? k * VN * size : -1, b_panel * size, b_k * size, P);
  /* One row of f32 beside four panels takes lines as they come: the loads that are under way
   * reach further than fetching, which gave 0.84 to 0.96 of the rate. */
  const bool alone = R == 1 && P >= 4 && !kind;
  body_fetch fetch = {0};
  if (fetches) fetch = body_fetch_begin(&t->fetch, panel + row / V_TILE_ROWS);

  for (int g = 0; g < (R + 2) / 3; g++) a[g] = t->a + (row + 3 * g) * a_row;
  body_product_begin(acc, t, c, row, R, P, cols);
  int64_t j = 0;
#ifdef V_STEPS
  if (a_k == 1 && b_k == VN && k > 0) {
    body_product_near(acc, a, a_row, b, b_panel, k, R, P, kind);
    j = k;
  }
#endif
  for (; j < k; j++) {
    vf column[V_MOST_PANELS];
    V_HIDE(b);
    for (int p = 0; p < P; p++) column[p] = body_product_column(b, p * b_panel, kind);
    if (V_FETCHES && R > 4 && ahead) {
      body_product_fetch(b, next);
      if (P == 2 && !turns) body_product_fetch(b, next + b_panel * size);
    }
    if (V_FETCHES && R <= 4 && !alone && t->ahead) body_ahead_step(&few, P);
    if (fetches) body_fetch_step(&fetch);
    for (int r = 0; r < R; r++) {
      vf x = v_set1(*V_A(a, r));
      for (int p = 0; p < P; p++) acc[r][p] = v_fma(x, column[p], acc[r][p]);
    }
    for (int g = 0; g < (R + 2) / 3; g++) a[g] += a_k;
    b += b_k * size;
  }
  body_product_end(acc, t, c, row, panel, R, P, cols);
}

/* Some rows of P panels: full blocks, then halves of what is left. Sixteen are better two times
 * eight than twelve and four, whose chains are too few to hide each other's latency. */
#define V_PRODUCT_ROWS(P, kind)                                                                    \
  static void body_product_rows_##P##_##kind(const att_tile *t, int64_t panel, int64_t cols) {     \
    int64_t row = 0;                                                                               \
    for (; t->fetch.from && row + V_TILE_ROWS <= t->rows && row < P * V_TILE_ROWS;                 \
         row += V_TILE_ROWS)                                                                       \
      body_product_block(t, row, panel, V_TILE_ROWS, P, cols, kind, true);                         \
    for (; row + V_TILE_ROWS <= t->rows && !(V_TILE_ROWS > 8 && t->rows - row == 16);              \
         row += V_TILE_ROWS)                                                                       \
      body_product_block(t, row, panel, V_TILE_ROWS, P, cols, kind, false);                        \
    for (; V_TILE_ROWS > 8 && row + 8 <= t->rows; row += 8)                                        \
      body_product_block(t, row, panel, V_TILE_ROWS > 8 ? 8 : 1, P, cols, kind, false);            \
    if (V_TILE_ROWS > 4 && row + 4 <= t->rows) {                                                   \
      body_product_block(t, row, panel, V_TILE_ROWS > 4 ? 4 : 1, P, cols, kind, false);            \
      row += 4;                                                                                    \
    }                                                                                              \
    if (row + 2 <= t->rows) {                                                                      \
      body_product_block(t, row, panel, 2, P, cols, kind, false);                                  \
      row += 2;                                                                                    \
    }                                                                                              \
    if (row < t->rows) body_product_block(t, row, panel, 1, P, cols, kind, false);                 \
  }

#if V_TILE_PANELS > 1
#define V_PRODUCT_PAIRS(kind)                                                                      \
  for (; panel + 2 <= panels; panel += 2)                                                          \
    body_product_rows_2_##kind(t, panel, t->cols - panel * VN);
#define V_PRODUCT_BOTH(kind) V_PRODUCT_ROWS(1, kind) V_PRODUCT_ROWS(2, kind)
#else
#define V_PRODUCT_PAIRS(kind)
#define V_PRODUCT_BOTH(kind) V_PRODUCT_ROWS(1, kind)
#endif

#ifdef V_FEW_ROWS_PANELS
#define V_PRODUCT_FEW(kind)                                                                        \
  for (; t->rows <= 4 && panel + V_FEW_ROWS_PANELS <= panels; panel += V_FEW_ROWS_PANELS) {        \
    int64_t cols = t->cols - panel * VN;                                                           \
    switch (t->rows) {                                                                             \
    case 1: body_product_block(t, 0, panel, 1, V_FEW_ROWS_PANELS, cols, kind, false); break;       \
    case 2: body_product_block(t, 0, panel, 2, V_FEW_ROWS_PANELS, cols, kind, false); break;       \
    case 3: body_product_block(t, 0, panel, 3, V_FEW_ROWS_PANELS, cols, kind, false); break;       \
    case 4: body_product_block(t, 0, panel, 4, V_FEW_ROWS_PANELS, cols, kind, false); break;       \
    }                                                                                              \
  }
#else
#define V_PRODUCT_FEW(kind)
#endif

#define V_PRODUCT(name, kind)                                                                      \
  V_PRODUCT_BOTH(kind)                                                                             \
  static void name(const att_tile *t) {                                                            \
    int64_t panels = (t->cols + VN - 1) / VN, panel = 0;                                           \
    V_PRODUCT_FEW(kind)                                                                            \
    V_PRODUCT_PAIRS(kind)                                                                          \
    for (; panel < panels; panel++) body_product_rows_1_##kind(t, panel, t->cols - panel * VN);    \
  }
V_PRODUCT(body_tile_product, 0)
V_PRODUCT(body_tile_product_f16, 1)
V_PRODUCT(body_tile_product_bf16, 2)
#undef V_PRODUCT
#undef V_PRODUCT_BOTH
#undef V_PRODUCT_FEW
#undef V_PRODUCT_PAIRS
#undef V_PRODUCT_ROWS
#undef V_A
