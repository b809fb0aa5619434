/* Precompiled: SentencePiece's own normalization, a table of replacements.
 *
 * The field is base64 of: uint32 length of the trie in bytes, the trie, then
 * the replacements, each ending in a zero. The trie is a double array of 32-bit
 * units (the "darts-clone" layout), whose values are places in the last part:
 *
 *   bit 8   a value hangs below this unit   bits 0-7  label
 *   bit 9   the offset is shifted by 8      bits 10-  offset
 *
 * A grapheme cluster of at most five bytes is looked up whole; if that fails,
 * and for longer ones, each character is. What counts is the shortest key that
 * the text begins with, as the makers of such files do it. */
#include <string.h>

#include "text/hf.h"
#include "text/normalize.h"
#include "text/vocab_models.h"

enum { CLUSTER_MAX = 5 };

typedef struct charsmap {
  const unsigned char *units;
  int64_t n_units;
  const char *replacements;
  int64_t n_replacements;
} charsmap;

static uint32_t read_u32(const unsigned char *b) {
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool unit_at(uint32_t *unit, const charsmap *map, uint64_t at) {
  if (at >= (uint64_t)map->n_units) return false;
  *unit = read_u32(map->units + 4 * at);
  return true;
}

static uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
static bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
static uint32_t label_of(uint32_t unit) { return unit & (1u << 31 | 0xFF); }

/* The replacement of the shortest key that text[0 … n-1] begins with; NULL if
 * there is none. */
static const char *find(int64_t *length, const charsmap *map, const char *text, int64_t n) {
  uint32_t unit;
  if (!unit_at(&unit, map, 0)) return NULL;
  uint64_t at = offset_of(unit);
  for (int64_t i = 0; i < n && text[i] != '\0'; i++) {
    unsigned char byte = (unsigned char)text[i];
    at ^= byte;
    if (!unit_at(&unit, map, at) || label_of(unit) != byte) return NULL;
    at ^= offset_of(unit);
    if (!has_value(unit)) continue;
    if (!unit_at(&unit, map, at)) return NULL;
    int64_t value = unit & 0x7FFFFFFF;
    if (value >= map->n_replacements) return NULL;
    const char *replacement = map->replacements + value;
    const char *end = memchr(replacement, '\0', (size_t)(map->n_replacements - value));
    *length = end ? end - replacement : map->n_replacements - value;
    return replacement;
  }
  return NULL;
}

static int64_t count_characters(const char *text, int64_t n) {
  int64_t count = 0;
  uint32_t code;
  for (int64_t at = 0; at < n; count++) at += att_char_next(&code, text + at, n - at);
  return count;
}

/* Writes a replacement for the next `old` characters: character for character,
 * what is over being inserted or left out at the end. */
static att_status replace(att_rewrite *r, int64_t old, const char *text, int64_t n) {
  int64_t fresh = count_characters(text, n), written = 0;
  for (int64_t at = 0; at < n; written++) {
    uint32_t code;
    at += att_char_next(&code, text + at, n - at);
    bool last = written == fresh - 1;
    int change = written >= old ? 1 : last && fresh < old ? (int)(fresh - old) : 0;
    ATT_TRY(att_rewrite_change(r, code, change));
  }
  for (int64_t i = 0; fresh == 0 && i < old; i++) att_rewrite_skip(r);
  return ATT_OK;
}

/* The end of the grapheme cluster that begins at `at`. */
static int64_t cluster_end(const att_text *text, int64_t at) {
  uint32_t before, after;
  int32_t state = 0;
  at += att_char_next(&before, text->bytes + at, text->n - at);
  while (at < text->n) {
    int length = att_char_next(&after, text->bytes + at, text->n - at);
    if (att_char_breaks(before, after, &state)) break;
    before = after;
    at += length;
  }
  return at;
}

static att_status run(att_job *job, const void *settings) {
  const charsmap *map = settings;
  const att_text *text = &job->text;
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  while (att_rewrite_more(&r)) {
    int64_t end = cluster_end(text, r.at), n = end - r.at, length;
    const char *found = n <= CLUSTER_MAX ? find(&length, map, text->bytes + r.at, n) : NULL;
    if (found) {
      ATT_TRY(replace(&r, count_characters(text->bytes + r.at, n), found, length));
      continue;
    }
    while (r.at < end) {
      found = r.bad ? NULL : find(&length, map, text->bytes + r.at, r.length);
      ATT_TRY(found ? replace(&r, 1, found, length) : att_rewrite_keep(&r));
    }
  }
  att_rewrite_end(&r);
  return ATT_OK;
}

const char *att_precompiled_of(int64_t *n, const att_tokenizer *t) {
  for (int i = 0; i < t->n_normalizers; i++) {
    if (t->normalizers[i].run != run) continue;
    const charsmap *map = t->normalizers[i].settings;
    *n = 4 + 4 * map->n_units + map->n_replacements;
    return (const char *)map->units - 4; /* the length of the trie lies before it */
  }
  return NULL;
}

static int digit_of(char c) {
  return c >= 'A' && c <= 'Z'   ? c - 'A'
         : c >= 'a' && c <= 'z' ? c - 'a' + 26
         : c >= '0' && c <= '9' ? c - '0' + 52
         : c == '+'             ? 62
         : c == '/'             ? 63
                                : -1;
}

/* Base64, padded. Returns the number of bytes, or -1. */
static int64_t decode_base64(unsigned char *out, const char *text, int64_t n) {
  int64_t written = 0, padding = 0;
  if (n % 4 != 0) return -1;
  while (padding < 2 && padding < n && text[n - 1 - padding] == '=') padding++;
  uint32_t bits = 0;
  for (int64_t i = 0; i < n; i++) {
    int digit = i >= n - padding ? 0 : digit_of(text[i]);
    if (digit < 0) return -1;
    bits = bits << 6 | (uint32_t)digit;
    if (i % 4 != 3) continue;
    for (int shift = 16; shift >= 0; shift -= 8) out[written++] = (unsigned char)(bits >> shift);
    bits = 0;
  }
  return written - padding;
}

/* Takes `bytes`, which live as long as the tokenizer. */
static att_status add_map(att_hf *hf, const unsigned char *bytes, int64_t n,
                          const att_json_node *at) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(charsmap)));
  int64_t trie = read_u32(bytes);
  if (trie > n - 4 || trie % 4 != 0)
    return att_hf_fail(hf, ATT_CORRUPT, at, "a trie of %lld bytes in a charsmap of %lld",
                       (long long)trie, (long long)n);
  charsmap *map = memory;
  *map = (charsmap){bytes + 4, trie / 4, (const char *)bytes + 4 + trie, n - 4 - trie};
  return att_hf_add_normalizer(hf, run, map);
}

att_status att_precompiled_make(att_hf *hf, const char *bytes, int64_t n) {
  void *copy;
  if (n < 4) return att_fail(ATT_CORRUPT, "%s: a charsmap of %lld bytes", hf->name, (long long)n);
  ATT_TRY(att_hf_take(&copy, hf, n, 1));
  memcpy(copy, bytes, (size_t)n);
  return add_map(hf, copy, n, NULL);
}

att_status att_hf_normalizer_precompiled(att_hf *hf, const att_json_node *node) {
  const att_json_node *text;
  void *bytes;
  ATT_TRY(att_hf_field(&text, hf, node, "precompiled_charsmap", ATT_JSON_STRING));
  ATT_TRY(att_hf_take(&bytes, hf, (int64_t)text->text_bytes + 3, 1));
  int64_t n = decode_base64(bytes, text->text, (int64_t)text->text_bytes);
  if (n < 4) return att_hf_fail(hf, ATT_CORRUPT, text, "the charsmap is no base64 of a table");
  return add_map(hf, bytes, n, text);
}
