/* subject.h — what a command looks at: a model and the tokens of a prompt.
 *
 * run, explain, look and others share these options and this way to open them.
 */
#ifndef ATTEND_CLI_SUBJECT_H
#define ATTEND_CLI_SUBJECT_H

#include "attend/model.h"
#include "cli.h"
#include "json_out.h"
#include "textshow.h"

typedef struct subject {
  const char *model_path, *tokenizer_path; /* options; NULL: not given */
  const char *builtin; /* set before opening: what is opened without a path; NULL: the default */
  const char *file_path;
  id_list given_ids;
  bool f32_weights; /* set before opening: as att_open_options has it */
  att_runtime *runtime;
  att_model *model;
  const att_tokenizer *tokenizer; /* NULL: the model has none */
  att_tokenizer *own_tokenizer;   /* it, if it was opened without a model */
  const char *prompt;             /* NULL with --ids */
  size_t prompt_bytes;
  char *file;         /* where the prompt comes from one */
  const int32_t *ids; /* the prompt's tokens, BOS included where one is added */
  int64_t n;
  att_encoding *encoding;
  const char *name;         /* of what has no model: a dump's file */
  const char *const *texts; /* of its tokens, or NULL: ids are places in it */
} subject;

/* Rows for a command's table of options. */
#define SUBJECT_MODEL_OPTIONS(s) SUBJECT_MODEL_OPTIONS_OF(s, CLI_USUAL_MODEL)
#define SUBJECT_MODEL_OPTIONS_OF(s, usual)                                                         \
  {"model",                                                                                        \
   'm',                                                                                            \
   OPTION_TEXT,                                                                                    \
   &(s).model_path,                                                                                \
   "MODEL",                                                                                        \
   0,                                                                                              \
   0,                                                                                              \
   "Hugging Face directory, .gguf, llama2.c .bin or a built-in model (story, hand, induction); "   \
   "default: " usual},                                                                             \
  {                                                                                                \
    "tokenizer", 'z', OPTION_TEXT, &(s).tokenizer_path, "FILE", 0, 0,                              \
        "tokenizer; default: the one that lies beside the model"                                   \
  }
#define SUBJECT_OPTIONS(s)                                                                         \
  SUBJECT_MODEL_OPTIONS(s),                                                                        \
      {"ids",      0,                                                                              \
       OPTION_IDS, &(s).given_ids,                                                                 \
       "1,2,3",    0,                                                                              \
       0,          "token ids in place of a PROMPT, taken as they are (no BOS is added)"},         \
  {                                                                                                \
    "file", 'f', OPTION_TEXT, &(s).file_path, "FILE", 0, 0,                                        \
        "reads the prompt from FILE, - for standard input; a newline at its end does not count"    \
  }

/* Opens the model. Returns an exit code, after a complaint if it is not 0; in
 * any case subject_close must follow. */
int subject_open_model(subject *s, const cli *c);

/* Opens the tokenizer of a model, or, if a file of one is all that is given, that
 * alone. It is an error if there is none. */
int subject_open_tokenizer(subject *s, const cli *c);

/* Takes the text from operands[0] or --file, which exclude each other, into
 * prompt and prompt_bytes (NULL where neither is given). */
int subject_read_text(subject *s, const cli *c, int n, char **operands);

/* Opens the model and tokenizes operands[0], or takes --ids. */
int subject_open(subject *s, const cli *c, int n, char **operands);
void subject_close(subject *s);

/* True if there is a token that is spelled as `blank` and `text`, one behind the other. */
bool subject_find_token(int32_t *out, const subject *s, const char *blank, const char *text);

/* The token that is spelled as `text`, which was given as `given_as`, or else as a blank
 * and `text`: most words begin with one. Returns an exit code. */
int subject_token(int32_t *out, const subject *s, const cli *c, const char *given_as,
                  const char *text);

/* What is looked at: the model's name, or the file's. */
const char *subject_name(const subject *s);

/* A token as text for people, at most `most` columns; "#12" without a tokenizer. */
label subject_label(const subject *s, const term *t, int32_t id, int most);

/* Begins the object that --json prints with the model, its class of bits and the
 * prompt's tokens; the caller goes on, closes it and calls json_end. */
json subject_json(const subject *s);

/* "prompt_tokens": ids of `whose` prompt; "prompt_texts" of a dump that names its tokens so, for
 * which there are no ids. */
void subject_json_ids(json *j, const subject *s, const char *whose, const int32_t *ids, int64_t n);

/* A token's "id" and, with a tokenizer, "text", in the object that is open. */
void subject_json_token(json *j, const subject *s, int32_t id);

#endif
