/* Rewriting a text. The bytes of a character that is kept keep their origins,
 * each its own; new bytes that take its place have the origin of all of it;
 * inserted ones have that of the character before them, or, at the very start,
 * an empty one. */
#include "text/text.h"

#include <string.h>

void att_text_init(att_text *text, const att_runtime *runtime) {
  *text = (att_text){0};
  att_list_init(&text->own_bytes, runtime, 1);
  att_list_init(&text->spare_bytes, runtime, 1);
  att_list_init(&text->own_origin, runtime, sizeof(att_origin));
  att_list_init(&text->spare_origin, runtime, sizeof(att_origin));
  att_list_init(&text->held.own_bytes, runtime, 1);
  att_list_init(&text->held.own_origin, runtime, sizeof(att_origin));
}

void att_text_free(att_text *text) {
  att_list_free(&text->own_bytes);
  att_list_free(&text->spare_bytes);
  att_list_free(&text->own_origin);
  att_list_free(&text->spare_origin);
  att_list_free(&text->held.own_bytes);
  att_list_free(&text->held.own_origin);
}

void att_text_set(att_text *text, const char *bytes, int64_t n, uint32_t base) {
  text->bytes = bytes;
  text->n = n;
  text->origin = NULL;
  text->base = base;
}

static void swap(att_list *a, att_list *b) {
  att_list keep = *a;
  *a = *b;
  *b = keep;
}

void att_text_hold(att_text *text) {
  text->held.bytes = text->bytes;
  text->held.origin = text->origin;
  text->held.base = text->base;
  swap(&text->held.own_bytes, &text->own_bytes);
  swap(&text->held.own_origin, &text->own_origin);
}

void att_text_resume(att_text *text, int64_t begin, int64_t end) {
  const att_origin *origin = text->held.origin;
  text->bytes = text->held.bytes + begin;
  text->n = end - begin;
  text->origin = origin ? origin + begin : NULL;
  text->base = origin && begin < end ? origin[begin].begin : text->held.base + (uint32_t)begin;
}

att_origin att_text_origin(const att_text *text, int64_t begin, int64_t end) {
  if (begin < end && text->origin != NULL)
    return (att_origin){text->origin[begin].begin, text->origin[end - 1].end};
  return (att_origin){text->base + (uint32_t)begin, text->base + (uint32_t)end};
}

/* Looks at the character at `at`. */
static void look(att_rewrite *r) {
  const att_text *text = r->text;
  r->length = 0;
  if (r->at >= text->n) return;
  r->length = att_char_next(&r->code, text->bytes + r->at, text->n - r->at);
  r->bad = r->length == 1 && r->code == ATT_REPLACEMENT;
  r->here = att_text_origin(text, r->at, r->at + r->length);
}

att_status att_rewrite_begin(att_rewrite *r, att_text *text) {
  *r = (att_rewrite){.text = text, .before = {text->base, text->base}};
  text->spare_bytes.n = text->spare_origin.n = 0;
  ATT_TRY(att_list_reserve(&text->spare_bytes, text->n));
  ATT_TRY(att_list_reserve(&text->spare_origin, text->n));
  look(r);
  return ATT_OK;
}

static att_status write(att_rewrite *r, const char *bytes, int64_t n, att_origin origin) {
  att_text *text = r->text;
  if (n > ATT_TEXT_MAX - text->spare_bytes.n)
    return att_fail(ATT_TOO_LARGE, "normalizing makes the text longer than %d bytes", ATT_TEXT_MAX);
  ATT_TRY(att_list_append(&text->spare_bytes, bytes, n));
  ATT_TRY(att_list_reserve(&text->spare_origin, n));
  att_origin *origins = text->spare_origin.items;
  for (int64_t i = 0; i < n; i++) origins[text->spare_origin.n++] = origin;
  return ATT_OK;
}

att_status att_rewrite_put(att_rewrite *r, const char *bytes, int64_t n) {
  return write(r, bytes, n, r->here);
}

att_status att_rewrite_insert(att_rewrite *r, const char *bytes, int64_t n) {
  return write(r, bytes, n, r->before);
}

att_status att_rewrite_change(att_rewrite *r, uint32_t code, int change) {
  char bytes[ATT_UTF8_MAX];
  int n = att_utf8_encode(bytes, code);
  if (change > 0) return att_rewrite_insert(r, bytes, n);
  ATT_TRY(att_rewrite_put(r, bytes, n));
  for (; change <= 0 && att_rewrite_more(r); change++) att_rewrite_skip(r);
  return ATT_OK;
}

void att_rewrite_skip(att_rewrite *r) {
  r->before = r->here;
  r->at += r->length;
  look(r);
}

att_status att_rewrite_keep(att_rewrite *r) {
  int64_t n = r->length, first = r->text->spare_origin.n;
  ATT_TRY(att_rewrite_put(r, r->text->bytes + r->at, n));
  att_origin *origins = (att_origin *)r->text->spare_origin.items + first;
  for (int64_t i = 0; i < n; i++) origins[i] = att_text_origin(r->text, r->at + i, r->at + i + 1);
  att_rewrite_skip(r);
  return ATT_OK;
}

void att_rewrite_end(att_rewrite *r) {
  att_text *text = r->text;
  swap(&text->own_bytes, &text->spare_bytes);
  swap(&text->own_origin, &text->spare_origin);
  text->bytes = text->own_bytes.items;
  text->origin = text->own_origin.items;
  text->n = text->own_bytes.n;
}
