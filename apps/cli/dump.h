/* dump.h — attention weights that another program has saved, to be looked at here.
 *
 * A dump is a .safetensors, .npz or .npy with the field's names: of each layer
 * blocks.0.attn.hook_pattern, or attentions.0 as transformers gives them, arr_0 as
 * numpy.savez(file, *attentions) names them, or all layers as attentions [L,H,T,S]; a batch
 * axis of 1 may stand before the heads. Tokens are ids in the file (tokens, input_ids, ids)
 * or texts in a file of their own, one a line; of
 * a step of generation (more keys than queries) the queries are the last of them.
 */
#ifndef ATTEND_CLI_DUMP_H
#define ATTEND_CLI_DUMP_H

#include "attend/archive.h"
#include "subject.h"

typedef struct dump_options {
  const char *path, *tokens; /* NULL: not given */
} dump_options;

/* Rows for a command's table of options. */
#define DUMP_OPTIONS(d)                                                                            \
  {"dump",                                                                                         \
   0,                                                                                              \
   OPTION_TEXT,                                                                                    \
   &(d).path,                                                                                      \
   "FILE",                                                                                         \
   0,                                                                                              \
   0,                                                                                              \
   "in place of a model and a PROMPT: weights that another program saved, .npz or .safetensors; "  \
   "names of tensors: docs/sites.md"},                                                             \
  {                                                                                                \
    "tokens", 0, OPTION_TEXT, &(d).tokens, "FILE", 0, 0,                                           \
        "the dump's tokens as texts, one a line for each key; default: ids in the dump, which -z " \
        "spells"                                                                                   \
  }

typedef struct dump {
  att_archive *archive;
  int64_t layers, heads, queries, keys;
  att_view *patterns; /* [layers] of f32 [H,T,S] */
  float **made;       /* [layers]: those that had to be converted, or NULL */
  bool causal;        /* no query has weight on a key after it */
  bool named;         /* somebody says what the tokens are */
  int32_t *ids;       /* [keys]; with texts the first place that has the same one */
  char *text;         /* the file of tokens, lines ended by zeros */
  const char **texts; /* [keys], or NULL */
} dump;

/* Opens the dump as what the subject looks at: its runtime, and tokenizer where -z has one.
 * Returns an exit code, after a complaint if it is not 0; dump_close and subject_close follow
 * in any case. */
int dump_open(dump *d, subject *s, const cli *c, const dump_options *options);
void dump_close(dump *d);

/* Ids by the texts: equal texts are equal tokens, to whoever asks for repeats. */
void dump_name_by_text(dump *d);

#endif
