/* Products with weights of 4 and 6 bits and activations of 8: integers inside a block
 * add up exactly, in whatever order; blocks of 32 steps follow each other.
 *
 * Panels (kernels.h): numbers 4t+b (b = 0 … 3) of lane l are the low halves of bytes
 * 64t + 4l + b, numbers 16+4t+b the high ones, t = 0 … 3. q6_K has two bits more of
 * number 4t+b, t = 0 … 7, at bit 2 (t%4) of byte 64 (t/4) + 4l + b behind those. */

typedef struct ref_block {
  const unsigned char *nibbles, *high; /* high NULL: 4 bits */
  float step[2], least;                /* of each 16 numbers; what is taken away */
  int zero;
} ref_block;

static float ref_half(const unsigned char *at) {
  uint16_t half;
  memcpy(&half, at, sizeof half);
  return att_f16_to_f32(half);
}

static ref_block ref_block_q4_0(const unsigned char *panel, int64_t block, int lane) {
  const unsigned char *at = panel + block * ATT_BLOCKS_Q4_0_BYTES;
  float d = ref_half(at + 2 * lane);
  return (ref_block){.nibbles = at + 32, .step = {d, d}, .zero = 8};
}

static ref_block ref_block_q4_k(const unsigned char *panel, int64_t block, int lane) {
  const unsigned char *super = panel + block / 8 * ATT_BLOCKS_Q4_K_BYTES;
  const unsigned char *at = super + 64 + block % 8 * 288;
  float d = ref_half(super + 2 * lane) * (float)at[lane];
  return (ref_block){.nibbles = at + 32,
                     .step = {d, d},
                     .least = ref_half(super + 32 + 2 * lane) * (float)at[16 + lane]};
}

static ref_block ref_block_q6_k(const unsigned char *panel, int64_t block, int lane) {
  const unsigned char *super = panel + block / 8 * ATT_BLOCKS_Q6_K_BYTES;
  const unsigned char *at = super + 32 + block % 8 * 416;
  float d = ref_half(super + 2 * lane);
  return (ref_block){.nibbles = at + 32,
                     .high = at + 288,
                     .step = {d * (float)(int8_t)at[lane], d * (float)(int8_t)at[16 + lane]},
                     .zero = 32};
}

static int ref_block_number(const ref_block *block, int j, int lane) {
  int at = 64 * (j / 4 % 4) + 4 * lane + j % 4;
  int q = j < 16 ? block->nibbles[at] & 15 : block->nibbles[at] >> 4;
  if (block->high) q |= (block->high[64 * (j / 16) + 4 * lane + j % 4] >> 2 * (j / 4 % 4) & 3) << 4;
  return q - block->zero;
}

/* One block added to a chain. */
static float ref_add_block(float y, const ref_block *block, int lane, const int8_t *a, float d,
                           bool halves, bool minimum) {
  int sum[2] = {0, 0}, all = 0;
  for (int j = 0; j < 32; j++) {
    sum[halves ? j / 16 : 0] += ref_block_number(block, j, lane) * a[j];
    all += a[j];
  }
  for (int i = 0; i <= (halves ? 1 : 0); i++) y = v_fma(block->step[i] * d, (float)sum[i], y);
  if (minimum) y = v_fma(-(block->least * d), (float)all, y);
  return y;
}

#define ATT_REF_BLOCKS(kind, halves, minimum)                                                      \
  static void ref_tile_blocks_##kind(const att_tile_blocks *t) {                                   \
    for (int64_t r = 0; r < t->rows; r++)                                                          \
      for (int64_t n = 0; n < t->cols; n++) {                                                      \
        const unsigned char *panel = (const unsigned char *)t->b + n / ATT_LANES * t->b_panel;     \
        float *c = t->c + r * t->c_row + n, y = t->accumulate ? *c : 0.0f;                         \
        for (int64_t i = 0; i < t->blocks; i++) {                                                  \
          ref_block block = ref_block_##kind(panel, t->first + i, (int)(n % ATT_LANES));           \
          y = ref_add_block(y, &block, (int)(n % ATT_LANES), t->a + r * t->a_row + 32 * i,         \
                            t->scales[r * t->scale_row + i], halves, minimum);                     \
        }                                                                                          \
        if (t->bias) y = y + t->bias[n];                                                           \
        if (t->residual) y = y + t->residual[r * t->residual_row + n];                             \
        *c = y;                                                                                    \
      }                                                                                            \
  }
ATT_REF_BLOCKS(q4_0, false, false)
ATT_REF_BLOCKS(q4_k, false, true)
ATT_REF_BLOCKS(q6_k, true, false)
#undef ATT_REF_BLOCKS

/* d = max|x| / 127, q = x (1/d) to the nearest, halves away from zero. A block that is
 * not finite has d = NaN, one too small to have a 1/d is zeros. */
static void ref_narrow_blocks(int8_t *q, float *scales, int32_t *sums, const float *x, int64_t n) {
  for (int64_t g = 0; g < n; g += 32, x += 32, q += 32) {
    float most = 0;
    bool finite = true;
    for (int j = 0; j < 32; j++) {
      most = most < fabsf(x[j]) ? fabsf(x[j]) : most;
      finite &= fabsf(x[j]) < INFINITY;
    }
    bool some = finite && !(most < 0x1p-100f);
    float d = some ? most / 127.0f : 0.0f, inverse = some ? 1.0f / d : 0.0f;
    sums[g / 16] = sums[g / 16 + 1] = 0;
    for (int j = 0; j < 32; j++) {
      q[j] = some ? (int8_t)(x[j] * inverse + copysignf(0.5f, x[j])) : 0;
      sums[g / 16 + j / 16] += q[j];
    }
    scales[g / 32] = finite ? d : NAN;
  }
}
