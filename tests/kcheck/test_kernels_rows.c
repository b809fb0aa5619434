/* Row kernels of every target against the definition: lengths around the
 * vector width, unaligned pointers, inputs that end at a guard page, edge
 * values, outputs that alias inputs where the contract allows it. */
#include "kcheck.h"

static const int64_t lengths[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 101, 127, 128, 129, 1000};
enum { n_lengths = sizeof lengths / sizeof lengths[0] };

typedef void unary(float *y, const float *x, int64_t n);

static void check_unary(const candidate *c, const char *name, unary *fast, unary *plain,
                        att_rng *rng, int64_t n, bool in_place) {
  guarded x = guarded_floats(n), a = guarded_floats(n), b = guarded_floats(n);
  kcheck_fill(&x, rng, true);
  if (in_place) {
    memcpy(a.data, x.data, (size_t)n * sizeof(float));
    memcpy(b.data, x.data, (size_t)n * sizeof(float));
  }
  fast(a.data, in_place ? a.data : x.data, n);
  plain(b.data, in_place ? b.data : x.data, n);
  kcheck_same(c, name, a, b, "n = %lld, in place %d\n", (long long)n, in_place);
  guarded_free(&x), guarded_free(&a), guarded_free(&b);
}

static void unary_kernels_differ_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 1, 1);
  for (int i = 0; i < n; i++) {
    const candidate *c = &all[i];
    for (int round = 0; round < 40; round++) {
      int64_t length = lengths[round % n_lengths];
      bool in_place = round % 2;
#define CHECK(kernel)                                                                              \
  check_unary(c, #kernel, c->table.kernel, c->plain.kernel, &rng, length, in_place)
      CHECK(softmax);
      CHECK(gelu_erf);
      CHECK(gelu_tanh);
      CHECK(map_exp);
      CHECK(map_log);
      CHECK(map_tanh);
      CHECK(map_erf);
#undef CHECK
    }
  }
}

static void binary_kernels_differ_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 2, 1);
  for (int i = 0; i < n; i++) {
    for (int round = 0; round < 30; round++) {
      int64_t length = lengths[round % n_lengths];
      guarded x = guarded_floats(length), w = guarded_floats(length), bias = guarded_floats(length);
      guarded out[2] = {guarded_floats(length), guarded_floats(length)};
      kcheck_fill(&x, &rng, round % 3 == 0);
      kcheck_fill(&w, &rng, false);
      kcheck_fill(&bias, &rng, false);
      for (int kernel = 0; kernel < 5; kernel++) {
        for (int side = 0; side < 2; side++) {
          const att_kernels *k = side ? &all[i].plain : &all[i].table;
          float *y = out[side].data;
          switch (kernel) {
          case 0: k->rms_norm(y, x.data, w.data, length, 1e-5f); break;
          case 1: k->layer_norm(y, x.data, w.data, bias.data, length, 1e-5f); break;
          case 2: k->layer_norm(y, x.data, NULL, NULL, length, 1e-12f); break;
          case 3: k->add(y, x.data, w.data, length); break;
          default: k->silu_mul(y, x.data, w.data, length); break;
          }
        }
        kcheck_same(&all[i], "a row kernel", out[0], out[1], "kernel %d, n = %lld\n", kernel,
                    (long long)length);
      }
      guarded_free(&x), guarded_free(&w), guarded_free(&bias);
      guarded_free(&out[0]), guarded_free(&out[1]);
    }
  }
}

static void rotation_differs_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 3, 1);
  for (int i = 0; i < n; i++) {
    for (int r = 0; r < n_lengths; r++) {
      int64_t pairs = lengths[r];
      guarded cosine = guarded_floats(pairs), sine = guarded_floats(pairs);
      guarded a = guarded_floats(2 * pairs);
      kcheck_fill(&cosine, &rng, false);
      kcheck_fill(&sine, &rng, false);
      kcheck_fill(&a, &rng, true);
      guarded b = guarded_copy(&a);
      all[i].table.rope_half(a.data, a.data, cosine.data, sine.data, pairs); /* in place */
      all[i].plain.rope_half(b.data, b.data, cosine.data, sine.data, pairs);
      kcheck_same(&all[i], "rope_half", a, b, "%lld pairs\n", (long long)pairs);
      guarded_free(&a), guarded_free(&b), guarded_free(&cosine), guarded_free(&sine);
    }
  }
}

/* Any bits: denormals, ties, infinities, NaN and all between. */
static void narrowing_differs_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 4, 1);
  for (int i = 0; i < n; i++) {
    for (int round = 0; round < 200; round++) {
      uint32_t bits[129];
      uint16_t fast[130], plain[130];
      float x[129];
      int length = round % 130;
      for (int k = 0; k < length; k++) {
        bits[k] = att_rng_u32(&rng);
        if (round % 3 == 1) bits[k] = (bits[k] & 0x8fffe000u) | 0x38001000u; /* ties in f16 */
        if (round % 3 == 2) bits[k] = (bits[k] & 0xffff0000u) | 0x8000u;     /* and in bf16 */
      }
      memcpy(x, bits, sizeof x);
      for (int type = 0; type < 2; type++) {
        memset(fast, 0x5a, sizeof fast);
        memset(plain, 0x5a, sizeof plain);
        (type ? all[i].table.narrow_bf16 : all[i].table.narrow_f16)(fast, x, length);
        (type ? all[i].plain.narrow_bf16 : all[i].plain.narrow_f16)(plain, x, length);
        for (int k = 0; k < 130; k++)
          if (fast[k] != plain[k])
            fail_msg("%s, type %d: %a gives %04x, not %04x", all[i].table.target, type,
                     (double)x[k], fast[k], plain[k]);
      }
    }
  }
}

/* Any bytes but scales that are no numbers, up to the forbidden page. Kernels may take
 * another way where all scales are above zero, as in files: so they are if asked. */
static unsigned char *packed_bytes(guarded *g, int64_t bytes, bool positive, att_rng *rng) {
  *g = guarded_floats((bytes + 3) / 4);
  unsigned char *first = (unsigned char *)(g->data + g->count) - bytes;
  for (int64_t k = 0; k < bytes; k++) first[k] = (unsigned char)att_rng_u32(rng);
  for (int64_t k = 1; k < bytes; k += 2) { /* wherever a scale may lie */
    if ((first[k] & 0x7c) == 0x7c) first[k] ^= 0x40;
    if (positive) first[k] = (first[k] & 0x7f) | 1;
  }
  return first;
}

static void unpacking_differs_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 5, 1);
  for (int i = 0; i < n; i++) {
    for (int round = 0; round < 60; round++) {
      enum { most = 4, rows = 3 };
      int64_t groups = 1 + round % most;
      for (int kind = 0; kind < 4; kind++) {
        guarded out[2], packed;
        int64_t block = kind % 2 ? 18 : 34, count = groups * block * (kind < 2 ? 16 : rows);
        unsigned char *bytes = packed_bytes(&packed, count, round % 8 < 4, &rng);
        for (int side = 0; side < 2; side++) {
          const att_kernels *k = side ? &all[i].plain : &all[i].table;
          bool four = kind % 2;
          out[side] = guarded_floats(kind < 2 ? groups * 512 : groups * 2 * rows * 16);
          float *to = out[side].data;
          memset(to, 0, (size_t)out[side].count * sizeof *to);
          if (kind < 2)
            (four ? k->unpack_keys_q4 : k->unpack_keys_q8)(to, bytes, groups);
          else
            (four ? k->unpack_values_q4 : k->unpack_values_q8)(to, rows * 16, bytes, rows, groups);
        }
        kcheck_same(&all[i], "an unpacking kernel", out[0], out[1], "kind %d, %lld groups\n", kind,
                    (long long)groups);
        guarded_free(&out[0]), guarded_free(&out[1]), guarded_free(&packed);
      }
    }
  }
}

/* Keys (kind 0, 1) and values (2, 3) of a cache, 8 and 4 bits in turn. */
static void quantised_products_differ_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 6, 1);
  for (int i = 0; i < n; i++) {
    for (int round = 0; round < 80; round++) {
      enum { most = 160 };
      int kind = round % 4, rows = 1 + round % 19; /* all of both */
      int64_t keys = 1 + att_rng_u32(&rng) % most, features = 32 * (1 + att_rng_u32(&rng) % 6);
      int64_t block = kind % 2 ? 18 : 34, cols = kind < 2 ? keys : features;
      int64_t k = kind < 2 ? features : keys;
      int64_t held = kind < 2 ? (keys + 15) / 16 * 16 : keys; /* whole panels; rows */
      guarded packed;
      unsigned char *bytes =
          packed_bytes(&packed, held * features / 32 * block, round % 8 < 4, &rng);
      guarded a = guarded_floats(rows * k), scale = guarded_floats(rows);
      guarded bias = guarded_floats(cols), residual = guarded_floats(rows * cols);
      guarded out[2] = {guarded_floats(rows * cols)};
      kcheck_fill(&a, &rng, false);
      kcheck_fill(&scale, &rng, false);
      kcheck_fill(&bias, &rng, false);
      kcheck_fill(&residual, &rng, false);
      kcheck_fill(&out[0], &rng, false);
      out[1] = guarded_copy(&out[0]);
      for (int side = 0; side < 2; side++) {
        const att_kernels *table = side ? &all[i].plain : &all[i].table;
        att_tile tile = {.c = out[side].data,
                         .c_row = cols,
                         .a = a.data,
                         .a_row = k,
                         .a_k = 1,
                         .b = bytes,
                         .b_panel = features / 32 * block * 16,
                         .b_k = features / 32 * block,
                         .rows = rows,
                         .cols = cols,
                         .k = k,
                         .accumulate = kind >= 2,
                         .scale = kind >= 2 && round % 3 ? scale.data : NULL,
                         .bias = round % 2 ? bias.data : NULL,
                         .residual = round % 5 < 2 ? residual.data : NULL,
                         .residual_row = cols};
        switch (kind) {
        case 0: table->tile_keys_q8(&tile); break;
        case 1: table->tile_keys_q4(&tile); break;
        case 2: table->tile_values_q8(&tile); break;
        default: table->tile_values_q4(&tile); break;
        }
      }
      kcheck_same(&all[i], "a quantised product", out[0], out[1], "kind %d, %d rows, %lld x %lld\n",
                  kind, rows, (long long)cols, (long long)k);
      guarded_free(&a), guarded_free(&scale), guarded_free(&out[0]), guarded_free(&out[1]);
      guarded_free(&bias), guarded_free(&residual), guarded_free(&packed);
    }
  }
}

static void a_nan_is_missed(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  for (int i = 0; i < n; i++) {
    for (int r = 0; r < n_lengths; r++) {
      guarded x = guarded_floats(lengths[r]);
      for (int64_t at = -1; at < lengths[r]; at++) {
        bool found = at < 0;
        for (int64_t j = 0; j < x.count; j++) x.data[j] = j % 2 ? INFINITY : -1.0f;
        if (at >= 0) x.data[at] = NAN;
        all[i].table.find_nan(&found, x.data, x.count);
        assert_int_equal(found, at >= 0);
      }
      guarded_free(&x);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unary_kernels_differ_in_a_bit),
      cmocka_unit_test(binary_kernels_differ_in_a_bit),
      cmocka_unit_test(rotation_differs_in_a_bit),
      cmocka_unit_test(narrowing_differs_in_a_bit),
      cmocka_unit_test(unpacking_differs_in_a_bit),
      cmocka_unit_test(quantised_products_differ_in_a_bit),
      cmocka_unit_test(a_nan_is_missed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
