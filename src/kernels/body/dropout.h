/* Philox4x32-10 (base/rng.c) for 16 keys of one row at once. The counter's words
 * b, h and i are the row's: of the first three rounds only what the key has
 * reached is done in lanes. Only the first word is used; the compiler drops what
 * leads to others. */

enum { BODY_PHILOX_ROUNDS = 10 };
#define V_PHILOX_A 0xd2511f53u
#define V_PHILOX_B 0xcd9e8d57u

/* What the first rounds make of a row, and every round's keys. */
typedef struct body_philox {
  uint32_t key0[BODY_PHILOX_ROUNDS], key1[BODY_PHILOX_ROUNDS];
  uint32_t third, first, second, last, low; /* the counter's words, joined with keys */
} body_philox;

V_INLINE uint32_t body_high(uint64_t product) { return (uint32_t)(product >> 32); }

static body_philox body_philox_begin(const att_dropout_row *d) {
  body_philox p;
  for (uint32_t r = 0; r < BODY_PHILOX_ROUNDS; r++) {
    p.key0[r] = (uint32_t)d->key + r * 0x9e3779b9u;
    p.key1[r] = (uint32_t)(d->key >> 32) + r * 0xbb67ae85u;
  }
  uint64_t a = (uint64_t)V_PHILOX_A * d->b, b = (uint64_t)V_PHILOX_B * d->i;
  uint32_t first = body_high(b) ^ d->h ^ p.key0[0];
  p.third = body_high(a) ^ p.key1[0];
  p.first = (uint32_t)b ^ p.key0[1];
  uint64_t c = (uint64_t)V_PHILOX_A * first;
  uint64_t e = (uint64_t)V_PHILOX_B * (body_high(c) ^ (uint32_t)a ^ p.key1[1]);
  p.second = body_high(e) ^ p.key0[2];
  p.last = (uint32_t)c ^ p.key1[2];
  p.low = (uint32_t)e;
  return p;
}

V_INLINE vi body_word(uint32_t x) { return vi_set1((int32_t)x); }

/* First words for keys whose numbers are the lanes of `key`. */
V_INLINE vi body_philox_words(const body_philox *p, vi key) {
  vi high, low, c0, c1, c2, c3;
  vi_multiply(&high, &c1, vi_xor(key, body_word(p->third)), V_PHILOX_B); /* round 2 */
  c0 = vi_xor(high, body_word(p->first));
  vi_multiply(&high, &c3, c0, V_PHILOX_A); /* round 3 */
  c0 = vi_xor(c1, body_word(p->second));
  c2 = vi_xor(high, body_word(p->last));
  c1 = body_word(p->low);
  for (int r = 3; r < BODY_PHILOX_ROUNDS; r++) {
    vi other, other_low;
    vi_multiply(&high, &low, c0, V_PHILOX_A);
    vi_multiply(&other, &other_low, c2, V_PHILOX_B);
    c0 = vi_xor(other, vi_xor(c1, body_word(p->key0[r])));
    c2 = vi_xor(high, vi_xor(c3, body_word(p->key1[r])));
    c1 = other_low;
    c3 = low;
  }
  return c0;
}

static void body_dropout_row(const att_dropout_row *d) {
  const body_philox p = body_philox_begin(d);
  /* Unsigned numbers compare like signed ones half the range away. */
  const vi half = vi_set1(INT32_MIN), last = body_word((uint32_t)(d->limit - 1) ^ 0x80000000u);
  const vf factor = v_set1(d->factor), dropped = v_set1(d->limit ? 0.0f : d->factor);
  for (int64_t c = 0; c < d->n; c += VN) {
    vi words = body_philox_words(&p, vi_add(body_word(d->first_key + (uint32_t)c), vi_iota()));
    v_store(d->keep + c, v_select(vi_lt(last, vi_xor(words, half)), factor, dropped));
  }
}
