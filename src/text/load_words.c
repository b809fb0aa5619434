/* words.txt, a vocabulary that one can read and write by hand:
 *
 *   #attend-words 1
 *   <s>
 *   the
 *   Ada
 *   .
 *
 * After the first line each line is a word, and its id is counted from 0. A
 * word is letters or one mark, as text is cut (split_words.c); no two may be
 * equal but for the case of A-Z. Three names mean something: <s> begins every
 * text, </s> ends one, and <unk> stands for whatever is missing; without <unk>
 * a text with a missing word is refused. */
#include <string.h>

#include "base/line.h"
#include "text/added.h"
#include "text/decoder.h"
#include "text/steps.h"
#include "text/words.h"

static const char mark[] = "#attend-words 1";

typedef struct line {
  const char *bytes;
  int64_t n;
} line;

/* Takes the next line off `rest`, without its end (LF or CR LF). */
static line next_line(line *rest) {
  const char *newline = rest->n > 0 ? memchr(rest->bytes, '\n', (size_t)rest->n) : NULL;
  int64_t n = newline ? newline - rest->bytes : rest->n;
  line taken = {rest->bytes, n > 0 && rest->bytes[n - 1] == '\r' ? n - 1 : n};
  int64_t gone = newline ? n + 1 : n;
  *rest = (line){rest->bytes + gone, rest->n - gone};
  return taken;
}

static bool is(line word, const char *name) {
  return word.n == (int64_t)strlen(name) && memcmp(word.bytes, name, (size_t)word.n) == 0;
}

bool att_is_words(const char *bytes, size_t n) {
  line rest = {bytes, (int64_t)n};
  return is(next_line(&rest), mark);
}

static unsigned flags_of(line word) {
  if (is(word, "</s>")) return ATT_TOKEN_SPECIAL | ATT_TOKEN_ADDED | ATT_TOKEN_END;
  bool special = is(word, "<s>") || is(word, "<unk>");
  return special ? ATT_TOKEN_SPECIAL | ATT_TOKEN_ADDED : 0;
}

/* True if a text can hold the word as one piece. */
static bool is_one_piece(line word) {
  return word.n > 0 && word.n <= ATT_WORD_MAX && att_chars_valid(word.bytes, word.n) &&
         att_word_length(word.bytes, word.n) == word.n;
}

static att_status add_word(att_tokenizer *t, att_words *words, int32_t id, line word,
                           const char *name) {
  char quoted[2 * ATT_WORD_MAX], folded[ATT_WORD_MAX];
  unsigned flags = flags_of(word);
  att_quote(quoted, sizeof quoted, word.bytes, (size_t)word.n);
  if (flags == 0 && !is_one_piece(word))
    return att_fail(ATT_CORRUPT, "%s line %d: %s is not one word of at most %d bytes", name, id + 2,
                    quoted, ATT_WORD_MAX);
  att_word_fold(folded, word.bytes, word.n);
  int32_t other = att_vocab_find(&words->folded, ATT_BY_PIECE, folded, word.n);
  if (other >= 0)
    return att_fail(ATT_CORRUPT, "%s line %d: %s is also on line %d", name, id + 2, quoted,
                    other + 2);
  ATT_TRY(att_vocab_set(&t->vocab, &t->arena, id, word.bytes, word.n, flags));
  att_vocab_index(&t->vocab, ATT_BY_PIECE, id);
  ATT_TRY(att_vocab_set(&words->folded, &t->arena, id, folded, word.n, flags));
  att_vocab_index(&words->folded, ATT_BY_PIECE, id);
  return ATT_OK;
}

static att_status read_words(att_tokenizer *t, att_words *words, line rest, const char *name) {
  int64_t size = 0;
  for (line count = rest; count.n > 0; size++) next_line(&count);
  if (size == 0 || size > INT32_MAX - 2)
    return att_fail(ATT_CORRUPT, "%s: %lld words", name, (long long)size);
  ATT_TRY(att_vocab_create(&t->vocab, &t->arena, size));
  ATT_TRY(att_vocab_create(&words->folded, &t->arena, size));
  for (int32_t id = 0; id < size; id++) ATT_TRY(add_word(t, words, id, next_line(&rest), name));
  return ATT_OK;
}

/* The special words can be typed too, where the caller allows it. */
static att_status add_special(att_tokenizer *t) {
  enum { MOST = 3 };
  void *memory;
  ATT_TRY(att_arena_take(&memory, &t->arena, MOST, sizeof(att_added_token)));
  att_added_token *tokens = memory;
  int32_t n = 0;
  for (int32_t id = 0; id < t->vocab.size; id++) {
    const att_entry *entry = &t->vocab.entries[id];
    if ((entry->flags & ATT_TOKEN_SPECIAL) == 0) continue;
    tokens[n++] = (att_added_token){
        .id = id, .content = entry->piece, .content_bytes = entry->piece_bytes, .special = true};
  }
  return n > 0 ? att_added_create(t, tokens, n) : ATT_OK;
}

static att_status set_steps(att_tokenizer *t) {
  static const att_step split[] = {{att_split_words, NULL}};
  static const att_decode_step set[] = {{&att_decode_words, NULL}};
  t->pretokenizers = split;
  t->n_pretokenizers = 1;
  t->decoders = set;
  t->n_decoders = 1;
  ATT_TRY(add_special(t));
  t->bos = att_vocab_find(&t->vocab, ATT_BY_PIECE, "<s>", 3);
  if (t->bos < 0) return ATT_OK;
  void *memory;
  ATT_TRY(att_arena_take(&memory, &t->arena, 4, sizeof(att_template_item)));
  att_template_item *items = memory;
  items[0] = (att_template_item){t->bos, 0, 0};
  items[1] = (att_template_item){-1, 0, 0};
  items[2] = (att_template_item){t->bos, 0, 1};
  items[3] = (att_template_item){-1, 1, 1};
  t->single = (att_template){items, 2};
  t->pair = (att_template){items, 4};
  return ATT_OK;
}

static att_status load(att_tokenizer *t, line file, const char *name) {
  void *memory;
  if (!is(next_line(&file), mark))
    return att_fail(ATT_CORRUPT, "%s: the first line is not %s", name, mark);
  ATT_TRY(att_arena_take(&memory, &t->arena, 1, sizeof(att_words)));
  att_words *words = memory;
  ATT_TRY(read_words(t, words, file, name));
  words->unknown = att_vocab_find(&t->vocab, ATT_BY_PIECE, "<unk>", 5);
  t->kind = &att_kind_words;
  t->model = words;
  return set_steps(t);
}

att_status att_load_words(att_tokenizer **out, const att_runtime *runtime, const char *bytes,
                          size_t n, const char *name) {
  att_tokenizer *t;
  ATT_TRY(att_tokenizer_create(&t, runtime));
  att_status status = load(t, (line){bytes, (int64_t)n}, name);
  if (status != ATT_OK) {
    att_tokenizer_free(t);
    return status;
  }
  *out = t;
  return ATT_OK;
}
