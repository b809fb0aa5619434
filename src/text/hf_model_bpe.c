/* The model "BPE" of tokenizer.json. */
#include <string.h>

#include "base/line.h"
#include "text/bpe.h"
#include "text/hf.h"

/* The two sides of a merge: "a b", or ["a", "b"]. */
typedef struct sides {
  const char *left, *right;
  size_t left_bytes, right_bytes;
} sides;

static att_status read_sides(sides *out, const att_hf *hf, const att_json_node *merge) {
  const att_json_node *a = merge->child, *b = a ? a->next : NULL;
  if (merge->type == ATT_JSON_ARRAY && merge->count == 2 && a->type == ATT_JSON_STRING &&
      b->type == ATT_JSON_STRING) {
    *out = (sides){a->text, b->text, a->text_bytes, b->text_bytes};
    return ATT_OK;
  }
  if (merge->type == ATT_JSON_STRING) {
    const char *end = merge->text + merge->text_bytes;
    const char *space = memchr(merge->text, ' ', merge->text_bytes);
    if (space && !memchr(space + 1, ' ', (size_t)(end - space - 1))) {
      *out =
          (sides){merge->text, space + 1, (size_t)(space - merge->text), (size_t)(end - space - 1)};
      return ATT_OK;
    }
  }
  return att_hf_fail(hf, ATT_CORRUPT, merge, "a merge must have two sides");
}

static att_status find_side(int32_t *id, const att_hf *hf, const att_json_node *merge,
                            const char *text, size_t n) {
  char quoted[64];
  *id = att_vocab_find(&hf->t->vocab, ATT_BY_PIECE, text, (int64_t)n);
  if (*id >= 0) return ATT_OK;
  return att_hf_fail(hf, ATT_CORRUPT, merge, "a merge needs %s, which is not in the vocabulary",
                     att_quote(quoted, sizeof quoted, text, n));
}

static att_status add_merge(att_hf *hf, att_bpe *bpe, const att_json_node *merge, uint32_t rank,
                            att_list *joined) {
  sides s = {0};
  int32_t left, right, result;
  ATT_TRY(read_sides(&s, hf, merge));
  if (s.left_bytes == 0 || s.right_bytes == 0)
    return att_hf_fail(hf, ATT_CORRUPT, merge, "a merge has an empty side");
  ATT_TRY(find_side(&left, hf, merge, s.left, s.left_bytes));
  ATT_TRY(find_side(&right, hf, merge, s.right, s.right_bytes));
  size_t prefix = strlen(bpe->prefix);
  if (prefix > s.right_bytes) prefix = s.right_bytes;
  joined->n = 0;
  ATT_TRY(att_list_append(joined, s.left, (int64_t)s.left_bytes));
  ATT_TRY(att_list_append(joined, s.right + prefix, (int64_t)(s.right_bytes - prefix)));
  ATT_TRY(find_side(&result, hf, merge, joined->n ? joined->items : "", (size_t)joined->n));
  att_merges_add(&bpe->merges, left, right, (att_merge){rank, result});
  return ATT_OK;
}

static att_status read_merges(att_hf *hf, att_bpe *bpe, const att_json_node *node) {
  const att_json_node *merges;
  uint32_t rank = 0;
  att_list joined;
  ATT_TRY(att_hf_field(&merges, hf, node, "merges", ATT_JSON_ARRAY));
  ATT_TRY(att_merges_create(&bpe->merges, &hf->t->arena, merges->count));
  att_list_init(&joined, hf->t->runtime, 1);
  att_status status = ATT_OK;
  for (const att_json_node *m = merges->child; m && status == ATT_OK; m = m->next)
    status = add_merge(hf, bpe, m, rank++, &joined);
  att_list_free(&joined);
  return status;
}

/* An optional string, "" where there is none. */
static att_status read_affix(const char **out, const att_hf *hf, const att_json_node *node,
                             const char *key) {
  const att_json_node *string;
  ATT_TRY(att_hf_string(&string, hf, node, key));
  *out = "";
  return string ? att_hf_copy(out, hf, string) : ATT_OK;
}

static att_status read_unknown(att_hf *hf, att_bpe *bpe, const att_json_node *node) {
  const att_json_node *token;
  ATT_TRY(att_hf_string(&token, hf, node, "unk_token"));
  bpe->unknown = -1;
  return token ? find_side(&bpe->unknown, hf, token, token->text, token->text_bytes) : ATT_OK;
}

static att_status check_dropout(const att_hf *hf, const att_json_node *node) {
  const att_json_node *dropout = att_json_member(node, "dropout");
  if (dropout == NULL || dropout->type == ATT_JSON_NULL || dropout->number == 0) return ATT_OK;
  return att_hf_fail(hf, ATT_UNSUPPORTED, dropout, "\"dropout\": merges left out at random");
}

att_status att_hf_model_bpe(att_hf *hf, const att_json_node *node) {
  const att_json_node *vocab;
  bool byte_fallback;
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(att_bpe)));
  att_bpe *bpe = memory;
  ATT_TRY(check_dropout(hf, node));
  ATT_TRY(att_hf_field(&vocab, hf, node, "vocab", ATT_JSON_OBJECT));
  ATT_TRY(att_hf_vocabulary_object(hf, vocab));
  ATT_TRY(read_affix(&bpe->prefix, hf, node, "continuing_subword_prefix"));
  ATT_TRY(read_affix(&bpe->suffix, hf, node, "end_of_word_suffix"));
  ATT_TRY(att_hf_bool(&bpe->fuse_unknown, hf, node, "fuse_unk", false));
  ATT_TRY(att_hf_bool(&byte_fallback, hf, node, "byte_fallback", false));
  ATT_TRY(att_hf_bool(&bpe->whole_pieces, hf, node, "ignore_merges", false));
  ATT_TRY(read_unknown(hf, bpe, node));
  ATT_TRY(read_merges(hf, bpe, node));
  if (hf->byte_level && (bpe->prefix[0] != '\0' || bpe->suffix[0] != '\0'))
    return att_hf_fail(hf, ATT_UNSUPPORTED, node,
                       "a byte-level BPE with a prefix or suffix of subwords");
  att_bpe_find_bytes(bpe, &hf->t->vocab, hf->byte_level, byte_fallback);
  ATT_TRY(att_bpe_find_joints(bpe, &hf->t->arena, &hf->t->vocab));
  hf->t->kind = hf->byte_level ? &att_kind_byte_bpe : &att_kind_bpe;
  hf->t->model = bpe;
  return ATT_OK;
}
