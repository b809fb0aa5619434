/* Decoders of vocabularies that mark where words go on or end: WordPiece
 * ("##ing" continues) and BPEDecoder ("the</w>" ends). */
#include <string.h>

#include "text/hf.h"

typedef struct wordpiece {
  const char *prefix;
  bool cleanup;
} wordpiece;

/* What English does not put a space in front of, and two odd ones out. */
static const char *const cleanups[][2] = {
    {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
    {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
    {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
};

/* Replaces every copy of `from` in the list's bytes; `to` is not longer. */
static void replace_all(att_list *list, const char *from, const char *to) {
  char *bytes = list->items;
  int64_t written = 0, n = (int64_t)strlen(from), m = (int64_t)strlen(to);
  for (int64_t at = 0; at < list->n;) {
    bool match = list->n - at >= n && memcmp(bytes + at, from, (size_t)n) == 0;
    if (match) memcpy(bytes + written, to, (size_t)m);
    if (!match) bytes[written] = bytes[at];
    written += match ? m : 1;
    at += match ? n : 1;
  }
  list->n = written;
}

static att_status push_wordpiece(att_decoder *d, int step, const char *bytes, int64_t n) {
  const wordpiece *s = att_decode_settings(d, step);
  att_list *out = &d->state[step].held;
  int64_t prefix = (int64_t)strlen(s->prefix);
  out->n = 0;
  if (d->state[step].seen++ > 0) {
    bool continues = n >= prefix && memcmp(bytes, s->prefix, (size_t)prefix) == 0;
    if (!continues) ATT_TRY(att_list_append(out, " ", 1));
    if (continues) bytes += prefix, n -= prefix;
  }
  ATT_TRY(att_list_append(out, bytes, n));
  for (size_t i = 0; s->cleanup && i < sizeof cleanups / sizeof *cleanups; i++)
    replace_all(out, cleanups[i][0], cleanups[i][1]);
  return att_decode_pass(d, step, out->items, out->n);
}

static const att_decode_kind decode_wordpiece = {push_wordpiece, NULL};

att_status att_hf_decoder_wordpiece(att_hf *hf, const att_json_node *node) {
  const att_json_node *prefix;
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(wordpiece)));
  wordpiece *s = memory;
  if (hf->fused)
    return att_hf_fail(hf, ATT_UNSUPPORTED, node, "decoder \"WordPiece\" behind a fuse");
  ATT_TRY(att_hf_string(&prefix, hf, node, "prefix"));
  s->prefix = "##";
  if (prefix) ATT_TRY(att_hf_copy(&s->prefix, hf, prefix));
  ATT_TRY(att_hf_bool(&s->cleanup, hf, node, "cleanup", true));
  return att_hf_add_decoder(hf, &decode_wordpiece, s);
}

/* The suffix is a space, except at the very end: so each piece waits for the
 * next one. */
static att_status hand_on(att_decoder *d, int step, const char *instead) {
  att_list *held = &d->state[step].held;
  const char *suffix = att_decode_settings(d, step), *bytes = held->items;
  int64_t n = (int64_t)strlen(suffix), from = 0;
  for (int64_t at = 0; at + n <= held->n;) {
    if (memcmp(bytes + at, suffix, (size_t)n) != 0) {
      at++;
      continue;
    }
    ATT_TRY(att_decode_pass(d, step, bytes + from, at - from));
    ATT_TRY(att_decode_pass(d, step, instead, (int64_t)strlen(instead)));
    at += n;
    from = at;
  }
  ATT_TRY(att_decode_pass(d, step, bytes + from, held->n - from));
  held->n = 0;
  return ATT_OK;
}

static att_status push_bpe(att_decoder *d, int step, const char *bytes, int64_t n) {
  if (d->state[step].seen++ > 0) ATT_TRY(hand_on(d, step, " "));
  return att_list_append(&d->state[step].held, bytes, n);
}

static att_status finish_bpe(att_decoder *d, int step) {
  return d->state[step].seen > 0 ? hand_on(d, step, "") : ATT_OK;
}

static const att_decode_kind decode_bpe = {push_bpe, finish_bpe};

att_status att_hf_decoder_bpe(att_hf *hf, const att_json_node *node) {
  const att_json_node *suffix;
  const char *copy = "</w>";
  if (hf->fused)
    return att_hf_fail(hf, ATT_UNSUPPORTED, node, "decoder \"BPEDecoder\" behind a fuse");
  ATT_TRY(att_hf_string(&suffix, hf, node, "suffix"));
  if (suffix) ATT_TRY(att_hf_copy(&copy, hf, suffix));
  if (copy[0] == '\0') return att_hf_fail(hf, ATT_CORRUPT, node, "an empty suffix");
  return att_hf_add_decoder(hf, &decode_bpe, copy);
}
