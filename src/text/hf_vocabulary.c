/* The vocabulary of a tokenizer.json: the model's pieces, the added tokens, and
 * the bytes that each of them stands for in a text. */
#include <string.h>

#include "base/line.h"
#include "text/added.h"
#include "text/byte_alphabet.h"
#include "text/hf.h"

/* Ids may have holes, but a table indexed by id must stay in proportion. */
static bool is_far_out(int64_t id, int64_t n) { return id > 16 * n + 65536; }

static att_status check_id(const att_hf *hf, const att_json_node *id, int64_t n) {
  if (id == NULL || id->type != ATT_JSON_NUMBER || !id->is_integer || id->integer < 0)
    return att_hf_fail(hf, ATT_CORRUPT, id, "a token's id must be a whole number, at least 0");
  if (is_far_out(id->integer, n) || id->integer >= INT32_MAX)
    return att_hf_fail(hf, ATT_UNSUPPORTED, id, "id %lld in a vocabulary of %lld tokens",
                       (long long)id->integer, (long long)n);
  return ATT_OK;
}

/* The list of added tokens, or NULL. */
static att_status added_list(const att_json_node **out, const att_hf *hf) {
  const att_json_node *root = att_json_root(hf->json), *list;
  list = att_json_member(root, "added_tokens");
  *out = NULL;
  if (list == NULL || list->type == ATT_JSON_NULL) return ATT_OK;
  if (list->type != ATT_JSON_ARRAY)
    return att_hf_fail(hf, ATT_CORRUPT, list, "\"added_tokens\" is not an array");
  *out = list;
  return ATT_OK;
}

att_status att_hf_vocabulary(att_hf *hf, int64_t largest_id, int64_t n) {
  const att_json_node *list;
  ATT_TRY(added_list(&list, hf));
  for (const att_json_node *token = list ? list->child : NULL; token; token = token->next) {
    const att_json_node *id = att_json_member(token, "id");
    if (id == NULL) return att_hf_fail(hf, ATT_CORRUPT, token, "an added token has no \"id\"");
    ATT_TRY(check_id(hf, id, n + list->count));
    if (id->integer > largest_id) largest_id = id->integer;
  }
  return att_vocab_create(&hf->t->vocab, &hf->t->arena, largest_id + 1);
}

/* What a piece of a byte-level vocabulary stands for. */
static att_status spell_bytes(att_hf *hf, int32_t id) {
  att_vocab *vocab = &hf->t->vocab;
  const att_entry *entry = &vocab->entries[id];
  void *bytes;
  ATT_TRY(att_hf_take(&bytes, hf, entry->piece_bytes + 1, 1));
  int64_t n = att_bytes_of_piece(bytes, entry->piece, entry->piece_bytes);
  if (n < 0) return ATT_OK;
  vocab->entries[id].bytes = bytes;
  vocab->entries[id].n_bytes = (uint32_t)n;
  return ATT_OK;
}

att_status att_hf_set_piece(att_hf *hf, const att_json_node *at, int64_t id, const char *piece,
                            size_t n, unsigned flags) {
  att_vocab *vocab = &hf->t->vocab;
  char a[64], b[64];
  const att_entry *other = &vocab->entries[id];
  if (other->flags != 0)
    return att_hf_fail(hf, ATT_CORRUPT, at, "tokens %s and %s have the same id %lld",
                       att_quote(a, sizeof a, other->piece, other->piece_bytes),
                       att_quote(b, sizeof b, piece, n), (long long)id);
  ATT_TRY(att_vocab_set(vocab, &hf->t->arena, id, piece, (int64_t)n, flags));
  /* The model must not find what is only an added token. */
  bool of_model = (flags & ATT_TOKEN_ADDED) == 0;
  if (of_model) att_vocab_index(vocab, ATT_BY_PIECE, (int32_t)id);
  if (!hf->byte_level) return ATT_OK;
  const char *same = vocab->entries[id].bytes;
  ATT_TRY(spell_bytes(hf, (int32_t)id));
  if (of_model && vocab->entries[id].bytes != same)
    att_vocab_index(vocab, ATT_BY_BYTES, (int32_t)id);
  return ATT_OK;
}

att_status att_hf_vocabulary_object(att_hf *hf, const att_json_node *object) {
  int64_t largest = -1;
  for (const att_json_node *id = object->child; id; id = id->next) {
    ATT_TRY(check_id(hf, id, object->count));
    if (id->integer > largest) largest = id->integer;
  }
  ATT_TRY(att_hf_vocabulary(hf, largest, object->count));
  for (const att_json_node *id = object->child; id; id = id->next)
    ATT_TRY(att_hf_set_piece(hf, id, id->integer, id->key, id->key_bytes, 0));
  return ATT_OK;
}

static att_status read_added(att_added_token *out, att_hf *hf, const att_json_node *node) {
  const att_json_node *content;
  char quoted[64];
  ATT_TRY(att_hf_field(&content, hf, node, "content", ATT_JSON_STRING));
  if (content->text_bytes == 0)
    return att_hf_fail(hf, ATT_CORRUPT, content, "an empty added token");
  ATT_TRY(att_hf_bool(&out->single_word, hf, node, "single_word", false));
  ATT_TRY(att_hf_bool(&out->lstrip, hf, node, "lstrip", false));
  ATT_TRY(att_hf_bool(&out->rstrip, hf, node, "rstrip", false));
  ATT_TRY(att_hf_bool(&out->special, hf, node, "special", false));
  ATT_TRY(att_hf_bool(&out->normalized, hf, node, "normalized", !out->special));

  att_vocab *vocab = &hf->t->vocab;
  int64_t stated = att_json_member(node, "id")->integer;
  unsigned flags = ATT_TOKEN_ADDED | (out->special ? ATT_TOKEN_SPECIAL : 0);
  out->id = att_vocab_find(vocab, ATT_BY_PIECE, content->text, (int64_t)content->text_bytes);
  if (out->id < 0) {
    out->id = (int32_t)stated;
    ATT_TRY(att_hf_set_piece(hf, node, stated, content->text, content->text_bytes, flags));
  } else if (out->id != stated) {
    return att_hf_fail(hf, ATT_CORRUPT, node, "added token %s has id %lld here and %d in the model",
                       att_quote(quoted, sizeof quoted, content->text, content->text_bytes),
                       (long long)stated, out->id);
  }
  vocab->entries[out->id].flags |= flags;
  out->content = vocab->entries[out->id].piece;
  out->content_bytes = vocab->entries[out->id].piece_bytes;
  return ATT_OK;
}

att_status att_hf_added_tokens(att_hf *hf) {
  const att_json_node *list;
  void *memory;
  ATT_TRY(added_list(&list, hf));
  if (list == NULL || list->count == 0) return ATT_OK;
  ATT_TRY(att_hf_take(&memory, hf, list->count, sizeof(att_added_token)));
  att_added_token *tokens = memory;
  int32_t n = 0;
  for (const att_json_node *node = list->child; node; node = node->next)
    ATT_TRY(read_added(&tokens[n++], hf, node));
  return att_added_create(hf->t, tokens, n);
}

/* How a piece is written: spaces for their stand-in, no mark of continuation. */
static int64_t plain_spelling(char *out, const att_hf *hf, const char *piece, int64_t n) {
  int64_t space = hf->space ? (int64_t)strlen(hf->space) : 0, written = 0, at = 0;
  int64_t prefix = hf->word_prefix ? (int64_t)strlen(hf->word_prefix) : 0;
  if (prefix > 0 && n > prefix && memcmp(piece, hf->word_prefix, (size_t)prefix) == 0) at = prefix;
  while (at < n) {
    bool is_space =
        space > 0 && n - at >= space && memcmp(piece + at, hf->space, (size_t)space) == 0;
    out[written++] = is_space ? ' ' : piece[at];
    at += is_space ? space : 1;
  }
  return written;
}

att_status att_hf_spell(att_hf *hf) {
  att_vocab *vocab = &hf->t->vocab;
  if (hf->byte_level) return ATT_OK;
  for (int32_t id = 0; id < vocab->size; id++) {
    att_entry *entry = &vocab->entries[id];
    if (entry->flags == 0 || (entry->flags & ATT_TOKEN_ADDED) != 0) continue;
    void *bytes;
    ATT_TRY(att_hf_take(&bytes, hf, entry->piece_bytes + 1, 1));
    int byte = (entry->flags & ATT_TOKEN_BYTE) != 0
                   ? att_byte_of_piece(entry->piece, entry->piece_bytes)
                   : -1;
    if (byte >= 0) *(char *)bytes = (char)byte;
    entry->n_bytes =
        byte >= 0 ? 1 : (uint32_t)plain_spelling(bytes, hf, entry->piece, entry->piece_bytes);
    entry->bytes = bytes;
  }
  return ATT_OK;
}
