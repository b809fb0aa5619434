/* reading.h — a model that reads the prompt while one of its attentions is kept.
 *
 * A decoder's queries and keys are the prompt's tokens, and so are an encoder's. A
 * model with both has three attentions: of the encoder to itself, of the decoder to
 * itself, and across, where queries are tokens of the answer and keys those of the
 * prompt. The answer is given or else the model's own.
 */
#ifndef ATTEND_CLI_READING_H
#define ATTEND_CLI_READING_H

#include "attend/capture.h"
#include "dump.h"
#include "edit_options.h"
#include "subject.h"

/* Options: of a model with encoder and decoder, and edits. */
typedef struct reading_options {
  int attention; /* 0: not given; encoder, decoder, cross */
  const char *answer;
  id_list answer_ids;
  edit_options edits;
} reading_options;

/* Rows for a command's table of options. */
#define READING_OPTIONS(r)                                                                         \
  {"stack",                                                                                        \
   0,                                                                                              \
   OPTION_CHOICE,                                                                                  \
   &(r).attention,                                                                                 \
   "own|encoder|decoder|cross",                                                                    \
   0,                                                                                              \
   0,                                                                                              \
   "of a model with encoder and decoder: of the prompt to itself, of the answer to itself, or of " \
   "the answer to the prompt. Default own: cross there, and the only one of other models"},        \
      {"answer",    0,                                                                             \
       OPTION_TEXT, &(r).answer,                                                                   \
       "TEXT",      0,                                                                             \
       0,           "what its decoder reads; default: the likeliest answer, at most 16 tokens"},   \
      {"answer-ids",                                                                               \
       0,                                                                                          \
       OPTION_IDS,                                                                                 \
       &(r).answer_ids,                                                                            \
       "1,2,3",                                                                                    \
       0,                                                                                          \
       0,                                                                                          \
       "the answer as token ids; the token that every answer begins with is put in front"},        \
      EDIT_OPTIONS((r).edits)

typedef struct reading {
  const subject *what;
  const char *stack; /* of sites' names: "blocks", "encoder", "decoder" */
  const char *part;  /* "attn", "cross_attn" */
  bool across;       /* keys are other tokens than queries */
  bool causal;       /* a query sees no key after itself */
  int64_t layers, heads;
  const int32_t *query_ids, *key_ids;
  int64_t n_queries, n_keys;
  int64_t first_query; /* position of the first one: not 0 of a step that a dump has kept */
  int32_t *answer;     /* of a decoder beside an encoder, its first token included */
  int64_t n_answer;
  int64_t more; /* positions to have room for beside those that are given */
  const edit_options *edits;
  edit_set edited;
  att_session *session;
  att_capture *capture;
  const dump *saved; /* in place of these, or NULL */
} reading;

/* Finds out what reads what. Returns an exit code, after a complaint if it is not 0;
 * reading_close follows in any case. */
int reading_choose(reading *r, const cli *c, const subject *what, const reading_options *options);

/* What another program has read and saved; it is complete then. */
void reading_of_dump(reading *r, const subject *what, const dump *saved);

/* Begins: captures `sites`, patterns that begin behind the stack's name and are
 * separated by commas ("*.attn.*"), and reads the prompt with an encoder, or a
 * decoder's tokens up to position `end`. */
int reading_start(reading *r, const cli *c, const char *sites, int64_t end);

/* The same of sites by their whole names and of parts; none if `select` is empty; at `end` 0
 * nothing is read. */
int reading_start_part(reading *r, const cli *c, const char *select,
                       const att_capture_options *parts, int64_t end);

/* Reads the rest of a decoder's tokens. */
att_status reading_finish(reading *r);
void reading_close(reading *r);

/* A captured tensor of the stack's layer, "attn.hook_q" and the like; an absent view
 * if the model has no such site. */
att_view reading_site(const reading *r, int64_t layer, const char *site);

#endif
