/* Tokenizers of GGUF files. Both kinds end up as the steps that the same
 * tokenizer gets from tokenizer.json, so that it gives the same tokens. */
#include "text/load_gguf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/line.h"
#include "text/added.h"
#include "text/bpe.h"
#include "text/load_gguf_parts.h"

static const char lower_one_eighth[] = "\xE2\x96\x81"; /* U+2581, a space in SentencePiece */

typedef struct loader {
  att_hf hf; /* collects the steps */
  const att_stored_tokenizer *stored;
  bool add_bos, add_eos; /* where the file does not say */
  bool around;           /* the templates are there already */
} loader;

bool att_stored_is(const att_stored_tokenizer *s, const char *model) {
  return s->model.n == strlen(model) && memcmp(s->model.bytes, model, s->model.n) == 0;
}

/* ---- vocabulary ---- */

static unsigned flags_of(att_stored_type type) {
  switch (type) {
  case ATT_STORED_UNKNOWN:
  case ATT_STORED_CONTROL: return ATT_TOKEN_ADDED | ATT_TOKEN_SPECIAL;
  case ATT_STORED_USER: return ATT_TOKEN_ADDED;
  default: return 0;
  }
}

static att_stored_type type_of(const att_stored_tokenizer *s, int64_t id) {
  return s->types ? (att_stored_type)s->types[id] : ATT_STORED_NORMAL;
}

att_status att_gguf_read_tokens(att_hf *hf, const att_stored_tokenizer *s) {
  att_vocab *vocab = &hf->t->vocab;
  if (s->n_tokens < 1 || s->n_tokens > INT32_MAX)
    return att_fail(ATT_CORRUPT, "%s: a vocabulary of %lld tokens", s->name,
                    (long long)s->n_tokens);
  ATT_TRY(att_vocab_create(vocab, &hf->t->arena, s->n_tokens));
  for (int64_t id = 0; id < s->n_tokens; id++) {
    att_stored_type type = type_of(s, id);
    if (type < ATT_STORED_NORMAL || type > ATT_STORED_BYTE)
      return att_fail(ATT_CORRUPT, "%s: token %lld has type %d, not 1 to 6", s->name, (long long)id,
                      (int)type);
    if (s->scores && isnan(s->scores[id]))
      return att_fail(ATT_CORRUPT, "%s: token %lld has score NaN", s->name, (long long)id);
    ATT_TRY(att_hf_set_piece(hf, NULL, id, s->tokens[id].bytes, s->tokens[id].n, 0));
    if (s->scores) vocab->entries[id].score = s->scores[id];
    vocab->entries[id].flags |= flags_of(type);
  }
  return ATT_OK;
}

/* Tokens that are cut out of a text before the model sees it; after the steps. */
static att_status add_cut_tokens(loader *l) {
  att_tokenizer *t = l->hf.t;
  int32_t n = 0;
  void *memory;
  for (int64_t id = 0; id < t->vocab.size; id++)
    n += (t->vocab.entries[id].flags & ATT_TOKEN_ADDED) != 0;
  if (n == 0) return ATT_OK;
  ATT_TRY(att_arena_take(&memory, &t->arena, n, sizeof(att_added_token)));
  att_added_token *tokens = memory;
  n = 0;
  for (int32_t id = 0; id < t->vocab.size; id++) {
    const att_entry *entry = &t->vocab.entries[id];
    if ((entry->flags & ATT_TOKEN_ADDED) == 0 || entry->piece_bytes == 0) continue;
    tokens[n++] = (att_added_token){.id = id,
                                    .content = entry->piece,
                                    .content_bytes = entry->piece_bytes,
                                    .special = (entry->flags & ATT_TOKEN_SPECIAL) != 0};
  }
  return att_added_create(t, tokens, n);
}

/* ---- what goes around a text ---- */

static att_status check_id(const loader *l, int64_t id, const char *key) {
  if (id < 0 || id < l->stored->n_tokens) return ATT_OK;
  return att_fail(ATT_CORRUPT,
                  "%s: key \"tokenizer.ggml.%s_token_id\" is %lld in a vocabulary of "
                  "%lld",
                  l->stored->name, key, (long long)id, (long long)l->stored->n_tokens);
}

/* [BOS] text [EOS]; a pair is two of those, of types 0 and 1. */
static att_status make_templates(loader *l, bool bos, bool eos) {
  void *memory;
  ATT_TRY(att_arena_take(&memory, &l->hf.t->arena, 6, sizeof(att_template_item)));
  att_template_item *items = memory;
  int n = 0, first = 0;
  for (int i = 0; i < 2; i++) {
    if (bos) items[n++] = (att_template_item){(int32_t)l->stored->bos, 0, i};
    items[n++] = (att_template_item){-1, (int8_t)i, i};
    if (eos) items[n++] = (att_template_item){(int32_t)l->stored->eos, 0, i};
    if (i == 0) first = n;
  }
  l->hf.t->single = (att_template){items, first};
  l->hf.t->pair = (att_template){items, n};
  return ATT_OK;
}

static att_status set_ends(loader *l) {
  const att_stored_tokenizer *s = l->stored;
  att_tokenizer *t = l->hf.t;
  ATT_TRY(check_id(l, s->bos, "bos"));
  ATT_TRY(check_id(l, s->eos, "eos"));
  ATT_TRY(check_id(l, s->eot, "eot"));
  ATT_TRY(check_id(l, s->eom, "eom"));
  t->bos = (int32_t)s->bos;
  t->eos = (int32_t)s->eos;
  const int64_t ends[] = {s->eos, s->eot, s->eom};
  for (int i = 0; i < 3; i++)
    if (ends[i] >= 0) t->vocab.entries[ends[i]].flags |= ATT_TOKEN_END;
  if (l->around) return ATT_OK;
  bool bos = s->add_bos < 0 ? l->add_bos : s->add_bos;
  bool eos = s->add_eos < 0 ? l->add_eos : s->add_eos;
  return make_templates(l, bos && s->bos >= 0, eos && s->eos >= 0);
}

static att_status keep_template(const loader *l) {
  const att_stored_text *text = &l->stored->chat_template;
  char *copy;
  if (!text->bytes) return ATT_OK;
  ATT_TRY(att_arena_copy(&copy, &l->hf.t->arena, text->bytes, (int64_t)text->n));
  l->hf.t->chat_template = copy;
  l->hf.t->chat_template_bytes = text->n;
  return ATT_OK;
}

/* ---- SentencePiece ---- */

static att_status load_llama(loader *l) {
  const att_stored_tokenizer *s = l->stored;
  static const att_strip_settings one_space = {" ", 1, 0, true};
  att_hf *hf = &l->hf;
  void *memory;
  if (!s->scores)
    return att_fail(ATT_CORRUPT, "%s: key \"tokenizer.ggml.scores\" is missing", s->name);
  ATT_TRY(check_id(l, s->unknown, "unknown"));
  ATT_TRY(att_gguf_read_tokens(&l->hf, l->stored));
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(att_bpe)));
  att_bpe *bpe = memory;
  *bpe =
      (att_bpe){.unknown = (int32_t)s->unknown, .fuse_unknown = true, .prefix = "", .suffix = ""};
  att_bpe_find_bytes(bpe, &hf->t->vocab, false, true);
  ATT_TRY(att_merges_derive(&bpe->merges, &hf->t->arena, &hf->t->vocab));
  ATT_TRY(att_bpe_find_joints(bpe, &hf->t->arena, &hf->t->vocab));
  hf->t->kind = &att_kind_bpe;
  hf->t->model = bpe;
  if (s->add_space != 0)
    ATT_TRY(att_hf_add_normalizer(hf, att_normalize_prepend, lower_one_eighth));
  ATT_TRY(att_hf_normalizer_replace_text(hf, " ", lower_one_eighth));
  ATT_TRY(att_hf_decoder_replace_text(hf, lower_one_eighth, " "));
  ATT_TRY(att_hf_add_decoder(hf, &att_decode_byte_fallback, NULL));
  ATT_TRY(att_hf_add_decoder(hf, &att_decode_fuse, NULL));
  if (s->add_space != 0) ATT_TRY(att_hf_add_decoder(hf, &att_decode_strip, &one_space));
  l->add_bos = true;
  return ATT_OK;
}

/* ---- byte-level ---- */

static att_status read_merges(loader *l, att_bpe *bpe) {
  const att_stored_tokenizer *s = l->stored;
  att_list joined;
  ATT_TRY(att_merges_create(&bpe->merges, &l->hf.t->arena, s->n_merges));
  att_list_init(&joined, l->hf.t->runtime, 1);
  att_status status = ATT_OK;
  for (int64_t i = 0; i < s->n_merges && status == ATT_OK; i++) {
    att_merge_text merge = {s->merges[i].bytes, (int64_t)s->merges[i].n, s->name, "merge", i};
    status = att_merges_add_text(&bpe->merges, &l->hf.t->vocab, &merge, (uint32_t)i, &joined);
  }
  att_list_free(&joined);
  return status;
}

static att_status refuse_pre(const loader *l) {
  char label[64], known[640] = "";
  size_t used = 0;
  for (int i = 0; att_stored_pre_at(i) && used < sizeof known; i++)
    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                             att_stored_pre_at(i)->name);
  return att_fail(ATT_UNSUPPORTED,
                  "%s: key \"tokenizer.ggml.pre\" is %s; pre-tokenizers that attend knows: %s",
                  l->stored->name,
                  att_quote(label, sizeof label, l->stored->pre.bytes, l->stored->pre.n), known);
}

static att_status add_splits(loader *l, att_bpe *bpe) {
  const att_stored_pre *row = att_stored_pre_find(l->stored->pre);
  if (!row) return refuse_pre(l);
  bpe->whole_pieces = (row->flags & ATT_PRE_WHOLE) != 0;
  l->add_bos = (row->flags & ATT_PRE_BOS) != 0;
  if (row->flags & ATT_PRE_NFC) ATT_TRY(att_hf_normalizer_nfc(&l->hf, NULL));
  for (int i = 0; row->patterns[i]; i++) ATT_TRY(att_hf_split_regex(&l->hf, row->patterns[i]));
  return ATT_OK;
}

static att_status load_gpt2(loader *l) {
  att_hf *hf = &l->hf;
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(att_bpe)));
  att_bpe *bpe = memory;
  *bpe = (att_bpe){.unknown = -1, .prefix = "", .suffix = ""};
  ATT_TRY(add_splits(l, bpe));
  hf->byte_level = true;
  ATT_TRY(att_gguf_read_tokens(&l->hf, l->stored));
  ATT_TRY(read_merges(l, bpe));
  att_bpe_find_bytes(bpe, &hf->t->vocab, true, false);
  ATT_TRY(att_bpe_find_joints(bpe, &hf->t->arena, &hf->t->vocab));
  hf->t->kind = &att_kind_byte_bpe;
  hf->t->model = bpe;
  return att_hf_decoder_byte_level(hf, NULL);
}

/* ---- WordPiece ---- */

/* [CLS] first [SEP], and then second [SEP] of type 1. */
static att_status make_pair_templates(loader *l, int32_t cls, int32_t sep) {
  void *memory;
  ATT_TRY(att_arena_take(&memory, &l->hf.t->arena, 5, sizeof(att_template_item)));
  att_template_item *items = memory;
  const att_template_item all[] = {{cls, 0, 0}, {-1, 0, 0}, {sep, 0, 0}, {-1, 1, 1}, {sep, 0, 1}};
  memcpy(items, all, sizeof all);
  l->hf.t->single = (att_template){items, 3};
  l->hf.t->pair = (att_template){items, 5};
  return ATT_OK;
}

static att_status load_bert(loader *l) {
  const att_stored_tokenizer *s = l->stored;
  int64_t cls = s->cls >= 0 ? s->cls : s->bos, sep = s->sep >= 0 ? s->sep : s->eos;
  ATT_TRY(check_id(l, s->unknown, "unknown"));
  ATT_TRY(check_id(l, cls, "cls"));
  ATT_TRY(check_id(l, sep, "seperator"));
  if (cls < 0 || sep < 0)
    return att_fail(ATT_CORRUPT, "%s: key \"tokenizer.ggml.%s_token_id\" is missing", s->name,
                    cls < 0 ? "cls" : "seperator");
  ATT_TRY(att_gguf_load_bert(&l->hf, s));
  l->around = true;
  return make_pair_templates(l, (int32_t)cls, (int32_t)sep);
}

/* ---- Unigram ---- */

static att_status load_t5(loader *l) {
  ATT_TRY(check_id(l, l->stored->unknown, "unknown"));
  ATT_TRY(att_gguf_load_t5(&l->hf, l->stored));
  l->add_eos = true;
  return ATT_OK;
}

static att_status load(loader *l) {
  char label[64];
  if (att_stored_is(l->stored, "llama"))
    ATT_TRY(load_llama(l));
  else if (att_stored_is(l->stored, "gpt2"))
    ATT_TRY(load_gpt2(l));
  else if (att_stored_is(l->stored, "bert"))
    ATT_TRY(load_bert(l));
  else if (att_stored_is(l->stored, "t5"))
    ATT_TRY(load_t5(l));
  else
    return att_fail(ATT_UNSUPPORTED,
                    "%s: key \"tokenizer.ggml.model\" is %s; attend knows bert, gpt2, llama and t5",
                    l->stored->name,
                    att_quote(label, sizeof label, l->stored->model.bytes, l->stored->model.n));
  ATT_TRY(att_hf_settle(&l->hf));
  ATT_TRY(add_cut_tokens(l));
  ATT_TRY(att_hf_spell(&l->hf));
  ATT_TRY(set_ends(l));
  ATT_TRY(keep_template(l));
  return l->stored->eos >= 0 ? ATT_OK : att_tokenizer_find_ends(l->hf.t, NULL);
}

att_status att_load_gguf(att_tokenizer **out, const att_runtime *runtime,
                         const att_stored_tokenizer *stored) {
  loader l = {.stored = stored};
  ATT_TRY(att_hf_begin(&l.hf, runtime, NULL, 0, stored->name));
  return att_hf_end(out, &l.hf, load(&l));
}
