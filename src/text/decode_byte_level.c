/* ByteLevel: pieces in the byte alphabet become bytes; a piece with any other
 * character (an added token) stays as it is. */
#include "text/byte_alphabet.h"
#include "text/hf.h"

static att_status push(att_decoder *d, int step, const char *bytes, int64_t n) {
  att_list *out = &d->state[step].held;
  out->n = 0;
  ATT_TRY(att_list_reserve(out, n));
  int64_t written = att_bytes_of_piece(out->items, bytes, n);
  return written < 0 ? att_decode_pass(d, step, bytes, n)
                     : att_decode_pass(d, step, out->items, written);
}

static const att_decode_kind decode_byte_level = {push, NULL};

att_status att_hf_decoder_byte_level(att_hf *hf, const att_json_node *node) {
  (void)node;
  hf->fused = true;
  return att_hf_add_decoder(hf, &decode_byte_level, NULL);
}

att_status att_hf_decoder_byte_fallback(att_hf *hf, const att_json_node *node) {
  if (hf->fused)
    return att_hf_fail(hf, ATT_UNSUPPORTED, node, "decoder \"ByteFallback\" behind a fuse");
  return att_hf_add_decoder(hf, &att_decode_byte_fallback, NULL);
}

att_status att_hf_decoder_fuse(att_hf *hf, const att_json_node *node) {
  (void)node;
  hf->fused = true;
  return att_hf_add_decoder(hf, &att_decode_fuse, NULL);
}

att_status att_hf_decoder_strip(att_hf *hf, const att_json_node *node) {
  const att_json_node *content;
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(att_strip_settings)));
  att_strip_settings *s = memory;
  ATT_TRY(att_hf_field(&content, hf, node, "content", ATT_JSON_STRING));
  if (content->text_bytes == 0) return att_hf_fail(hf, ATT_CORRUPT, content, "strips nothing");
  ATT_TRY(att_hf_copy(&s->content, hf, content));
  ATT_TRY(att_hf_integer(&s->start, hf, node, "start", 0));
  ATT_TRY(att_hf_integer(&s->stop, hf, node, "stop", 0));
  if (s->start < 0 || s->stop < 0)
    return att_hf_fail(hf, ATT_CORRUPT, node, "strips a negative number of characters");
  s->fused = hf->fused;
  return att_hf_add_decoder(hf, &att_decode_strip, s);
}
