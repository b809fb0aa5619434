/* vocab.json and merges.txt, the two files of a GPT-2-style tokenizer:
 * {"piece": id, …} in the byte alphabet, and a line "left right" per merge,
 * earliest first, below a line "#version …". Pieces are cut by GPT-2's pattern.
 * "<|endoftext|>" is the one special token. */
#include <string.h>

#include "text/added.h"
#include "text/bpe.h"
#include "text/hf.h"

static const char end_of_text[] = "<|endoftext|>";

typedef struct line {
  const char *bytes;
  int64_t n;
} line;

static line next_line(line *rest) {
  const char *newline = memchr(rest->bytes, '\n', (size_t)rest->n);
  int64_t n = newline ? newline - rest->bytes : rest->n;
  line taken = {rest->bytes, n > 0 && rest->bytes[n - 1] == '\r' ? n - 1 : n};
  int64_t gone = newline ? n + 1 : n;
  *rest = (line){rest->bytes + gone, rest->n - gone};
  return taken;
}

static bool is_merge(line l) {
  return l.n > 0 && !(l.n >= 8 && memcmp(l.bytes, "#version", 8) == 0);
}

static att_status read_merges(att_hf *hf, att_bpe *bpe, line rest, const char *name) {
  int64_t n = 0, number = 0;
  uint32_t rank = 0;
  for (line count = rest; count.n > 0;) n += is_merge(next_line(&count));
  ATT_TRY(att_merges_create(&bpe->merges, &hf->t->arena, n));
  att_list joined;
  att_list_init(&joined, hf->t->runtime, 1);
  att_status status = ATT_OK;
  while (rest.n > 0 && status == ATT_OK) {
    line l = next_line(&rest);
    number++;
    att_merge_text merge = {l.bytes, l.n, name, "line", number};
    if (is_merge(l))
      status = att_merges_add_text(&bpe->merges, &hf->t->vocab, &merge, rank++, &joined);
  }
  att_list_free(&joined);
  return status;
}

static att_status add_end_of_text(att_tokenizer *t) {
  int32_t id = att_vocab_find(&t->vocab, ATT_BY_PIECE, end_of_text, sizeof end_of_text - 1);
  void *memory;
  if (id < 0) return ATT_OK;
  ATT_TRY(att_arena_take(&memory, &t->arena, 1, sizeof(att_added_token)));
  att_added_token *token = memory;
  *token = (att_added_token){.id = id,
                             .content = t->vocab.entries[id].piece,
                             .content_bytes = sizeof end_of_text - 1,
                             .special = true};
  t->vocab.entries[id].flags |= ATT_TOKEN_ADDED | ATT_TOKEN_SPECIAL | ATT_TOKEN_END;
  t->bos = id;
  return att_added_create(t, token, 1);
}

static att_status load(att_hf *hf, line merges, const char *merges_name) {
  const att_json_node *root = att_json_root(hf->json);
  att_tokenizer *t = hf->t;
  void *memory;
  if (root->type != ATT_JSON_OBJECT)
    return att_hf_fail(hf, ATT_CORRUPT, root, "a vocabulary must be an object");
  ATT_TRY(att_hf_split_gpt2(hf));
  hf->byte_level = true;
  ATT_TRY(att_hf_vocabulary_object(hf, root));
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(att_bpe)));
  att_bpe *bpe = memory;
  *bpe = (att_bpe){.unknown = -1, .prefix = "", .suffix = ""};
  ATT_TRY(read_merges(hf, bpe, merges, merges_name));
  att_bpe_find_bytes(bpe, &t->vocab, true, false);
  ATT_TRY(att_bpe_find_joints(bpe, &t->arena, &t->vocab));
  t->kind = &att_kind_byte_bpe;
  t->model = bpe;
  ATT_TRY(att_hf_decoder_byte_level(hf, root));
  ATT_TRY(att_hf_settle(hf));
  return add_end_of_text(t);
}

att_status att_load_gpt2(att_tokenizer **out, const att_runtime *runtime, const char *vocab,
                         size_t vocab_bytes, const char *vocab_name, const char *merges,
                         size_t merges_bytes, const char *merges_name) {
  att_hf hf;
  ATT_TRY(att_hf_begin(&hf, runtime, vocab, vocab_bytes, vocab_name));
  return att_hf_end(out, &hf, load(&hf, (line){merges, (int64_t)merges_bytes}, merges_name));
}
