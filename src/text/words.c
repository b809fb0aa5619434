/* A vocabulary of whole words: each piece is one token. */
#include <string.h>

#include "base/line.h"
#include "text/decoder.h"
#include "text/steps.h"
#include "text/words.h"

static att_status encode(att_job *job, uint32_t begin, uint32_t end) {
  const att_words *words = job->tokenizer->model;
  const char *word = job->text.bytes + begin;
  int32_t id = att_vocab_find(&job->tokenizer->vocab, ATT_BY_PIECE, word, end - begin);
  if (id < 0) id = words->unknown;
  if (id >= 0) return att_job_emit(job, id, begin, end);
  char quoted[64];
  return att_fail(ATT_UNSUPPORTED, "%s at byte %u is no word of the vocabulary",
                  att_quote(quoted, sizeof quoted, word, end - begin),
                  att_text_origin(&job->text, begin, end).begin);
}

const att_kind att_kind_words = {"words", encode};

static att_status set_template(att_tokenizer *t, int32_t bos) {
  void *memory;
  ATT_TRY(att_arena_take(&memory, &t->arena, 4, sizeof(att_template_item)));
  att_template_item *items = memory;
  items[0] = (att_template_item){bos, 0, 0};
  items[1] = (att_template_item){-1, 0, 0};
  items[2] = (att_template_item){bos, 0, 1};
  items[3] = (att_template_item){-1, 1, 1};
  t->bos = bos;
  t->single = (att_template){items, 2};
  t->pair = (att_template){items, 4};
  return ATT_OK;
}

static att_status fill(att_tokenizer *t, const char *const *words, int64_t n, int32_t bos,
                       int32_t unknown) {
  static const att_step split[] = {{att_split_whitespace, NULL}};
  static const att_decode_step join[] = {{&att_decode_join, " "}};
  ATT_TRY(att_vocab_create(&t->vocab, &t->arena, n));
  for (int32_t id = 0; id < n; id++) {
    unsigned flags = id == bos || id == unknown ? ATT_TOKEN_SPECIAL : 0;
    ATT_TRY(att_vocab_set(&t->vocab, &t->arena, id, words[id], (int64_t)strlen(words[id]), flags));
    if (flags == 0) att_vocab_index(&t->vocab, ATT_BY_PIECE, id);
  }
  void *memory;
  ATT_TRY(att_arena_take(&memory, &t->arena, 1, sizeof(att_words)));
  att_words *model = memory;
  model->unknown = unknown;
  t->kind = &att_kind_words;
  t->model = model;
  t->pretokenizers = split;
  t->n_pretokenizers = 1;
  t->decoders = join;
  t->n_decoders = 1;
  return bos >= 0 ? set_template(t, bos) : ATT_OK;
}

att_status att_tokenizer_from_words(att_tokenizer **out, const att_runtime *runtime,
                                    const char *const *words, int64_t n, int32_t bos,
                                    int32_t unknown) {
  if (n < 1 || n > INT32_MAX || bos >= n || unknown >= n)
    return att_fail(ATT_BAD_ARGUMENT, "%lld words, bos %d, unknown %d", (long long)n, bos, unknown);
  att_tokenizer *t;
  ATT_TRY(att_tokenizer_create(&t, runtime));
  att_status status = fill(t, words, n, bos, unknown);
  if (status != ATT_OK) {
    att_tokenizer_free(t);
    return status;
  }
  *out = t;
  return ATT_OK;
}
