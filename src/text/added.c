/* Added tokens: leftmost match, the longest of those that begin there. */
#include "text/added.h"

#include <string.h>

#include "text/normalize.h"

/* True if bytes begin … end-1 (of the input, or of the text as it is now) may be
 * a special token. */
static bool parses_special(const att_job *job, int64_t begin, int64_t end, int which) {
  att_origin here = {(uint32_t)begin, (uint32_t)end};
  if (job->n_plain > 0 && which == 1) here = att_text_origin(&job->text, begin, end);
  for (int64_t low = 0, high = job->n_plain; low < high;) {
    int64_t middle = (low + high) / 2;
    const att_piece *p = &job->plain[middle];
    if (p->begin < here.end && here.begin < p->end) return false;
    if (p->end <= here.begin)
      low = middle + 1;
    else
      high = middle;
  }
  return job->parse_special;
}

/* The longest token that begins at text[at], as an index; -1 if there is none.
 * Special ones count only where the caller asked for them. */
static int32_t longest_at(int64_t *length, const att_job *job, const char *text, int64_t at,
                          int64_t n, int which) {
  const att_added *added = job->tokenizer->added;
  int32_t node = ATT_TRIE_ROOT, best = -1;
  for (int64_t i = at; i < n; i++) {
    node = att_trie_step(&added->trie[which], node, (unsigned char)text[i]);
    if (node == ATT_TRIE_NONE) break;
    int32_t token = added->trie[which].values[node];
    if (token < 0) continue;
    if (added->tokens[token].special && !parses_special(job, at, i + 1, which)) continue;
    best = token;
    *length = i + 1 - at;
  }
  return best;
}

static bool is_single_word(const char *text, int64_t n, int64_t begin, int64_t end) {
  uint32_t code;
  if (begin > 0) {
    att_char_last(&code, text, begin);
    if (att_char_is_word(code)) return false;
  }
  if (end < n) {
    att_char_next(&code, text + end, n - end);
    if (att_char_is_word(code)) return false;
  }
  return true;
}

static int64_t space_before(const char *text, int64_t begin, int64_t from) {
  uint32_t code;
  while (begin > from) {
    int length = att_char_last(&code, text + from, begin - from);
    if (!att_char_is_space(code)) break;
    begin -= length;
  }
  return begin;
}

static int64_t space_behind(const char *text, int64_t end, int64_t n) {
  uint32_t code;
  while (end < n) {
    int length = att_char_next(&code, text + end, n - end);
    if (!att_char_is_space(code)) break;
    end += length;
  }
  return end;
}

static att_status add(att_list *stretches, int64_t begin, int64_t end, int32_t id) {
  att_stretch stretch = {begin, end, id};
  return begin < end ? att_list_append(stretches, &stretch, 1) : ATT_OK;
}

att_status att_added_cut(att_list *stretches, const att_job *job, const char *text, int64_t n,
                         bool normalized) {
  const att_added *added = job->tokenizer->added;
  int which = normalized ? 1 : 0;
  int64_t done = 0;
  stretches->n = 0;
  if (added != NULL && added->trie[which].n_nodes > 1)
    for (int64_t at = 0; at < n; at++) {
      if (!added->begins[which][(unsigned char)text[at]]) continue;
      int64_t length = 0;
      int32_t found = longest_at(&length, job, text, at, n, which);
      if (found < 0) continue;
      const att_added_token *token = &added->tokens[found];
      int64_t begin = at, end = at + length;
      at = end - 1; /* a match that is turned down still uses up its text */
      if (token->single_word && !is_single_word(text, n, begin, end)) continue;
      if (token->lstrip) begin = space_before(text, begin, done);
      if (token->rstrip) end = space_behind(text, end, n);
      if (begin < done) begin = done; /* the last match took this white space */
      if (end <= done) continue;
      ATT_TRY(add(stretches, done, begin, -1));
      ATT_TRY(add(stretches, begin, end, token->id));
      done = end;
    }
  return add(stretches, done, n, -1);
}

/* Finds out how a token is spelled in the text that is searched. A decoder
 * gives back that spelling too. */
static att_status spell(att_tokenizer *t, att_job *job, att_added_token *token) {
  char *copy;
  token->spelling = token->content;
  token->spelling_bytes = token->content_bytes;
  if (!token->normalized) return ATT_OK;
  att_text_set(&job->text, token->content, token->content_bytes, 0);
  ATT_TRY(att_job_normalize(job));
  ATT_TRY(att_arena_copy(&copy, &t->arena, job->text.bytes, job->text.n));
  token->spelling = copy;
  token->spelling_bytes = job->text.n;
  if (job->text.n != token->content_bytes || memcmp(copy, token->content, (size_t)job->text.n) != 0)
    t->vocab.entries[token->id].flags |= ATT_TOKEN_RESPELLED;
  return ATT_OK;
}

static void plant(att_added *added, int32_t index) {
  const att_added_token *token = &added->tokens[index];
  int which = token->normalized ? 1 : 0;
  if (token->spelling_bytes == 0) return;
  att_trie_add(&added->trie[which], token->spelling, token->spelling_bytes, index);
  added->begins[which][(unsigned char)token->spelling[0]] = true;
}

static att_status fill(att_added *added, att_tokenizer *t, att_job *job, att_added_token *tokens) {
  int64_t bytes[2] = {0, 0};
  for (int32_t i = 0; i < added->n; i++) {
    ATT_TRY(spell(t, job, &tokens[i]));
    bytes[tokens[i].normalized ? 1 : 0] += tokens[i].spelling_bytes;
  }
  for (int which = 0; which < 2; which++)
    ATT_TRY(att_trie_create(&added->trie[which], &t->arena, bytes[which]));
  /* Special tokens first, then the others; the last of equal spellings wins. */
  for (int pass = 0; pass < 2; pass++)
    for (int32_t i = 0; i < added->n; i++)
      if (tokens[i].special == (pass == 0)) plant(added, i);
  return ATT_OK;
}

att_status att_added_create(att_tokenizer *t, att_added_token *tokens, int32_t n) {
  void *memory;
  ATT_TRY(att_arena_take(&memory, &t->arena, 1, sizeof(att_added)));
  att_added *added = memory;
  added->tokens = tokens;
  added->n = n;
  att_job job;
  att_job_init(&job, t);
  att_status status = fill(added, t, &job, tokens);
  att_job_free(&job);
  if (status == ATT_OK) t->added = added;
  return status;
}

const att_added_token *att_added_find(const att_added *added, int32_t id) {
  for (int32_t i = 0; added && i < added->n; i++)
    if (added->tokens[i].id == id) return &added->tokens[i];
  return NULL;
}
