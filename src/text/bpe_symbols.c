/* Byte-pair encoding, from a piece of text to its first symbols: bytes for a
 * byte-level vocabulary, characters for the others. A character that is no
 * symbol becomes its bytes where the vocabulary has tokens for bytes, else the
 * unknown token. */
#include <string.h>

#include "base/line.h"
#include "text/bpe.h"

void att_bpe_find_bytes(att_bpe *bpe, att_vocab *vocab, bool byte_level, bool byte_fallback) {
  for (int i = 0; i < 256; i++) {
    char byte = (char)i;
    bpe->byte_ids[i] = -1;
    if (byte_level) {
      bpe->byte_ids[i] = att_vocab_find(vocab, ATT_BY_BYTES, &byte, 1);
    } else if (byte_fallback) {
      bpe->byte_ids[i] = att_vocab_find_byte(vocab, (unsigned char)i);
      if (bpe->byte_ids[i] >= 0) vocab->entries[bpe->byte_ids[i]].flags |= ATT_TOKEN_BYTE;
    }
  }
}

static att_status cannot_express(const char *bytes, int64_t n, uint32_t at) {
  char quoted[64];
  return att_fail(ATT_UNSUPPORTED, "the vocabulary has no token for %s at byte %u",
                  att_quote(quoted, sizeof quoted, bytes, (size_t)n), at);
}

static att_status encode_bytes(att_job *job, uint32_t begin, uint32_t end) {
  const att_bpe *bpe = job->tokenizer->model;
  const char *text = job->text.bytes;
  if (bpe->whole_pieces) {
    int32_t id = att_vocab_find(&job->tokenizer->vocab, ATT_BY_BYTES, text + begin, end - begin);
    if (id >= 0) return att_job_emit(job, id, begin, end);
  }
  int64_t first = job->tokens.n;
  ATT_TRY(att_list_reserve(&job->tokens, end - begin));
  att_token *tokens = job->tokens.items;
  for (uint32_t i = begin; i < end; i++) {
    int32_t id = bpe->byte_ids[(unsigned char)text[i]];
    if (id < 0) return cannot_express(text + i, 1, att_text_origin(&job->text, i, i + 1).begin);
    tokens[job->tokens.n++] = (att_token){id, i, i + 1};
  }
  return att_bpe_merge(job, bpe, first);
}

const att_kind att_kind_byte_bpe = {"byte-bpe", encode_bytes};

/* Length of the character at text[0 … n-1]. Among loose characters the first
 * is the space put in front of the text, which takes no byte along. */
static uint32_t character(const att_bpe *bpe, const char *text, uint32_t n, bool first) {
  uint32_t code, length = 1;
  if (!bpe->loose_characters) return (uint32_t)att_char_next(&code, text, n);
  while (!first && length < n && length < 4 && ((unsigned char)text[length] & 0xC0) == 0x80)
    length++;
  return length;
}

/* The id of a character as a symbol, with what the vocabulary writes around
 * symbols inside and at the end of a piece. */
static int32_t symbol_id(const att_job *job, const char *text, uint32_t n, bool begins, bool ends) {
  const att_bpe *bpe = job->tokenizer->model;
  const char *prefix = begins ? "" : bpe->prefix, *suffix = ends ? bpe->suffix : "";
  if (prefix[0] == '\0' && suffix[0] == '\0')
    return att_vocab_find(&job->tokenizer->vocab, ATT_BY_PIECE, text, n);
  char spelled[128];
  size_t before = strlen(prefix), behind = strlen(suffix);
  if (before + n + behind > sizeof spelled) return -1;
  memcpy(spelled, prefix, before);
  memcpy(spelled + before, text, n);
  memcpy(spelled + before + n, suffix, behind);
  return att_vocab_find(&job->tokenizer->vocab, ATT_BY_PIECE, spelled,
                        (int64_t)(before + n + behind));
}

static bool has_byte_tokens(const att_bpe *bpe, const char *text, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (bpe->byte_ids[(unsigned char)text[i]] < 0) return false;
  return true;
}

static att_status emit_unknown(att_job *job, uint32_t at, uint32_t n, bool follows_unknown) {
  const att_bpe *bpe = job->tokenizer->model;
  if (bpe->unknown < 0)
    return cannot_express(job->text.bytes + at, n, att_text_origin(&job->text, at, at + n).begin);
  if (follows_unknown && bpe->fuse_unknown) {
    att_token *last = (att_token *)job->tokens.items + job->tokens.n - 1;
    last->end = at + n;
    return ATT_OK;
  }
  return att_job_emit(job, bpe->unknown, at, at + n);
}

static att_status encode_characters(att_job *job, uint32_t begin, uint32_t end) {
  const att_bpe *bpe = job->tokenizer->model;
  const char *text = job->text.bytes;
  if (bpe->whole_pieces) {
    int32_t id = att_vocab_find(&job->tokenizer->vocab, ATT_BY_PIECE, text + begin, end - begin);
    if (id >= 0) return att_job_emit(job, id, begin, end);
  }
  int64_t first = job->tokens.n;
  bool unknown = false;
  for (uint32_t at = begin, n; at < end; at += n) {
    n = character(bpe, text + at, end - at, at == 0);
    int32_t id = symbol_id(job, text + at, n, at == begin, at + n == end);
    if (id >= 0) {
      ATT_TRY(att_job_emit(job, id, at, at + n));
      unknown = false;
    } else if (has_byte_tokens(bpe, text + at, n)) {
      for (uint32_t i = at; i < at + n; i++)
        ATT_TRY(att_job_emit(job, bpe->byte_ids[(unsigned char)text[i]], i, i + 1));
      unknown = false;
    } else {
      ATT_TRY(emit_unknown(job, at, n, unknown));
      unknown = true;
    }
  }
  return att_bpe_merge(job, bpe, first);
}

const att_kind att_kind_bpe = {"spm-bpe", encode_characters};
