/* Deflate, unpacked (RFC 1951).
 *
 * Blocks are stored, or symbols of prefix codes: bytes, an end, and copies of what was
 * written before. Codes are canonical, so that the lengths say all: symbols sorted by
 * length, then number, and how many there are of each length. A symbol is found bit by
 * bit, which is plain and fast enough for dumps. */
#include "io/npz.h"

#include <string.h>

enum { LONGEST = 15, LITERALS = 288, DISTANCES = 30, END = 256 };

typedef struct stream {
  const unsigned char *in;
  size_t n, at;
  uint32_t held; /* bits that are read and not yet taken */
  int count;
  unsigned char *out;
  size_t room, written;
} stream;

typedef struct code {
  uint16_t count[LONGEST + 1]; /* symbols of each length */
  uint16_t symbol[LITERALS];   /* by length, then number */
} code;

/* The next n <= 16 bits, the first one lowest; -1 at the end. */
static int take(stream *s, int n) {
  while (s->count < n) {
    if (s->at == s->n) return -1;
    s->held |= (uint32_t)s->in[s->at++] << s->count;
    s->count += 8;
  }
  const int value = (int)(s->held & ((1u << n) - 1));
  s->held >>= n, s->count -= n;
  return value;
}

/* False for lengths that more bit strings would need than there are; of too few, those
 * without a symbol are refused when they are met. */
static bool make_code(code *c, const uint8_t *lengths, int n) {
  uint16_t next[LONGEST + 2] = {0};
  memset(c->count, 0, sizeof c->count);
  for (int i = 0; i < n; i++) c->count[lengths[i]]++;
  c->count[0] = 0;
  int left = 1;
  for (int length = 1; length <= LONGEST; length++) {
    left = 2 * left - c->count[length];
    if (left < 0) return false;
    next[length + 1] = (uint16_t)(next[length] + c->count[length]);
  }
  for (int i = 0; i < n; i++)
    if (lengths[i]) c->symbol[next[lengths[i]]++] = (uint16_t)i;
  return true;
}

static int decode(stream *s, const code *c) {
  int bits = 0, first = 0, index = 0;
  for (int length = 1; length <= LONGEST; length++) {
    const int bit = take(s, 1);
    if (bit < 0) return -1;
    bits = bits << 1 | bit;
    if (bits - first < c->count[length]) return c->symbol[index + bits - first];
    index += c->count[length];
    first = (first + c->count[length]) << 1;
  }
  return -1;
}

static bool copy_stored(stream *s) {
  s->held = 0, s->count = 0; /* to the next whole byte */
  if (s->n - s->at < 4) return false;
  const unsigned char *p = s->in + s->at;
  const size_t length = p[0] | (size_t)p[1] << 8, check = p[2] | (size_t)p[3] << 8;
  s->at += 4;
  if ((length ^ check) != 0xffff || length > s->n - s->at || length > s->room - s->written)
    return false;
  memcpy(s->out + s->written, s->in + s->at, length);
  s->at += length, s->written += length;
  return true;
}

/* A base and how many bits are added to it. */
typedef struct reach {
  uint16_t base;
  uint8_t bits;
} reach;

static bool copy_back(stream *s, int length_symbol, const code *distances) {
  static const reach lengths[] = {
      {3, 0},  {4, 0},  {5, 0},  {6, 0},   {7, 0},   {8, 0},   {9, 0},   {10, 0},  {11, 1}, {13, 1},
      {15, 1}, {17, 1}, {19, 2}, {23, 2},  {27, 2},  {31, 2},  {35, 3},  {43, 3},  {51, 3}, {59, 3},
      {67, 4}, {83, 4}, {99, 4}, {115, 4}, {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}};
  static const reach back[DISTANCES] = {
      {1, 0},     {2, 0},     {3, 0},     {4, 0},      {5, 1},      {7, 1},
      {9, 2},     {13, 2},    {17, 3},    {25, 3},     {33, 4},     {49, 4},
      {65, 5},    {97, 5},    {129, 6},   {193, 6},    {257, 7},    {385, 7},
      {513, 8},   {769, 8},   {1025, 9},  {1537, 9},   {2049, 10},  {3073, 10},
      {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}};
  const int i = length_symbol - END - 1;
  if (i >= (int)(sizeof lengths / sizeof *lengths)) return false;
  const int more = take(s, lengths[i].bits), d = decode(s, distances);
  if (more < 0 || d < 0 || d >= DISTANCES) return false;
  const int far = take(s, back[d].bits);
  if (far < 0) return false;
  const size_t length = (size_t)(lengths[i].base + more), distance = (size_t)(back[d].base + far);
  if (distance > s->written || length > s->room - s->written) return false;
  for (size_t k = 0; k < length; k++, s->written++) /* may reach into what it writes */
    s->out[s->written] = s->out[s->written - distance];
  return true;
}

static bool read_symbols(stream *s, const code *literals, const code *distances) {
  for (;;) {
    const int symbol = decode(s, literals);
    if (symbol < 0) return false;
    if (symbol == END) return true;
    if (symbol > END) {
      if (!copy_back(s, symbol, distances)) return false;
      continue;
    }
    if (s->written == s->room) return false;
    s->out[s->written++] = (unsigned char)symbol;
  }
}

static bool read_fixed(stream *s) {
  uint8_t lengths[LITERALS];
  code literals, distances;
  for (int i = 0; i < LITERALS; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  make_code(&literals, lengths, LITERALS);
  memset(lengths, 5, DISTANCES);
  make_code(&distances, lengths, DISTANCES);
  return read_symbols(s, &literals, &distances);
}

/* n lengths, themselves coded, with repeats. */
static bool read_lengths(stream *s, uint8_t *out, int n, const code *c) {
  static const struct {
    int least, bits;
  } repeats[] = {{3, 2}, {3, 3}, {11, 7}}; /* of the last one; of none, twice */
  for (int i = 0; i < n;) {
    const int symbol = decode(s, c);
    if (symbol < 0) return false;
    if (symbol < 16) {
      out[i++] = (uint8_t)symbol;
      continue;
    }
    const int more = take(s, repeats[symbol - 16].bits);
    int times = repeats[symbol - 16].least + more;
    if (more < 0 || times > n - i || (symbol == 16 && i == 0)) return false;
    for (const uint8_t value = symbol == 16 ? out[i - 1] : 0; times > 0; times--) out[i++] = value;
  }
  return true;
}

static bool read_dynamic(stream *s) {
  static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15};
  uint8_t lengths[LITERALS + 32] = {0};
  code own, literals, distances;
  const int n_literals = take(s, 5), n_distances = take(s, 5), n_own = take(s, 4);
  if (n_literals < 0 || n_distances < 0 || n_own < 0) return false;
  if (n_literals + 257 > 286 || n_distances + 1 > DISTANCES) return false;
  for (int i = 0; i < n_own + 4; i++) {
    const int length = take(s, 3);
    if (length < 0) return false;
    lengths[order[i]] = (uint8_t)length;
  }
  if (!make_code(&own, lengths, 19)) return false;
  if (!read_lengths(s, lengths, n_literals + 257 + n_distances + 1, &own)) return false;
  if (lengths[END] == 0 || !make_code(&literals, lengths, n_literals + 257)) return false;
  if (!make_code(&distances, lengths + n_literals + 257, n_distances + 1)) return false;
  return read_symbols(s, &literals, &distances);
}

bool att_inflate(unsigned char *out, size_t bytes, const unsigned char *in, size_t n) {
  stream s = {.in = in, .n = n, .out = out, .room = bytes};
  for (int last = 0; !last;) {
    last = take(&s, 1);
    const int kind = take(&s, 2);
    if (last < 0 || kind < 0 || kind == 3) return false;
    if (!(kind == 0 ? copy_stored(&s) : kind == 1 ? read_fixed(&s) : read_dynamic(&s)))
      return false;
  }
  return s.written == bytes && s.at == n;
}
