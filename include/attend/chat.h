/* attend/chat.h — conversations, written as a model's makers wrote them.
 *
 * A chat model was trained on conversations in one fixed spelling. Its files hold
 * that spelling as a program (a "chat template" in the Jinja language). attend
 * runs no program from a file: it knows the templates of common models by a
 * fingerprint of their text and writes what they would; others are refused.
 *
 * A conversation is at most one system message, then user and assistant in
 * turn, and ends with the user: the answer is what comes next. What the messages
 * say is text only: "<|im_end|>" typed by a user ends nothing.
 */
#ifndef ATTEND_CHAT_H
#define ATTEND_CHAT_H

#include "attend/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_chat_message {
  const char *role; /* "system", "user" or "assistant" */
  const char *text;
  size_t bytes;
} att_chat_message;

/* The tokenizer's chat template as its file has it (tokenizer_config.json,
 * chat_template.jinja, a GGUF's tokenizer.chat_template), borrowed, not
 * zero-terminated; NULL if it has none. */
ATT_API const char *att_tokenizer_chat_template(size_t *out_bytes, const att_tokenizer *tokenizer);

/* Names of formats: "chatml", "llama3" …; NULL behind the last. Static strings. */
ATT_API const char *att_chat_format_name(int index);

/* The format that a chat template writes, by its text alone: spaces, comments
 * and quotes inside its tags do not matter, everything else does. NULL: not
 * known. *out_fingerprint (may be NULL) is what was compared, 0 if the text is no
 * template. Static string. OUT_OF_MEMORY counts as not known. */
ATT_API const char *att_chat_recognise(uint64_t *out_fingerprint, att_runtime *runtime,
                                       const char *chat_template, size_t bytes);

typedef struct att_chat_prompt att_chat_prompt;

/* The conversation as the text that a model goes on with. `format` is a name from
 * above; NULL: that of the tokenizer's own template. NOT_FOUND (no template),
 * UNSUPPORTED (a template that is not known, with its fingerprint; a system
 * message where the format has no place for one), BAD_ARGUMENT (no such format;
 * an order of roles that is not as above), OUT_OF_MEMORY, TOO_LARGE. */
ATT_API att_status att_chat_write(att_chat_prompt **out, const att_tokenizer *tokenizer,
                                  const char *format, const att_chat_message *messages, int64_t n);
ATT_API void att_chat_prompt_free(att_chat_prompt *prompt);

/* The text, borrowed, not zero-terminated, and its tokens: special tokens are
 * parsed in what the format writes, not in what the messages say, and BOS is
 * there only if the format writes it. */
ATT_API const char *att_chat_text(size_t *out_bytes, const att_chat_prompt *prompt);
/* The special token that ends an answer in this format, -1 if there is none. */
ATT_API int32_t att_chat_end(const att_chat_prompt *prompt);

ATT_API att_status att_chat_encode(att_encoding **out, const att_chat_prompt *prompt);

#ifdef __cplusplus
}
#endif
#endif
