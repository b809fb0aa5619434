/* A merge spelled "left right", as merges.txt and GGUF have it. */
#include <string.h>

#include "base/line.h"
#include "text/merges.h"

static att_status find(int32_t *id, const att_vocab *vocab, const char *text, int64_t n,
                       const att_merge_text *m) {
  char quoted[64];
  *id = att_vocab_find(vocab, ATT_BY_PIECE, text, n);
  if (*id >= 0) return ATT_OK;
  return att_fail(ATT_CORRUPT, "%s %s %lld: %s is not in the vocabulary", m->name, m->unit,
                  (long long)m->number, att_quote(quoted, sizeof quoted, text, (size_t)n));
}

att_status att_merges_add_text(att_merges *merges, const att_vocab *vocab, const att_merge_text *m,
                               uint32_t rank, att_list *joined) {
  const char *space = m->n > 0 ? memchr(m->bytes, ' ', (size_t)m->n) : NULL;
  int32_t left, right, result;
  int64_t cut = space ? space - m->bytes : 0;
  if (space == NULL || memchr(space + 1, ' ', (size_t)(m->n - cut - 1)) != NULL)
    return att_fail(ATT_CORRUPT, "%s %s %lld: a merge must have two sides", m->name, m->unit,
                    (long long)m->number);
  ATT_TRY(find(&left, vocab, m->bytes, cut, m));
  ATT_TRY(find(&right, vocab, space + 1, m->n - cut - 1, m));
  joined->n = 0;
  ATT_TRY(att_list_append(joined, m->bytes, cut));
  ATT_TRY(att_list_append(joined, space + 1, m->n - cut - 1));
  ATT_TRY(find(&result, vocab, joined->n ? joined->items : "", joined->n, m));
  att_merges_add(merges, left, right, (att_merge){rank, result});
  return ATT_OK;
}
