/* att_decoder: ids through the chain of decode steps (decoder.h). */
#include "text/decoder.h"

#include "text/added.h"

att_status att_decoder_create(att_decoder **out, const att_tokenizer *tokenizer,
                              const att_decoder_options *options) {
  static const att_decoder_options defaults = {.skip_special = true};
  if (out == NULL) return att_fail(ATT_BAD_ARGUMENT, "out is NULL");
  if (tokenizer == NULL) return att_fail(ATT_BAD_ARGUMENT, "tokenizer is NULL");
  void *memory;
  ATT_TRY(att_alloc(&memory, tokenizer->runtime, 1, sizeof(att_decoder), "decoder"));
  att_decoder *d = memory;
  d->tokenizer = tokenizer;
  d->options = options ? *options : defaults;
  for (int i = 0; i < ATT_DECODERS_MAX; i++)
    att_list_init(&d->state[i].held, tokenizer->runtime, 1);
  att_list_init(&d->pending, tokenizer->runtime, 1);
  att_list_init(&d->out, tokenizer->runtime, 1);
  *out = d;
  return ATT_OK;
}

void att_decoder_free(att_decoder *d) {
  if (d == NULL) return;
  for (int i = 0; i < ATT_DECODERS_MAX; i++) att_list_free(&d->state[i].held);
  att_list_free(&d->pending);
  att_list_free(&d->out);
  att_release(d->tokenizer->runtime, d, 1, sizeof *d);
}

att_status att_decode_pass(att_decoder *d, int step, const char *bytes, int64_t n) {
  int next = step + 1;
  if (next == d->tokenizer->n_decoders) return att_decode_output(d, bytes, n, false);
  return d->tokenizer->decoders[next].kind->push(d, next, bytes, n);
}

static void hand_out(const char **out, size_t *out_bytes, const att_decoder *d) {
  *out = d->out.n > 0 ? d->out.items : "";
  *out_bytes = (size_t)d->out.n;
}

/* Runs an id through the chain, adding to d->out. */
static att_status push(att_decoder *d, int32_t id) {
  const att_vocab *vocab = &d->tokenizer->vocab;
  if (id < 0 || id >= vocab->size)
    return att_fail(ATT_BAD_ARGUMENT, "token id %d is outside 0 … %lld", id,
                    (long long)vocab->size - 1);
  const att_entry *entry = &vocab->entries[id];
  if (d->options.skip_special && (entry->flags & ATT_TOKEN_SPECIAL) != 0) return ATT_OK;
  const att_added_token *added = NULL;
  if ((entry->flags & ATT_TOKEN_RESPELLED) != 0) added = att_added_find(d->tokenizer->added, id);
  if (entry->flags == 0) return ATT_OK; /* a hole among the ids */
  return added ? att_decode_pass(d, -1, added->spelling, added->spelling_bytes)
               : att_decode_pass(d, -1, entry->piece, entry->piece_bytes);
}

/* Lets every step hand on what it held back, from the head to the end. */
static att_status finish(att_decoder *d) {
  for (int i = 0; i < d->tokenizer->n_decoders; i++) {
    const att_decode_kind *kind = d->tokenizer->decoders[i].kind;
    if (kind->finish) ATT_TRY(kind->finish(d, i));
    d->state[i].seen = d->state[i].held.n = 0;
  }
  return att_decode_output(d, NULL, 0, true);
}

att_status att_decoder_push(const char **out, size_t *out_bytes, att_decoder *d, int32_t id) {
  if (out == NULL || out_bytes == NULL || d == NULL)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", d == NULL ? "decoder" : "out");
  d->out.n = 0;
  ATT_TRY(push(d, id));
  hand_out(out, out_bytes, d);
  return ATT_OK;
}

att_status att_decoder_finish(const char **out, size_t *out_bytes, att_decoder *d) {
  if (out == NULL || out_bytes == NULL || d == NULL)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", d == NULL ? "decoder" : "out");
  d->out.n = 0;
  ATT_TRY(finish(d));
  hand_out(out, out_bytes, d);
  return ATT_OK;
}

att_status att_decoder_decode(const char **out, size_t *out_bytes, att_decoder *d,
                              const int32_t *ids, int64_t n) {
  if (out == NULL || out_bytes == NULL || d == NULL)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", d == NULL ? "decoder" : "out");
  if (n < 0 || (ids == NULL && n > 0))
    return att_fail(ATT_BAD_ARGUMENT, "%lld ids at %s", (long long)n, ids ? "ids" : "NULL");
  ATT_TRY(finish(d));
  d->out.n = 0;
  for (int64_t i = 0; i < n; i++) ATT_TRY(push(d, ids[i]));
  ATT_TRY(finish(d));
  hand_out(out, out_bytes, d);
  return ATT_OK;
}
