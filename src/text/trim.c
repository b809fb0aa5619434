/* Spans without white space at their ends, where a tokenizer's file asks for
 * it. A token of the model is measured by its own bytes (" the" begins with the
 * one space that goes), an added one by the text it was found in. */
#include "text/encoding.h"

typedef struct spelling {
  const char *bytes;
  int64_t n;
  bool added; /* any white space counts, else spaces only */
} spelling;

static spelling spelling_of(const att_job *job, const att_token *token, const char *input) {
  const att_entry *entry = &job->tokenizer->vocab.entries[token->id];
  if ((entry->flags & ATT_TOKEN_ADDED) != 0)
    return (spelling){input + token->begin, (int64_t)token->end - token->begin, true};
  return (spelling){entry->bytes, entry->n_bytes, false};
}

static bool counts(const spelling *s, uint32_t code) {
  return s->added ? att_char_is_space(code) : code == ' ';
}

/* White space at the start (the end) of a spelling, in characters. */
static int leading(const spelling *s) {
  int characters = 0;
  uint32_t code;
  for (int64_t at = 0; at < s->n; characters++) {
    at += att_char_next(&code, s->bytes + at, s->n - at);
    if (!counts(s, code)) break;
  }
  return characters;
}

static int trailing(const spelling *s) {
  int characters = 0;
  uint32_t code;
  for (int64_t end = s->n; end > 0; characters++) {
    end -= att_char_last(&code, s->bytes, end);
    if (!counts(s, code)) break;
  }
  return characters;
}

/* Moves the ends of a span by characters of the input. */
static void shrink(att_token *token, const char *input, int front, int back) {
  uint32_t code;
  for (; front > 0 && token->begin < token->end; front--)
    token->begin +=
        (uint32_t)att_char_next(&code, input + token->begin, (int64_t)token->end - token->begin);
  for (; back > 0 && token->begin < token->end; back--)
    token->end -=
        (uint32_t)att_char_last(&code, input + token->begin, (int64_t)token->end - token->begin);
}

void att_trim_spans(att_job *job, const char *input, int64_t first) {
  const att_trim *trim = &job->tokenizer->trim;
  att_token *tokens = job->tokens.items;
  for (int64_t i = first; trim->on && i < job->tokens.n; i++) {
    spelling s = spelling_of(job, &tokens[i], input);
    int front = leading(&s), back = trailing(&s);
    bool at_start = i == first || tokens[i].begin == 0;
    if (at_start && trim->prefix_space && front == 1) front = 0;
    shrink(&tokens[i], input, front, back);
  }
}
