/* A text on its way through the normalizers, which remembers for each of its
 * bytes where in the input it came from.
 *
 * A step rewrites a text by walking over the old one, character by character,
 * with an att_rewrite: keep copies a character, put writes something in its
 * place, insert adds something behind it, skip leaves it out.
 *
 *     att_rewrite r;
 *     ATT_TRY(att_rewrite_begin(&r, text));
 *     while (att_rewrite_more(&r))  …  keep, put, insert, skip  …
 *     att_rewrite_end(&r);                   // the new text takes over
 *
 * Most tokenizers never rewrite; their text is the input itself, unchanged. */
#ifndef ATT_TEXT_TEXT_H
#define ATT_TEXT_TEXT_H

#include "text/chars.h"
#include "text/list.h"

#define ATT_TEXT_MAX 0x7FFFFFFF /* bytes of an input or of anything made from it */

/* Bytes begin … end-1 of the input. */
typedef struct att_origin {
  uint32_t begin, end;
} att_origin;

typedef struct att_text {
  const char *bytes; /* the input, or bytes_own.items */
  int64_t n;
  const att_origin *origin;           /* [n], or NULL: byte i is byte base + i of the input */
  uint32_t base;                      /* where the text begins in the input */
  att_list own_bytes, own_origin;     /* char, att_origin; where a rewrite wrote */
  att_list spare_bytes, spare_origin; /* where the next one will write */
  struct {                            /* what att_text_hold put aside */
    const char *bytes;
    const att_origin *origin;
    uint32_t base;
    att_list own_bytes, own_origin;
  } held;
} att_text;

void att_text_init(att_text *text, const att_runtime *runtime);
void att_text_free(att_text *text);

/* Begins anew with n bytes that lie at `base` in the input; borrows them. */
void att_text_set(att_text *text, const char *bytes, int64_t n, uint32_t base);

/* Puts the text aside as it is now; att_text_resume, any number of times, makes
 * bytes begin … end-1 of that the text. */
void att_text_hold(att_text *text);
void att_text_resume(att_text *text, int64_t begin, int64_t end);

/* What bytes begin … end-1 of the text stand for. */
att_origin att_text_origin(const att_text *text, int64_t begin, int64_t end);

typedef struct att_rewrite {
  att_text *text;
  int64_t at;              /* the character under the pen, in the old text */
  int length;              /* its bytes; 0 at the end */
  uint32_t code;           /* what it is, ATT_REPLACEMENT for a bad byte */
  bool bad;                /* it is a bad byte */
  att_origin here, before; /* origin of this character and of the last one passed */
} att_rewrite;

att_status att_rewrite_begin(att_rewrite *r, att_text *text);
static inline bool att_rewrite_more(const att_rewrite *r) { return r->length > 0; }
att_status att_rewrite_keep(att_rewrite *r);
att_status att_rewrite_put(att_rewrite *r, const char *bytes, int64_t n);
att_status att_rewrite_insert(att_rewrite *r, const char *bytes, int64_t n);
void att_rewrite_skip(att_rewrite *r);

/* Writes a character: an inserted one where change is 1, else in place of the
 * next 1 - change characters. */
att_status att_rewrite_change(att_rewrite *r, uint32_t code, int change);
void att_rewrite_end(att_rewrite *r);

#endif
