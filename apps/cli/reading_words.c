/* reading_words.c — see the header. */
#include "reading_words.h"

#include <stdlib.h>
#include <string.h>

#include "attend/pattern.h"
#include "attend/status.h"
#include "memory.h"

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool is_blank(const subject *s, int64_t i) {
  int64_t at = s->encoding->begin[i];
  while (at < s->encoding->end[i] && is_space(s->prompt[at])) at++;
  return at == s->encoding->end[i];
}

/* Does a space, or nothing of the text, stand between token i and the one before? Tokens of
 * spaces alone belong to what comes after them. */
static bool begins(const subject *s, int64_t i) {
  const att_encoding *e = s->encoding;
  if (e->begin[i] == e->end[i] || e->begin[i - 1] == e->end[i - 1]) return true;
  if (is_blank(s, i - 1)) return false;
  for (int64_t at = e->end[i - 1] - 1; at <= e->begin[i]; at++)
    if (is_space(s->prompt[at])) return true;
  return false;
}

/* The word's text without the spaces around it; of a special token its name. */
static char *spell(const subject *s, int64_t first, int64_t end) {
  const att_encoding *e = s->encoding;
  const term plain = term_plain(80, true);
  const char *text = s->prompt + e->begin[first];
  size_t n = (size_t)(e->end[end - 1] - e->begin[first]);
  const label name = subject_label(s, &plain, s->ids[first], LABEL_COLUMNS);
  if (n == 0) text = name.text, n = strlen(name.text);
  while (n > 1 && is_space(*text)) text++, n--;
  while (n > 1 && is_space(text[n - 1])) n--;
  char *word = memory_get(n + 1, 1);
  memcpy(word, text, n);
  return word;
}

/* All texts lie in one memory, as those of a dump's file do. */
static void name_words(dump *words, const subject *s, const int64_t *word) {
  size_t used = 0;
  words->ids = memory_get((size_t)words->keys, sizeof *words->ids);
  words->texts = memory_get((size_t)words->keys, sizeof *words->texts);
  size_t *at = memory_get((size_t)words->keys, sizeof *at);
  for (int64_t i = 0, end; i < s->n; i = end) {
    for (end = i + 1; end < s->n && word[end] == word[i];) end++;
    char *text = spell(s, i, end);
    const size_t bytes = strlen(text) + 1;
    words->text = memory_resize(words->text, used + bytes, 1);
    memcpy(words->text + used, text, bytes);
    at[word[i]] = used;
    used += bytes;
    free(text);
  }
  for (int64_t w = 0; w < words->keys; w++) words->texts[w] = words->text + at[w];
  free(at);
  dump_name_by_text(words);
}

/* A layer that was not read stays absent. */
static att_status join_layer(dump *words, const reading *r, const int64_t *word) {
  const int64_t n = words->keys, layer = words->layers++;
  const att_view all = reading_site(r, layer, "attn.hook_pattern");
  words->made[layer] = NULL;
  words->patterns[layer] = att_view_none();
  if (!all.data) return ATT_OK;
  words->made[layer] = memory_get((size_t)(words->heads * n * n), sizeof(float));
  words->patterns[layer] =
      att_view_of(words->made[layer], ATT_F32, 3, (int64_t[]){words->heads, n, n});
  att_status status = ATT_OK;
  for (int64_t h = 0; h < words->heads && status == ATT_OK; h++)
    status = att_pattern_words(att_view_select(words->patterns[layer], 0, h), r->what->runtime,
                               att_view_select(all, 0, h), word, word);
  return status;
}

int64_t *words_of_tokens(const subject *s) {
  int64_t *word = memory_get((size_t)s->n, sizeof *word);
  for (int64_t i = 1; i < s->n; i++) word[i] = word[i - 1] + begins(s, i);
  return word;
}

int reading_words(reading *r, dump *words, subject *shown, const cli *c) {
  if (r->saved || !shown->encoding || shown->ids != shown->encoding->ids ||
      r->query_ids != shown->ids || r->across)
    return cli_usage(c, "--words are those of a PROMPT that looks at itself");
  int64_t *word = words_of_tokens(shown);
  const int64_t n = word[shown->n - 1] + 1, layers = r->layers;
  *words = (dump){.heads = r->heads,
                  .queries = n,
                  .keys = n,
                  .causal = r->causal,
                  .named = true,
                  .patterns = memory_get((size_t)layers, sizeof *words->patterns),
                  .made = memory_get((size_t)layers, sizeof *words->made)};
  name_words(words, shown, word);
  att_status status = ATT_OK;
  for (int64_t i = 0; i < layers && status == ATT_OK; i++) status = join_layer(words, r, word);
  free(word);
  if (status != ATT_OK) return cli_fail_status(c);
  r->saved = words;
  r->n_queries = r->n_keys = n;
  r->query_ids = r->key_ids = words->ids;
  shown->texts = words->texts;
  shown->ids = words->ids;
  shown->n = n;
  return CLI_OK;
}
