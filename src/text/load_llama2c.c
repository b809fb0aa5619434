/* llama2.c's tokenizer.bin: a SentencePiece vocabulary for byte-pair encoding.
 *
 *   int32 max_token_length, then per id: float32 score, int32 length, bytes
 *
 * (little-endian). Ids 0, 1, 2 are <unk>, <s>, </s>; 3 … 258 are the tokens of
 * the 256 bytes; the others are pieces in which a space is a space. A text gets
 * a space in front, and <s> before it. max_token_length is not needed, nor
 * trusted. */
#include <math.h>
#include <string.h>

#include "base/line.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/steps.h"

enum { BOS = 1, EOS = 2, BYTE_0 = 3, BYTES_END = BYTE_0 + 256 };

typedef struct reader {
  const unsigned char *bytes;
  size_t n, at;
  const char *name;
} reader;

static uint32_t read_u32(reader *r) {
  const unsigned char *b = r->bytes + r->at;
  r->at += 4;
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* BOS and EOS are written with a newline on each side. */
static void trim_newlines(const char **piece, int64_t *n) {
  if (*n > 2 && (*piece)[0] == '\n' && (*piece)[*n - 1] == '\n') {
    (*piece)++;
    *n -= 2;
  }
}

static unsigned flags_of(int64_t id) {
  unsigned flags = id < BYTE_0 ? ATT_TOKEN_SPECIAL : 0;
  if (id == BOS || id == EOS) flags |= ATT_TOKEN_END;
  if (id >= BYTE_0 && id < BYTES_END) flags |= ATT_TOKEN_BYTE;
  return flags;
}

static att_status read_token(reader *r, att_tokenizer *t, int64_t id) {
  if (r->n - r->at < 8)
    return att_fail(ATT_CORRUPT, "%s: ends after %lld of %lld tokens", r->name, (long long)id,
                    (long long)t->vocab.size);
  uint32_t bits = read_u32(r);
  int32_t length = (int32_t)read_u32(r);
  float score;
  memcpy(&score, &bits, sizeof score);
  if (isnan(score))
    return att_fail(ATT_CORRUPT, "%s: token %lld has score NaN", r->name, (long long)id);
  if (length < 0 || (size_t)length > r->n - r->at)
    return att_fail(ATT_CORRUPT, "%s: token %lld has length %d, %zu bytes are left", r->name,
                    (long long)id, length, r->n - r->at);
  if (length > ATT_DERIVED_MAX)
    return att_fail(ATT_UNSUPPORTED, "%s: token %lld has length %d, over %d", r->name,
                    (long long)id, length, ATT_DERIVED_MAX);
  const char *piece = (const char *)r->bytes + r->at;
  int64_t n = length;
  r->at += (size_t)length;
  unsigned flags = flags_of(id);
  if ((flags & ATT_TOKEN_SPECIAL) != 0) trim_newlines(&piece, &n);
  ATT_TRY(att_vocab_set(&t->vocab, &t->arena, id, piece, n, flags));
  t->vocab.entries[id].score = score;
  if ((flags & ATT_TOKEN_BYTE) == 0) return ATT_OK;
  char byte = (char)(id - BYTE_0);
  if (att_byte_of_piece(piece, n) != (unsigned char)byte)
    return att_fail(ATT_CORRUPT, "%s: token %lld is not <0x%02X>, the token of that byte", r->name,
                    (long long)id, (unsigned char)byte);
  return att_vocab_set_bytes(&t->vocab, &t->arena, (int32_t)id, &byte, 1);
}

static att_status read_vocabulary(reader *r, att_tokenizer *t, int64_t size) {
  if (r->n < 4) return att_fail(ATT_CORRUPT, "%s: %zu bytes are no tokenizer", r->name, r->n);
  if ((uint64_t)size > (r->n - 4) / 8)
    return att_fail(ATT_CORRUPT, "%s: %zu bytes cannot hold %lld tokens", r->name, r->n,
                    (long long)size);
  r->at = 4;
  ATT_TRY(att_vocab_create(&t->vocab, &t->arena, size));
  for (int64_t id = 0; id < size; id++) ATT_TRY(read_token(r, t, id));
  if (r->at != r->n)
    return att_fail(ATT_CORRUPT, "%s: %zu bytes are left behind %lld tokens; another vocabulary?",
                    r->name, r->n - r->at, (long long)size);
  /* Pieces first: "<0x41>" typed in a text must not find the byte's token. */
  for (int pass = 0; pass < 2; pass++)
    for (int32_t id = 0; id < size; id++)
      if (((flags_of(id) & (ATT_TOKEN_SPECIAL | ATT_TOKEN_BYTE)) != 0) == pass)
        att_vocab_index(&t->vocab, ATT_BY_PIECE, id);
  return ATT_OK;
}

static att_status make_model(att_tokenizer *t) {
  void *memory;
  ATT_TRY(att_arena_take(&memory, &t->arena, 1, sizeof(att_bpe)));
  att_bpe *bpe = memory;
  *bpe = (att_bpe){.unknown = -1, .loose_characters = true, .prefix = "", .suffix = ""};
  for (int byte = 0; byte < 256; byte++)
    bpe->byte_ids[byte] = t->vocab.size >= BYTES_END ? BYTE_0 + byte : -1;
  ATT_TRY(att_merges_derive(&bpe->merges, &t->arena, &t->vocab));
  ATT_TRY(att_bpe_find_joints(bpe, &t->arena, &t->vocab));
  t->kind = &att_kind_bpe;
  t->model = bpe;
  return ATT_OK;
}

static void set_steps(att_tokenizer *t) {
  static const att_step normalizers[] = {{att_normalize_prepend, " "}};
  static const att_strip_settings one_space = {" ", 1, 0, true};
  static const att_decode_step decoders[] = {
      {&att_decode_byte_fallback, NULL}, {&att_decode_fuse, NULL}, {&att_decode_strip, &one_space}};
  static const att_template_item single[] = {{BOS, 0, 0}, {-1, 0, 0}};
  static const att_template_item pair[] = {{BOS, 0, 0}, {-1, 0, 0}, {BOS, 0, 1}, {-1, 1, 1}};
  t->bos = BOS;
  t->normalizers = normalizers;
  t->n_normalizers = 1;
  t->decoders = decoders;
  t->n_decoders = 3;
  t->single = (att_template){single, 2};
  t->pair = (att_template){pair, 4};
}

static att_status load(att_tokenizer *t, reader *r, int64_t vocab_size) {
  ATT_TRY(read_vocabulary(r, t, vocab_size));
  ATT_TRY(make_model(t));
  set_steps(t);
  return ATT_OK;
}

att_status att_load_llama2c(att_tokenizer **out, const att_runtime *runtime, const char *bytes,
                            size_t n, const char *name, int64_t vocab_size) {
  if (vocab_size <= BYTE_0 || vocab_size > INT32_MAX)
    return att_fail(ATT_BAD_ARGUMENT,
                    "%s: a tokenizer.bin needs to be told its vocabulary size; got %lld", name,
                    (long long)vocab_size);
  att_tokenizer *t;
  ATT_TRY(att_tokenizer_create(&t, runtime));
  reader r = {(const unsigned char *)bytes, n, 0, name};
  att_status status = load(t, &r, vocab_size);
  if (status != ATT_OK) {
    att_tokenizer_free(t);
    return status;
  }
  *out = t;
  return ATT_OK;
}
