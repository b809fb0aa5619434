/* att_encode: takes a text through the steps of its tokenizer (the picture is
 * in tokenizer.h) and puts the template around the tokens. */
#include "text/added.h"
#include "text/encoding.h"
#include "text/pattern.h"

att_status att_job_emit(att_job *job, int32_t id, int64_t begin, int64_t end) {
  att_token token = {id, (uint32_t)begin, (uint32_t)end};
  return att_list_append(&job->tokens, &token, 1);
}

att_status att_job_cut(att_job *job, int64_t begin, int64_t end) {
  if (begin >= end) return ATT_OK;
  att_piece piece = {(uint32_t)begin, (uint32_t)end};
  return att_list_append(&job->spare_pieces, &piece, 1);
}

att_list *att_job_scratch(att_job *job, int which, size_t size) {
  att_list *list = &job->scratch[which];
  if (list->size != size) {
    att_list_free(list);
    list->size = size;
  }
  list->n = 0;
  return list;
}

void att_job_init(att_job *job, const att_tokenizer *tokenizer) {
  const att_runtime *runtime = tokenizer->runtime;
  *job = (att_job){.tokenizer = tokenizer};
  att_text_init(&job->text, runtime);
  att_list_init(&job->pieces, runtime, sizeof(att_piece));
  att_list_init(&job->spare_pieces, runtime, sizeof(att_piece));
  att_list_init(&job->matches, runtime, sizeof(att_piece));
  att_list_init(&job->matchers, runtime, sizeof(att_matcher *));
  att_list_init(&job->tokens, runtime, sizeof(att_token));
  for (int i = 0; i < 2; i++) {
    att_list_init(&job->stretches[i], runtime, sizeof(att_stretch));
    att_list_init(&job->scratch[i], runtime, 1);
  }
}

void att_job_free(att_job *job) {
  att_text_free(&job->text);
  att_list_free(&job->pieces);
  att_list_free(&job->spare_pieces);
  att_list_free(&job->matches);
  att_pattern_release(job);
  att_list_free(&job->tokens);
  for (int i = 0; i < 2; i++) {
    att_list_free(&job->stretches[i]);
    att_list_free(&job->scratch[i]);
  }
}

att_status att_job_normalize(att_job *job) {
  const att_tokenizer *t = job->tokenizer;
  for (int i = 0; i < t->n_normalizers; i++)
    ATT_TRY(t->normalizers[i].run(job, t->normalizers[i].settings));
  return ATT_OK;
}

/* Cuts all of the current text into pieces. */
static att_status cut(att_job *job) {
  const att_tokenizer *t = job->tokenizer;
  job->pieces.n = 0;
  att_piece whole = {0, (uint32_t)job->text.n};
  if (job->text.n > 0) ATT_TRY(att_list_append(&job->pieces, &whole, 1));
  for (int i = 0; i < t->n_pretokenizers; i++) {
    job->spare_pieces.n = 0;
    ATT_TRY(t->pretokenizers[i].run(job, t->pretokenizers[i].settings));
    att_list swap = job->pieces;
    job->pieces = job->spare_pieces;
    job->spare_pieces = swap;
  }
  return ATT_OK;
}

/* Encodes the current text, which holds no added token. */
static att_status encode_text(att_job *job) {
  const att_kind *kind = job->tokenizer->kind;
  int64_t first = job->tokens.n;
  ATT_TRY(cut(job));
  const att_piece *pieces = job->pieces.items;
  for (int64_t i = 0; i < job->pieces.n; i++)
    ATT_TRY(kind->encode(job, pieces[i].begin, pieces[i].end));
  att_token *tokens = job->tokens.items;
  for (int64_t i = first; i < job->tokens.n; i++) {
    att_origin origin = att_text_origin(&job->text, tokens[i].begin, tokens[i].end);
    tokens[i].begin = origin.begin;
    tokens[i].end = origin.end;
  }
  return ATT_OK;
}

/* Encodes a stretch of the input in which the added tokens that are looked for
 * in raw text were cut out. */
static att_status encode_stretch(att_job *job, const char *text, int64_t n, uint32_t base) {
  att_list *stretches = &job->stretches[1];
  att_text_set(&job->text, text, n, base);
  ATT_TRY(att_job_normalize(job));
  ATT_TRY(att_added_cut(stretches, job, job->text.bytes, job->text.n, true));
  const att_stretch *s = stretches->items;
  if (stretches->n == 1 && s->id < 0) return encode_text(job);
  att_text_hold(&job->text);
  for (int64_t i = 0; i < stretches->n; i++) {
    att_text_resume(&job->text, s[i].begin, s[i].end);
    att_origin origin = att_text_origin(&job->text, 0, job->text.n);
    ATT_TRY(s[i].id < 0 ? encode_text(job) : att_job_emit(job, s[i].id, origin.begin, origin.end));
  }
  return ATT_OK;
}

static att_status encode_input(att_job *job, const char *input, int64_t n) {
  att_list *stretches = &job->stretches[0];
  int64_t first = job->tokens.n;
  ATT_TRY(att_added_cut(stretches, job, input, n, false));
  const att_stretch *s = stretches->items;
  for (int64_t i = 0; i < stretches->n; i++)
    ATT_TRY(s[i].id < 0 ? encode_stretch(job, input + s[i].begin, s[i].end - s[i].begin,
                                         (uint32_t)s[i].begin)
                        : att_job_emit(job, s[i].id, s[i].begin, s[i].end));
  att_trim_spans(job, input, first);
  return ATT_OK;
}

static att_status encode_inputs(att_encoding **out, att_job *job, const char *const *texts,
                                const size_t *sizes, int n, const att_encode_options *options) {
  const att_tokenizer *t = job->tokenizer;
  int64_t ends[2] = {0, 0};
  job->parse_special = options->parse_special;
  for (int i = 0; i < n; i++) {
    ATT_TRY(encode_input(job, texts[i], (int64_t)sizes[i]));
    ends[i] = job->tokens.n;
  }
  if (n == 1) ends[1] = ends[0];
  return att_encoding_create(out, t->runtime, job->tokens.items, ends,
                             n == 1 ? &t->single : &t->pair, options->add_special);
}

static att_status check(const att_tokenizer *tokenizer, const char *text, size_t bytes,
                        const char *name) {
  if (tokenizer == NULL) return att_fail(ATT_BAD_ARGUMENT, "tokenizer is NULL");
  if (text == NULL && bytes > 0) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", name);
  if (bytes > ATT_TEXT_MAX)
    return att_fail(ATT_TOO_LARGE, "%s of %zu bytes; at most %d can be tokenized at once", name,
                    bytes, ATT_TEXT_MAX);
  return ATT_OK;
}

static att_status encode(att_encoding **out, const att_tokenizer *tokenizer,
                         const char *const *texts, const size_t *sizes, int n,
                         const att_encode_options *options) {
  static const att_encode_options defaults = {.add_special = true};
  att_job job;
  att_job_init(&job, tokenizer);
  att_status status = encode_inputs(out, &job, texts, sizes, n, options ? options : &defaults);
  att_job_free(&job);
  return status;
}

att_status att_encode_except(att_encoding **out, const att_tokenizer *tokenizer, const char *text,
                             size_t bytes, const att_piece *plain, int64_t n_plain) {
  static const att_encode_options options = {.parse_special = true};
  att_job job;
  ATT_TRY(check(tokenizer, text, bytes, "text"));
  att_job_init(&job, tokenizer);
  job.plain = plain;
  job.n_plain = n_plain;
  att_status status = encode_inputs(out, &job, &text, &bytes, 1, &options);
  att_job_free(&job);
  return status;
}

att_status att_encode(att_encoding **out, const att_tokenizer *tokenizer, const char *text,
                      size_t bytes, const att_encode_options *options) {
  if (out == NULL) return att_fail(ATT_BAD_ARGUMENT, "out is NULL");
  ATT_TRY(check(tokenizer, text, bytes, "text"));
  return encode(out, tokenizer, &text, &bytes, 1, options);
}

att_status att_encode_pair(att_encoding **out, const att_tokenizer *tokenizer, const char *first,
                           size_t first_bytes, const char *second, size_t second_bytes,
                           const att_encode_options *options) {
  if (out == NULL) return att_fail(ATT_BAD_ARGUMENT, "out is NULL");
  ATT_TRY(check(tokenizer, first, first_bytes, "first"));
  ATT_TRY(check(tokenizer, second, second_bytes, "second"));
  return encode(out, tokenizer, (const char *const[]){first, second},
                (const size_t[]){first_bytes, second_bytes}, 2, options);
}
