/* Parts of a tokenizer.json by the model that it is of. */
#ifndef ATT_TEXT_STORED_WRITE_H
#define ATT_TEXT_STORED_WRITE_H

#include "text/load_gguf.h"

/* In quotes; without them. */
void att_stored_put_string(FILE *stream, att_stored_text text);
void att_stored_put_characters(FILE *stream, att_stored_text text);

/* Model "bert": a piece in WordPiece's spelling; normalizer, pre-tokenizer and decoder;
 * the model. */
void att_stored_put_bert_piece(FILE *stream, att_stored_text piece);
void att_stored_put_bert_steps(FILE *stream, const att_stored_tokenizer *stored);
void att_stored_put_wordpiece(FILE *stream, const att_stored_tokenizer *stored);

/* Model "t5". */
void att_stored_put_t5_steps(FILE *stream, const att_stored_tokenizer *stored);
void att_stored_put_unigram(FILE *stream, const att_stored_tokenizer *stored);

#endif
