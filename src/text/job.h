/* One call of att_encode: the text as it is now, the pieces it is cut into,
 * and the tokens found so far. Everything a call needs to remember is here,
 * so the tokenizer itself stays constant and can be shared by threads. */
#ifndef ATT_TEXT_JOB_H
#define ATT_TEXT_JOB_H

#include "text/text.h"
#include "text/tokenizer.h"

/* Bytes begin … end-1 of the current text. */
typedef struct att_piece {
  uint32_t begin, end;
} att_piece;

/* A token; begin and end are in the current text until the text is done, in
 * the input from then on. */
typedef struct att_token {
  int32_t id;
  uint32_t begin, end;
} att_token;

struct att_job {
  const att_tokenizer *tokenizer;
  bool parse_special;
  const att_piece *plain; /* stretches of the input where no special token is parsed */
  int64_t n_plain;
  att_text text;
  att_list pieces, spare_pieces; /* att_piece */
  att_list matches;              /* att_piece, see text/pattern.h */
  att_list matchers;             /* att_matcher *, of the patterns used so far */
  att_list stretches[2];         /* att_stretch, of the input and of the normalized text */
  att_list tokens;               /* att_token */
  att_list scratch[2];           /* see att_job_scratch */
};

void att_job_init(att_job *job, const att_tokenizer *tokenizer);
void att_job_free(att_job *job);

/* Takes the text through the normalizers. */
att_status att_job_normalize(att_job *job);

/* Appends a token. */
att_status att_job_emit(att_job *job, int32_t id, int64_t begin, int64_t end);

/* For pre-tokenizers: appends a piece to those that will replace the present
 * ones; nothing if it is empty. */
att_status att_job_cut(att_job *job, int64_t begin, int64_t end);

/* An empty list for `size`-byte items that the model may use as it likes. Its
 * memory stays with the job from one piece to the next. */
att_list *att_job_scratch(att_job *job, int which, size_t size);

#endif
