/* The tokenizer object: what it answers about itself, and its end. */
#include "text/tokenizer.h"

#include <string.h>

#include "text/added.h"
#include "text/regex.h"

att_status att_tokenizer_create(att_tokenizer **out, const att_runtime *runtime) {
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof(att_tokenizer), "tokenizer"));
  att_tokenizer *t = memory;
  *t = (att_tokenizer){.runtime = runtime, .bos = -1, .eos = -1};
  att_arena_init(&t->arena, runtime);
  att_list_init(&t->regexes, runtime, sizeof(att_regex *));
  *out = t;
  return ATT_OK;
}

void att_tokenizer_free(att_tokenizer *t) {
  if (t == NULL) return;
  att_regex **regexes = t->regexes.items;
  for (int64_t i = 0; i < t->regexes.n; i++) att_regex_free(regexes[i]);
  att_list_free(&t->regexes);
  att_arena_free(&t->arena);
  att_release(t->runtime, t, 1, sizeof *t);
}

const char *att_tokenizer_kind(const att_tokenizer *t) { return t ? t->kind->name : ""; }

int64_t att_tokenizer_size(const att_tokenizer *t) { return t ? t->vocab.size : 0; }

int32_t att_tokenizer_bos(const att_tokenizer *t) { return t ? t->bos : -1; }

static bool has_flag(const att_tokenizer *t, int32_t id, unsigned flag) {
  return t && id >= 0 && id < t->vocab.size && (t->vocab.entries[id].flags & flag) != 0;
}

bool att_tokenizer_is_end(const att_tokenizer *t, int32_t id) {
  return has_flag(t, id, ATT_TOKEN_END);
}

bool att_tokenizer_is_special(const att_tokenizer *t, int32_t id) {
  return has_flag(t, id, ATT_TOKEN_SPECIAL);
}

static att_status entry_of(const att_entry **out, const att_tokenizer *t, int32_t id) {
  if (t == NULL) return att_fail(ATT_BAD_ARGUMENT, "tokenizer is NULL");
  if (id < 0 || id >= t->vocab.size)
    return att_fail(ATT_BAD_ARGUMENT, "token id %d is outside 0 … %lld", id,
                    (long long)t->vocab.size - 1);
  *out = &t->vocab.entries[id];
  return ATT_OK;
}

att_status att_tokenizer_bytes(const char **out, size_t *out_bytes, const att_tokenizer *t,
                               int32_t id) {
  const att_entry *entry = NULL;
  if (out == NULL || out_bytes == NULL) return att_fail(ATT_BAD_ARGUMENT, "out is NULL");
  ATT_TRY(entry_of(&entry, t, id));
  *out = entry->bytes ? entry->bytes : "";
  *out_bytes = entry->n_bytes;
  return ATT_OK;
}

att_status att_tokenizer_piece(const char **out, size_t *out_bytes, const att_tokenizer *t,
                               int32_t id) {
  const att_entry *entry = NULL;
  if (out == NULL || out_bytes == NULL) return att_fail(ATT_BAD_ARGUMENT, "out is NULL");
  ATT_TRY(entry_of(&entry, t, id));
  *out = entry->piece ? entry->piece : "";
  *out_bytes = entry->piece_bytes;
  return ATT_OK;
}

int32_t att_tokenizer_find(const att_tokenizer *t, const char *piece, size_t bytes) {
  if (t == NULL || piece == NULL || bytes > UINT32_MAX) return -1;
  int32_t id = att_vocab_find(&t->vocab, ATT_BY_PIECE, piece, (int64_t)bytes);
  for (int32_t i = 0; id < 0 && t->added && i < t->added->n; i++) {
    const att_added_token *token = &t->added->tokens[i];
    if (token->content_bytes == (int64_t)bytes && memcmp(token->content, piece, bytes) == 0)
      id = token->id;
  }
  return id;
}
