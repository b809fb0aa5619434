/* Metaspace: spaces become a visible stand-in, words get one in front, and
 * pieces are cut before each of them. */
#include <string.h>

#include "text/hf.h"
#include "text/split_front.h"
#include "text/splitter.h"

typedef struct metaspace {
  att_front front;
  uint32_t code;
} metaspace;

static att_status rewrite(att_job *job, const void *settings) {
  return att_split_front(job, &((const metaspace *)settings)->front);
}

static bool is_stand_in(uint32_t code, const void *payload) {
  return code == *(const uint32_t *)payload;
}

static att_status split(att_job *job, const void *settings) {
  return att_split_at(job, ATT_SPLIT_NEXT, is_stand_in, &((const metaspace *)settings)->code);
}

/* One character, U+2581 where the file does not say. */
static att_status read_replacement(const char **out, uint32_t *code, const att_hf *hf,
                                   const att_json_node *node) {
  const att_json_node *text;
  ATT_TRY(att_hf_string(&text, hf, node, "replacement"));
  *out = "\xE2\x96\x81";
  *code = 0x2581;
  if (text == NULL) return ATT_OK;
  if (text->text_bytes == 0 ||
      (size_t)att_char_next(code, text->text, (int64_t)text->text_bytes) != text->text_bytes)
    return att_hf_fail(hf, ATT_CORRUPT, text, "a replacement must be one character");
  return att_hf_copy(out, hf, text);
}

/* "prepend_scheme", or the older "add_prefix_space". */
static att_status read_scheme(att_front_where *out, const att_hf *hf, const att_json_node *node) {
  static const char *const names[] = {"never", "first", "always"};
  const att_json_node *name;
  bool add;
  ATT_TRY(att_hf_string(&name, hf, node, "prepend_scheme"));
  ATT_TRY(att_hf_bool(&add, hf, node, "add_prefix_space", true));
  *out = add ? ATT_FRONT_ALWAYS : ATT_FRONT_NEVER;
  if (name == NULL) return ATT_OK;
  for (int i = 0; i < 3; i++)
    if (strcmp(name->text, names[i]) == 0) {
      *out = (att_front_where)i;
      return ATT_OK;
    }
  return att_hf_fail(hf, ATT_CORRUPT, name, "no such \"prepend_scheme\"");
}

att_status att_hf_pretokenizer_metaspace(att_hf *hf, const att_json_node *node) {
  void *memory;
  bool cut;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(metaspace)));
  metaspace *s = memory;
  ATT_TRY(read_replacement(&s->front.space, &s->code, hf, node));
  ATT_TRY(read_scheme(&s->front.where, hf, node));
  ATT_TRY(att_hf_bool(&cut, hf, node, "split", true));
  s->front.front = s->front.space;
  s->front.space_bytes = s->front.front_bytes = (int64_t)strlen(s->front.space);
  ATT_TRY(att_hf_add_pretokenizer(hf, rewrite, s));
  return cut ? att_hf_add_pretokenizer(hf, split, s) : ATT_OK;
}

/* The decoder: stand-ins are spaces, but those of the first piece are not
 * there where the pre-tokenizer puts one in front. */
static att_status push(att_decoder *d, int step, const char *bytes, int64_t n) {
  const metaspace *s = att_decode_settings(d, step);
  bool first = d->state[step].seen++ == 0, drop = first && s->front.where != ATT_FRONT_NEVER;
  att_list *out = &d->state[step].held;
  out->n = 0;
  for (int64_t at = 0, length; at < n; at += length) {
    uint32_t code;
    length = att_char_next(&code, bytes + at, n - at);
    if (code != s->code)
      ATT_TRY(att_list_append(out, bytes + at, length));
    else if (!drop)
      ATT_TRY(att_list_append(out, " ", 1));
  }
  ATT_TRY(att_decode_pass(d, step, out->items, out->n));
  return ATT_OK;
}

static const att_decode_kind decode_metaspace = {push, NULL};

att_status att_hf_decoder_metaspace(att_hf *hf, const att_json_node *node) {
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(metaspace)));
  metaspace *s = memory;
  if (hf->fused)
    return att_hf_fail(hf, ATT_UNSUPPORTED, node, "decoder \"Metaspace\" behind a fuse");
  ATT_TRY(read_replacement(&s->front.space, &s->code, hf, node));
  ATT_TRY(read_scheme(&s->front.where, hf, node));
  hf->space = s->front.space;
  return att_hf_add_decoder(hf, &decode_metaspace, s);
}
