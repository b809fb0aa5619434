/* Inside of chat formats: what a row says, and how a template is told. */
#ifndef ATT_TEXT_CHAT_H
#define ATT_TEXT_CHAT_H

#include "attend/chat.h"
#include "text/list.h"

enum {
  ATT_CHAT_TRIM_SYSTEM = 1, /* white space at the ends of such messages is dropped */
  ATT_CHAT_TRIM_USER = 2,
  ATT_CHAT_TRIM_ASSISTANT = 4,
  ATT_CHAT_TRIM = 7,
  ATT_CHAT_JOIN = 8,       /* the system message stands inside the first user message */
  ATT_CHAT_JOIN_LAST = 16, /* … inside the last one */
  ATT_CHAT_TRIM_TAIL = 32, /* a joined user message keeps its spaces in front */
  ATT_CHAT_NO_SYSTEM = 64,
  ATT_CHAT_HIDE_THOUGHT = 128, /* of earlier answers, what stands before </think> */
  ATT_CHAT_TRIM_LINES = 256    /* … and the newlines behind it */
};

/* A row of chat_formats.inc. In all texts ATT_CHAT_BOS and ATT_CHAT_EOS stand for
 * the tokenizer's own names of these. */
#define ATT_CHAT_BOS "\1"
#define ATT_CHAT_EOS "\2"
typedef struct att_chat_format {
  const char *name;
  unsigned flags;
  const char *start;     /* of the whole text */
  const char *system[2]; /* before and after such a message */
  const char *instead;   /* what the system says if the conversation does not; NULL: nothing */
  const char *user[2], *assistant[2];
  const char *prompt; /* what the answer follows */
} att_chat_format;

/* NULL if there is none of that name (index). */
const att_chat_format *att_chat_format_find(const char *name);
const att_chat_format *att_chat_format_at(int index);

/* A number that all spellings of a template share; 0 if it is none. */
att_status att_chat_fingerprint(uint64_t *out, const att_runtime *runtime, const char *text,
                                size_t bytes);

#endif
