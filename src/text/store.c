/* A loaded tokenizer as the arrays of a GGUF file. What the steps of a tokenizer
 * are is not asked: each way that a file can spell is built, loaded again and
 * compared on every token by itself and on a text of hard cases, and the first
 * that agrees is it. */
#include <stdio.h>
#include <string.h>

#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/load_gguf.h"
#include "text/steps.h"
#include "text/store.h"

static const char lower_one_eighth[] = "\xE2\x96\x81";

/* Numbers of all lengths, both kinds of contractions, spaces and newlines in
 * runs and at the ends, marks glued to words, accents apart, scripts. */
static const char hard_cases[] =
    "//\n x /\n aB ABc I'Ms #include $x\xC2\xB4t \xE3\x81\x82\xE4\xBD\xA0\xE3\x82\xAB "
    " Hello  world, it's I'M we'LL don't  1 12 123 1234 12345  x=1;\ty\r\n\r\n\n  z \n "
    "(a) [b].c/d --e !!f?\n\nfoo_bar camelCase ABCdef \xC3\xA9t\xC3\xA9 e\xCC\x81 "
    "na\xC3\xAFve \xD0\x9F\xD1\x80\xD0\xB8 \xE4\xBD\xA0\xE5\xA5\xBD\xE3\x80\x82 "
    "\xF0\x9F\x8D\x8E\xF0\x9F\x91\x8D \xD9\xA3\xC2\xBD \xC2\xA0 \xE2\x80\xA8 <0x41> </s> a   ";

/* ---- arrays ---- */

att_status att_store_text(att_stored_text *out, att_arena *arena, const char *bytes, int64_t n) {
  char *copy;
  ATT_TRY(att_arena_copy(&copy, arena, bytes, n));
  *out = (att_stored_text){copy, (size_t)n};
  return ATT_OK;
}

/* A SentencePiece piece, with a stand-in for each plain space. */
static att_status spaced(att_stored_text *out, att_arena *arena, const char *bytes, int64_t n) {
  void *memory;
  ATT_TRY(att_arena_take(&memory, arena, 3 * n + 1, 1));
  char *copy = memory;
  size_t at = 0;
  for (int64_t i = 0; i < n; i++) {
    size_t size = bytes[i] == ' ' ? 3 : 1;
    memcpy(copy + at, size == 3 ? lower_one_eighth : bytes + i, size);
    at += size;
  }
  *out = (att_stored_text){copy, at};
  return ATT_OK;
}

int32_t att_store_type(const att_entry *entry, bool is_unknown) {
  if ((entry->flags & ATT_TOKEN_PRESENT) == 0) return ATT_STORED_UNUSED;
  if (is_unknown) return ATT_STORED_UNKNOWN;
  if (entry->flags & ATT_TOKEN_SPECIAL) return ATT_STORED_CONTROL;
  if (entry->flags & ATT_TOKEN_BYTE) return ATT_STORED_BYTE;
  return entry->flags & ATT_TOKEN_ADDED ? ATT_STORED_USER : ATT_STORED_NORMAL;
}

att_status att_store_room(att_tokenizer_copy *c, att_stored_text **tokens, int32_t **types) {
  att_stored_tokenizer *s = &c->stored;
  void *memory;
  ATT_TRY(att_arena_take(&memory, &c->arena, s->n_tokens, sizeof *s->tokens));
  s->tokens = *tokens = memory;
  ATT_TRY(att_arena_take(&memory, &c->arena, s->n_tokens, sizeof *s->types));
  s->types = *types = memory;
  return ATT_OK;
}

att_status att_store_unused(att_stored_text *out, att_arena *arena, int64_t id) {
  char name[32];
  return att_store_text(out, arena, name, snprintf(name, sizeof name, "[PAD%lld]", (long long)id));
}

static att_status store_tokens(att_tokenizer_copy *c, const att_tokenizer *t, bool byte_level) {
  att_stored_tokenizer *s = &c->stored;
  att_stored_text *tokens;
  int32_t *types;
  ATT_TRY(att_store_room(c, &tokens, &types));
  for (int64_t id = 0; id < s->n_tokens; id++) {
    static const att_entry hole;
    const att_entry *entry = id < t->vocab.size ? &t->vocab.entries[id] : &hole;
    att_stored_text *token = &tokens[id];
    int32_t type = att_store_type(entry, id == s->unknown);
    types[id] = type;
    if (type == ATT_STORED_UNUSED)
      ATT_TRY(att_store_unused(token, &c->arena, id));
    else if (byte_level || type != ATT_STORED_NORMAL)
      ATT_TRY(att_store_text(token, &c->arena, entry->piece, entry->piece_bytes));
    else
      ATT_TRY(spaced(token, &c->arena, entry->piece, entry->piece_bytes));
  }
  return ATT_OK;
}

/* Scores of a vocabulary that has none, from its merges: earlier is higher. */
static att_status store_scores(att_tokenizer_copy *c, const att_tokenizer *t) {
  const att_merge_pair *pairs;
  int64_t n;
  void *memory;
  bool given = false;
  ATT_TRY(att_arena_take(&memory, &c->arena, c->stored.n_tokens, sizeof(float)));
  float *scores = memory;
  for (int64_t id = 0; id < t->vocab.size; id++) {
    scores[id] = t->vocab.entries[id].score;
    given = given || scores[id] != 0;
  }
  c->stored.scores = scores;
  if (given) return ATT_OK;
  ATT_TRY(att_merges_list(&pairs, &n, &c->arena, &((const att_bpe *)t->model)->merges));
  for (int64_t i = n; i-- > 0;) scores[pairs[i].merge.id] = -(float)(pairs[i].merge.rank + 1);
  return ATT_OK;
}

static att_status store_merges(att_tokenizer_copy *c, const att_tokenizer *t) {
  const att_merge_pair *pairs;
  void *texts;
  ATT_TRY(att_merges_list(&pairs, &c->stored.n_merges, &c->arena,
                          &((const att_bpe *)t->model)->merges));
  ATT_TRY(att_arena_take(&texts, &c->arena, c->stored.n_merges, sizeof(att_stored_text)));
  for (int64_t i = 0; i < c->stored.n_merges; i++) {
    att_stored_text a = c->stored.tokens[pairs[i].left], b = c->stored.tokens[pairs[i].right];
    void *memory;
    ATT_TRY(att_arena_take(&memory, &c->arena, (int64_t)(a.n + b.n + 1), 1));
    char *text = memory;
    memcpy(text, a.bytes, a.n);
    text[a.n] = ' ';
    memcpy(text + a.n + 1, b.bytes, b.n);
    ((att_stored_text *)texts)[i] = (att_stored_text){text, a.n + b.n + 1};
  }
  c->stored.merges = texts;
  return ATT_OK;
}

/* What is put around a single text. */
static void store_ends(att_stored_tokenizer *s, const att_tokenizer *t) {
  bool before = true;
  s->bos = t->bos;
  s->add_bos = s->add_eos = 0;
  for (int i = 0; i < t->single.n; i++) {
    int32_t id = t->single.items[i].id;
    if (id < 0)
      before = false;
    else if (before)
      s->bos = id, s->add_bos = 1;
    else
      s->eos = id, s->add_eos = 1;
  }
  for (int64_t id = 0; id < t->vocab.size && s->eos < 0; id++)
    if ((t->vocab.entries[id].flags & ATT_TOKEN_END) != 0 && id != s->bos) s->eos = id;
  if (s->eos < 0 && s->bos >= 0 && (t->vocab.entries[s->bos].flags & ATT_TOKEN_END) != 0)
    s->eos = s->bos; /* one token for both, as in GPT-2 */
}

/* ---- trying ---- */

static att_status same_ids(bool *same, const att_tokenizer *a, const att_tokenizer *b,
                           const char *text, size_t n) {
  static const att_encode_options whole = {.add_special = true};
  att_encoding *x, *y;
  ATT_TRY(att_encode(&x, a, text, n, &whole));
  att_status status = att_encode(&y, b, text, n, &whole);
  if (status == ATT_OK) {
    *same = x->n == y->n && !memcmp(x->ids, y->ids, (size_t)x->n * sizeof *x->ids);
    att_encoding_free(y);
  }
  att_encoding_free(x);
  return status;
}

/* A vocabulary may lack a character of the hard cases; then each token must do. */
static att_status agrees(bool *same, const att_tokenizer *a, const att_tokenizer *b) {
  att_status status = same_ids(same, a, b, hard_cases, sizeof hard_cases - 1);
  if (status == ATT_UNSUPPORTED) *same = true;
  if (status != ATT_OK && status != ATT_UNSUPPORTED) return status;
  for (int32_t id = 0; id < a->vocab.size && *same; id++) {
    const att_entry *entry = &a->vocab.entries[id];
    if (entry->n_bytes == 0 || (entry->flags & (ATT_TOKEN_BYTE | ATT_TOKEN_SPECIAL))) continue;
    status = same_ids(same, a, b, entry->bytes, entry->n_bytes);
    if (status != ATT_OK && status != ATT_UNSUPPORTED) return status;
  }
  return ATT_OK;
}

att_status att_store_try(bool *same, const att_tokenizer *t, const att_stored_tokenizer *stored) {
  att_tokenizer *again;
  *same = false;
  ATT_TRY(att_load_gguf(&again, t->runtime, stored));
  att_status status = agrees(same, t, again);
  att_tokenizer_free(again);
  return status;
}

att_status att_store_cannot(const att_tokenizer *t) {
  return att_fail(ATT_UNSUPPORTED,
                  "this tokenizer (%s) is of a kind that GGUF files have no name for here",
                  t->kind->name);
}

static att_status store_llama(att_tokenizer_copy *c, const att_tokenizer *t) {
  bool same;
  c->stored.model = (att_stored_text){"llama", 5};
  c->stored.pre = (att_stored_text){"default", 7};
  c->stored.unknown = ((const att_bpe *)t->model)->unknown;
  /* llama2.c has no unknown token of its own, but an id for it. */
  if (c->stored.unknown < 0 && (t->vocab.entries[0].flags & ATT_TOKEN_SPECIAL) != 0)
    c->stored.unknown = 0;
  ATT_TRY(store_tokens(c, t, false));
  ATT_TRY(store_scores(c, t));
  ATT_TRY(store_merges(c, t));
  for (c->stored.add_space = 1; c->stored.add_space >= 0; c->stored.add_space--) {
    ATT_TRY(att_store_try(&same, t, &c->stored));
    if (same) return ATT_OK;
  }
  return att_store_cannot(t);
}

static att_status store_gpt2(att_tokenizer_copy *c, const att_tokenizer *t) {
  bool same;
  c->stored.model = (att_stored_text){"gpt2", 4};
  c->stored.add_space = 0;
  ATT_TRY(store_tokens(c, t, true));
  ATT_TRY(store_merges(c, t));
  for (int i = 0; att_stored_pre_at(i); i++) {
    const char *name = att_stored_pre_at(i)->name;
    c->stored.pre = (att_stored_text){name, strlen(name)};
    ATT_TRY(att_store_try(&same, t, &c->stored));
    if (same) return ATT_OK;
  }
  return att_store_cannot(t);
}

static const att_stored_tokenizer nothing = {.name = "the tokenizer",
                                             .bos = -1,
                                             .eos = -1,
                                             .eot = -1,
                                             .eom = -1,
                                             .unknown = -1,
                                             .cls = -1,
                                             .sep = -1};

att_status att_tokenizer_store_bytes(att_tokenizer_copy *out, const att_runtime *runtime,
                                     int64_t n_tokens) {
  enum { END = 256 };
  void *tokens, *types;
  *out = (att_tokenizer_copy){.stored = nothing};
  att_arena_init(&out->arena, runtime);
  att_status status = att_arena_take(&tokens, &out->arena, n_tokens, sizeof(att_stored_text));
  if (status == ATT_OK) status = att_arena_take(&types, &out->arena, n_tokens, sizeof(int32_t));
  for (int64_t id = 0; id < n_tokens && status == ATT_OK; id++) {
    char piece[32];
    int n = id == END ? snprintf(piece, sizeof piece, "<|endoftext|>")
                      : snprintf(piece, sizeof piece, "[PAD%lld]", (long long)id);
    if (id < END) n = att_utf8_encode(piece, att_char_of_byte((unsigned char)id));
    status = att_store_text((att_stored_text *)tokens + id, &out->arena, piece, n);
    ((int32_t *)types)[id] = id < END    ? ATT_STORED_NORMAL
                             : id == END ? ATT_STORED_CONTROL
                                         : ATT_STORED_UNUSED;
  }
  if (status != ATT_OK) {
    att_tokenizer_copy_release(out);
    return status;
  }
  out->stored.model = (att_stored_text){"gpt2", 4};
  out->stored.pre = (att_stored_text){"gpt-2", 5};
  out->stored.n_tokens = n_tokens;
  out->stored.tokens = tokens;
  out->stored.types = types;
  out->stored.bos = out->stored.eos = END;
  return ATT_OK;
}

att_status att_tokenizer_store(att_tokenizer_copy *out, const att_tokenizer *t, int64_t n_tokens) {
  *out = (att_tokenizer_copy){.stored = nothing};
  out->stored.n_tokens = n_tokens;
  if (n_tokens < t->vocab.size)
    return att_fail(ATT_BAD_ARGUMENT, "%lld tokens do not fit a vocabulary of %lld",
                    (long long)t->vocab.size, (long long)n_tokens);
  att_arena_init(&out->arena, t->runtime);
  store_ends(&out->stored, t);
  att_status status = ATT_OK;
  if (t->chat_template)
    status = att_store_text(&out->stored.chat_template, &out->arena, t->chat_template,
                            (int64_t)t->chat_template_bytes);
  if (status == ATT_OK)
    status = t->kind == &att_kind_bpe         ? store_llama(out, t)
             : t->kind == &att_kind_byte_bpe  ? store_gpt2(out, t)
             : t->kind == &att_kind_wordpiece ? att_store_bert(out, t)
             : t->kind == &att_kind_unigram   ? att_store_t5(out, t)
                                              : att_store_cannot(t);
  if (status != ATT_OK) att_tokenizer_copy_release(out);
  return status;
}

void att_tokenizer_copy_release(att_tokenizer_copy *copy) { att_arena_free(&copy->arena); }
