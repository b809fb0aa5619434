/* Philox4x32-10 for 16 keys of one row at once. The counter's words b, h and i
 * are the row's, so the first rounds are scalar in part, and only the first word
 * is used, so the last ones are not finished. Plain loops over lanes: a product
 * of 32 x 32 bits is what compilers know best how to do on each target. */

typedef struct body_words {
  uint32_t lane[VN];
} body_words;

/* High and low halves of a * m in each lane. */
V_INLINE void body_multiply(body_words *high, body_words *low, const body_words *a, uint32_t m) {
  for (int i = 0; i < VN; i++) {
    uint64_t product = (uint64_t)m * a->lane[i];
    high->lane[i] = (uint32_t)(product >> 32);
    low->lane[i] = (uint32_t)product;
  }
}

/* One round of base/rng.c on all lanes. */
V_INLINE void body_philox_round(body_words c[4], uint32_t k0, uint32_t k1) {
  body_words h0, l0, h1, l1;
  body_multiply(&h0, &l0, &c[0], 0xd2511f53);
  body_multiply(&h1, &l1, &c[2], 0xcd9e8d57);
  for (int i = 0; i < VN; i++) {
    c[0].lane[i] = h1.lane[i] ^ c[1].lane[i] ^ k0;
    c[2].lane[i] = h0.lane[i] ^ c[3].lane[i] ^ k1;
  }
  c[1] = l1;
  c[3] = l0;
}

static void body_dropout_row(const att_dropout_row *d) {
  for (int64_t first = 0; first < d->n; first += VN) {
    body_words c[4];
    uint32_t k0 = (uint32_t)d->key, k1 = (uint32_t)(d->key >> 32);
    for (int i = 0; i < VN; i++) {
      c[0].lane[i] = d->b, c[1].lane[i] = d->h, c[2].lane[i] = d->i;
      c[3].lane[i] = d->first_key + (uint32_t)first + (uint32_t)i;
    }
    for (int round = 0; round < 10; round++) {
      body_philox_round(c, k0, k1);
      k0 += 0x9e3779b9;
      k1 += 0xbb67ae85;
    }
    for (int i = 0; i < VN; i++) d->keep[first + i] = c[0].lane[i] < d->limit ? 0.0f : d->factor;
  }
}
