/* The result of att_encode. */
#ifndef ATT_TEXT_ENCODING_H
#define ATT_TEXT_ENCODING_H

#include "text/job.h"

/* Takes white space off the spans of tokens[first …], as the tokenizer wants. */
void att_trim_spans(att_job *job, const char *input, int64_t first);

/* Text 0 has tokens[0 … ends[0]-1], text 1 those up to ends[1]-1, spans being
 * in the input. `around` says what the template adds; with_added false leaves
 * it out, but not the order and the types that the template gives. */
att_status att_encoding_create(att_encoding **out, const att_runtime *runtime,
                               const att_token *tokens, const int64_t ends[2],
                               const att_template *around, bool with_added);

/* Tokenizes a text without a template around it. Special tokens are parsed but
 * in the `n_plain` ascending stretches of `plain`. */
att_status att_encode_except(att_encoding **out, const att_tokenizer *tokenizer, const char *text,
                             size_t bytes, const att_piece *plain, int64_t n_plain);

#endif
