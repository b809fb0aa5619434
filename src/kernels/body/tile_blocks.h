/* Products with weights of 4 and 6 bits and activations of 8 (ref/tile_blocks.h tells
 * how they lie): four numbers of each lane times four of the row at a time, summed
 * in integers, then one multiply-add a block in each lane's chain.
 *
 * Where the vocabulary has no product of bytes (V_DOT) the sums are made of floats,
 * which hold integers below 2^24 exactly. A minus sign or a zero point comes off
 * afterwards: sum (q - zero) a = sum q a - zero sum a. */
#ifndef V_DOT
typedef vf vd;
static inline vd vd_zero(void) { return v_set1(0.0f); }
static inline vd vd_add(vd sum, vi weights, int32_t four, const bool wide) {
  (void)wide;
  for (int i = 0; i < 32; i += 8)
    sum = v_fma(v_from_int(vi_and(vi_shr(weights, i), vi_set1(255))),
                v_set1((float)(int8_t)((uint32_t)four >> i)), sum);
  return sum;
}
static inline vf vd_float(vd sum, const bool wide) {
  (void)wide;
  return sum;
}
#endif

#if V_TILE_PANELS > 1
#define V_BLOCK_PANELS 2
#define V_BLOCK_ROWS 4
#else
#define V_BLOCK_PANELS 1
#define V_BLOCK_ROWS (V_TILE_ROWS < 4 ? 1 : 2)
#endif

/* What differs between the types; a constant where it is used. */
typedef enum body_kind { BODY_Q4_0, BODY_Q4_K, BODY_Q6_K } body_kind;

/* Block `g` of a panel: the numbers, and scale and minimum of each lane. */
V_INLINE const unsigned char *body_block_at(const unsigned char *panel, int64_t g,
                                            const body_kind kind, vf step[2], vf *least) {
  if (kind == BODY_Q4_0) {
    const unsigned char *at = panel + g * ATT_BLOCKS_Q4_0_BYTES;
    step[0] = body_key_scales(at);
    return at + 32;
  }
  const unsigned char *super =
      panel + g / 8 * (kind == BODY_Q4_K ? ATT_BLOCKS_Q4_K_BYTES : ATT_BLOCKS_Q6_K_BYTES);
  vf d = body_key_scales(super);
  if (kind == BODY_Q4_K) {
    const unsigned char *at = super + 64 + g % 8 * 288;
    step[0] = v_mul(d, v_from_int(vi_load_u8(at)));
    *least = v_mul(body_key_scales(super + 32), v_from_int(vi_load_u8(at + 16)));
    return at + 32;
  }
  const unsigned char *at = super + 32 + g % 8 * 416;
  step[0] = v_mul(d, v_from_int(vi_load_i8((const int8_t *)at)));
  step[1] = v_mul(d, v_from_int(vi_load_i8((const int8_t *)at + 16)));
  return at + 32;
}

/* Bytes of a block of 32 steps, scales and minima with it. */
V_INLINE int64_t body_block_bytes(const body_kind kind) { return kind == BODY_Q6_K ? 416 : 288; }

/* Four numbers of each lane, from the low or the high half of the bytes. */
V_INLINE vi body_quads(vi bytes, vi high, int t, const bool top, const body_kind kind) {
  vi q = vi_and(top ? vi_shr(bytes, 4) : bytes, vi_set1(0x0f0f0f0f));
  if (kind != BODY_Q6_K) return q;
  return vi_or(q, vi_shl(vi_and(vi_shr(high, 2 * t), vi_set1(0x03030303)), 4));
}

V_INLINE int32_t body_four(const int8_t *a) {
  int32_t four;
  memcpy(&four, a, sizeof four);
  return four;
}

/* sum (q - zero) a of 16 numbers, or of 32. */
V_INLINE vf body_less_zero(vd sum, int zero, int all, const bool wide) {
  vf x = vd_float(sum, wide);
  return zero ? v_sub(x, v_set1((float)(zero * all))) : x;
}

/* The chains of R rows x P panels go on by block g. */
V_INLINE void body_add_block(vf acc[V_TILE_ROWS][V_MOST_PANELS], const att_tile_blocks *t,
                             int64_t row, int64_t panel, int64_t g, const int R, const int P,
                             const body_kind kind) {
  const bool halves = kind == BODY_Q6_K;
  const int zero = kind == BODY_Q4_0 ? 8 : kind == BODY_Q6_K ? 32 : 0;
  for (int p = 0; p < P; p++) {
    vf step[2], least = v_set1(0.0f);
    vd sum[V_BLOCK_ROWS][2];
    const unsigned char *q = body_block_at((const unsigned char *)t->b + (panel + p) * t->b_panel,
                                           t->first + g, kind, step, &least);
    /* The first rows make it wait for memory; the next panels come meanwhile. */
    if (V_FETCHES && row == 0) body_fetch_group(q, P * t->b_panel, body_block_bytes(kind));
    vi high[2] = {vi_set1(0), vi_set1(0)};
    if (halves) high[0] = vi_load_words(q + 256), high[1] = vi_load_words(q + 320);
    for (int r = 0; r < R; r++) sum[r][0] = sum[r][1] = vd_zero();
    for (int i = 0; i < 4; i++) {
      vi bytes = vi_load_words(q + 64 * i);
      vi low = body_quads(bytes, high[0], i, false, kind);
      vi top = body_quads(bytes, high[1], i, true, kind);
      for (int r = 0; r < R; r++) {
        const int8_t *a = t->a + (row + r) * t->a_row + 32 * g + 4 * i;
        sum[r][0] = vd_add(sum[r][0], low, body_four(a), halves);
        sum[r][halves] = vd_add(sum[r][halves], top, body_four(a + 16), halves);
      }
    }
    for (int r = 0; r < R; r++) {
      int64_t at = (row + r) * t->scale_row + g;
      int first = t->sums[2 * at], second = t->sums[2 * at + 1];
      vf d = v_set1(t->scales[at]);
      vf whole = body_less_zero(sum[r][0], zero, halves ? first : first + second, halves);
      acc[r][p] = v_fma(v_mul(step[0], d), whole, acc[r][p]);
      if (halves)
        acc[r][p] =
            v_fma(v_mul(step[1], d), body_less_zero(sum[r][1], zero, second, true), acc[r][p]);
      if (kind == BODY_Q4_K)
        acc[r][p] = v_fma(v_neg(v_mul(least, d)), v_set1((float)(first + second)), acc[r][p]);
    }
  }
}

V_INLINE void body_blocks(const att_tile_blocks *t, int64_t row, int64_t panel, const int R,
                          const int P, const body_kind kind) {
  vf acc[V_TILE_ROWS][V_MOST_PANELS];
  int64_t cols = t->cols - panel * VN;
  float *c = t->c + row * t->c_row + panel * VN;
  att_tile ends = {.c_row = t->c_row,
                   .accumulate = t->accumulate,
                   .bias = t->bias,
                   .residual = t->residual,
                   .residual_row = t->residual_row};
  body_product_begin(acc, &ends, c, row, R, P, cols);
  for (int64_t g = 0; g < t->blocks; g++) body_add_block(acc, t, row, panel, g, R, P, kind);
  body_product_end(acc, &ends, c, row, panel, R, P, cols);
}

/* All rows of P panels. */
#define V_BLOCKS_ROWS(P, kind)                                                                     \
  {                                                                                                \
    int64_t row = 0;                                                                               \
    for (; row + V_BLOCK_ROWS <= t->rows; row += V_BLOCK_ROWS)                                     \
      body_blocks(t, row, panel, V_BLOCK_ROWS, P, kind);                                           \
    for (; V_BLOCK_ROWS > 2 && row + 2 <= t->rows; row += 2)                                       \
      body_blocks(t, row, panel, V_BLOCK_ROWS > 2 ? 2 : 1, P, kind);                               \
    for (; row < t->rows; row++) body_blocks(t, row, panel, 1, P, kind);                           \
  }
#define V_BLOCKS(name, kind)                                                                       \
  static void name(const att_tile_blocks *t) {                                                     \
    int64_t panels = (t->cols + VN - 1) / VN, panel = 0;                                           \
    for (; V_BLOCK_PANELS > 1 && panel + V_BLOCK_PANELS <= panels; panel += V_BLOCK_PANELS)        \
      V_BLOCKS_ROWS(V_BLOCK_PANELS, kind)                                                          \
    for (; panel < panels; panel++) V_BLOCKS_ROWS(1, kind)                                         \
  }
V_BLOCKS(body_tile_blocks_q4_0, BODY_Q4_0)
V_BLOCKS(body_tile_blocks_q4_k, BODY_Q4_K)
V_BLOCKS(body_tile_blocks_q6_k, BODY_Q6_K)
#undef V_BLOCKS
#undef V_BLOCKS_ROWS

#ifndef V_NARROWS
static inline void vi_store_i8(int8_t *p, vi a) {
  float bits[VN];
  int32_t wide[VN];
  v_store(bits, v_float(a));
  memcpy(wide, bits, sizeof wide);
  for (int i = 0; i < VN; i++) p[i] = (int8_t)wide[i];
}
#endif

/* Half a block, rounded; the sum of what it has become. */
V_INLINE int32_t body_narrow_half(int8_t *q, vf x, float inverse) {
  vi whole = v_to_int(v_add(v_mul(x, v_set1(inverse)), v_copysign(v_set1(0.5f), x)));
  vi_store_i8(q, whole);
  return (int32_t)v_tree16(v_from_int(whole)); /* small integers: exact */
}

static void body_narrow_blocks(int8_t *q, float *scales, int32_t *sums, const float *x, int64_t n) {
  for (int64_t g = 0; g < n; g += 32, x += 32, q += 32) {
    vf a = v_load(x), b = v_load(x + VN), infinite = v_set1(INFINITY);
    vm finite = vm_and(v_lt(v_abs(a), infinite), v_lt(v_abs(b), infinite));
    float most = v_max16(v_max(v_max(v_set1(0.0f), v_abs(a)), v_abs(b)));
    bool good = !vm_any(vm_not(finite)), some = good && !(most < 0x1p-100f);
    if (some) {
      float d = most / 127.0f, inverse = 1.0f / d;
      scales[g / 32] = d;
      sums[g / 16] = body_narrow_half(q, a, inverse);
      sums[g / 16 + 1] = body_narrow_half(q + VN, b, inverse);
    } else {
      scales[g / 32] = good ? 0.0f : NAN;
      sums[g / 16] = sums[g / 16 + 1] = 0;
      memset(q, 0, 32);
    }
  }
}
