/* Added tokens: strings that are cut out of a text before anything else looks
 * at it, special ones ("<|endoftext|>") and others. Those marked `normalized`
 * are looked for in the normalized text, in their own normalized spelling. */
#ifndef ATT_TEXT_ADDED_H
#define ATT_TEXT_ADDED_H

#include "text/job.h"
#include "text/trie.h"

typedef struct att_added_token {
  int32_t id;
  const char *content;
  int64_t content_bytes;
  const char *spelling; /* what is looked for: the content, normalized if so marked */
  int64_t spelling_bytes;
  bool single_word;    /* not with a letter or the like on either side */
  bool lstrip, rstrip; /* takes the white space on that side along */
  bool normalized, special;
} att_added_token;

typedef struct att_added {
  const att_added_token *tokens;
  int32_t n;
  /* Of the raw and of the normalized text: spellings to indices of tokens, and
   * which bytes a spelling can begin with. */
  att_trie trie[2];
  bool begins[2][256];
} att_added;

/* Prepares the search for t's added tokens; its normalizers are in place. */
att_status att_added_create(att_tokenizer *t, att_added_token *tokens, int32_t n);

/* The token with this id, or NULL. */
const att_added_token *att_added_find(const att_added *added, int32_t id);

/* A stretch of text: an added token, or (id -1) what lies between them. */
typedef struct att_stretch {
  int64_t begin, end;
  int32_t id;
} att_stretch;

/* Cuts text[0 … n-1] into stretches, none empty. `normalized` says which of the
 * two kinds of tokens to look for. */
att_status att_added_cut(att_list *stretches, const att_job *job, const char *text, int64_t n,
                         bool normalized);

#endif
