/* tokenizers/NAME/expected.jsonl: what a tokenizer's makers get from each text.
 *
 * A row is a text (its own, or one of ../strings.jsonl by id) with ids, spans and
 * decodings; two texts as a pair; or ids to decode. Spans are counted in
 * characters there and in bytes by the library: a token that holds a part of a
 * character stands for all of it there. Fields that would repeat another are
 * left out: ids_special = ids, decoded = text, decoded_skip_special = decoded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/line.h"
#include "jsonl.h"
#include "models.h"

typedef struct tokenizer_job {
  const att_tokenizer *tokenizer;
  att_json *strings; /* strings.jsonl as one array, or NULL */
} tokenizer_job;

/* NAME/tokenizer.json, or that of the model NAME in the group beside this one. */
static void find_tokenizer(char path[GOLDEN_PATH], const char *expected_file) {
  const char *slash = strrchr(expected_file, '/'), *name = slash;
  while (name[-1] != '/') name--;
  int folder = (int)(slash - expected_file), group = (int)(name - expected_file) - 1;
  snprintf(path, GOLDEN_PATH, "%.*s/tokenizer.json", folder, expected_file);
  if (access(path, R_OK) == 0) return;
  snprintf(path, GOLDEN_PATH, "%.*s/../%.*s/hf/tokenizer.json", group, expected_file,
           (int)(slash - name), name);
}

/* Lines of JSON are an array once commas stand between them. */
static att_json *read_strings(golden_case *c) {
  char path[GOLDEN_PATH];
  int folder = (int)(strrchr(c->path, '/') - c->path);
  snprintf(path, sizeof path, "%.*s/../strings.jsonl", folder, c->path);
  size_t bytes = 0;
  char *text = golden_slurp(c, path, &bytes);
  if (!text) return NULL;
  char *array = golden_alloc(c, (int64_t)bytes + 3, 1);
  while (bytes > 0 && text[bytes - 1] == '\n') bytes--;
  array[0] = '[';
  for (size_t i = 0; i < bytes; i++) array[i + 1] = text[i] == '\n' ? ',' : text[i];
  array[bytes + 1] = ']';
  att_json *json = NULL;
  att_json_parse(&json, c->g->runtime, array, bytes + 2, path);
  return json;
}

static const att_json_node *find_text(const tokenizer_job *job, const att_json_node *row) {
  const att_json_node *text = att_json_member(row, "text");
  const char *id = golden_member_text(row, "id");
  if (text || !id || !job->strings) return text;
  const att_json_node *string = att_json_root(job->strings)->child;
  for (; string; string = string->next) {
    const char *other = golden_member_text(string, "id");
    if (other && strcmp(id, other) == 0) return att_json_member(string, "text");
  }
  return NULL;
}

/* [[id, count], …] written out. */
static int32_t *run_lengths(golden_case *c, const att_json_node *row, const char *key, int64_t *n) {
  const att_json_node *runs = att_json_member(row, key);
  if (!runs) return NULL;
  int64_t total = 0;
  for (const att_json_node *run = runs->child; run; run = run->next)
    total += run->child->next->integer;
  int32_t *ids = golden_alloc(c, total, sizeof *ids);
  *n = 0;
  for (const att_json_node *run = runs->child; run; run = run->next)
    for (int64_t i = 0; i < run->child->next->integer; i++)
      ids[(*n)++] = (int32_t)run->child->integer;
  return ids;
}

static int32_t *wanted(golden_case *c, const att_json_node *row, const char *key, int64_t *n) {
  char rle[64];
  snprintf(rle, sizeof rle, "%s_rle", key);
  int32_t *ids = golden_ids(c, row, key, n);
  return ids ? ids : run_lengths(c, row, rle, n);
}

/* Characters that begin in the first `bytes` bytes of the text. */
static int32_t characters(const char *text, int64_t bytes) {
  int32_t n = 0;
  for (int64_t i = 0; i < bytes; i++) n += ((unsigned char)text[i] & 0xC0) != 0x80;
  return n;
}

/* A byte span as a span of whole characters. */
static void span(int32_t out[2], const att_json_node *text, int64_t begin, int64_t end) {
  while (begin > 0 && ((unsigned char)text->text[begin] & 0xC0) == 0x80) begin--;
  out[0] = characters(text->text, begin);
  out[1] = characters(text->text, end);
}

static void expect_spans(golden_case *c, const att_json_node *row, const char *key,
                         const att_encoding *got, const att_json_node *const texts[2]) {
  int64_t n = 0;
  int32_t *want = golden_ids(c, row, key, &n);
  if (!want) return;
  int32_t *spans = golden_alloc(c, 2 * got->n, sizeof *spans);
  for (int64_t i = 0; i < got->n; i++)
    if (got->source[i] >= 0) span(spans + 2 * i, texts[got->source[i]], got->begin[i], got->end[i]);
  golden_expect_ids(c, key, spans, 2 * got->n, want, n);
}

/* A refusal of a text is a failure: the tokenizer has been opened. */
static bool worked(golden_case *c, att_status status, const char *what) {
  if (status != ATT_OK) golden_fail(c->g, "%s: %s", what, att_message());
  return status == ATT_OK;
}

static void expect_decoded(golden_case *c, const char *what, const int32_t *ids, int64_t n,
                           bool skip_special, const att_json_node *want) {
  const tokenizer_job *job = c->payload;
  att_decoder_options options = {.skip_special = skip_special, .replace_invalid = true};
  att_decoder *decoder;
  const char *got;
  size_t bytes;
  if (!want || !worked(c, att_decoder_create(&decoder, job->tokenizer, &options), what)) return;
  if (worked(c, att_decoder_decode(&got, &bytes, decoder, ids, n), what) &&
      (bytes != want->text_bytes || memcmp(got, want->text, bytes) != 0)) {
    char mine[160], theirs[160];
    golden_fail(c->g, "%s, got %s, want %s", what, att_quote(mine, sizeof mine, got, bytes),
                att_quote(theirs, sizeof theirs, want->text, want->text_bytes));
  }
  att_decoder_free(decoder);
}

static void expect_decodings(golden_case *c, const att_json_node *row, const int32_t *ids,
                             int64_t n, const att_json_node *text) {
  const att_json_node *decoded = att_json_member(row, "decoded");
  const att_json_node *skipped = att_json_member(row, "decoded_skip_special");
  if (!decoded) decoded = text;
  expect_decoded(c, "decoded", ids, n, false, decoded);
  expect_decoded(c, "decoded_skip_special", ids, n, true, skipped ? skipped : decoded);
}

static void run_text(golden_case *c, const att_json_node *row, const att_json_node *text) {
  const tokenizer_job *job = c->payload;
  int64_t n = 0, n_special = 0;
  int32_t *want = wanted(c, row, "ids", &n), *special = wanted(c, row, "ids_special", &n_special);
  if (!special) special = want, n_special = n;
  for (int with = 0; with < 2 && want; with++) {
    att_encode_options options = {.add_special = with, .parse_special = true};
    att_encoding *got;
    if (!worked(c, att_encode(&got, job->tokenizer, text->text, text->text_bytes, &options),
                "att_encode"))
      return;
    golden_expect_ids(c, with ? "ids_special" : "ids", got->ids, got->n, with ? special : want,
                      with ? n_special : n);
    if (!with) expect_spans(c, row, "offsets", got, (const att_json_node *[]){text, text});
    att_encoding_free(got);
  }
  if (special) expect_decodings(c, row, special, n_special, text);
}

static void run_pair(golden_case *c, const att_json_node *row, const att_json_node *first,
                     const att_json_node *second) {
  const tokenizer_job *job = c->payload;
  att_encode_options options = {.add_special = true, .parse_special = true};
  att_encoding *got;
  int64_t n_ids = 0, n_types = 0, n_mask = 0;
  int32_t *ids = golden_ids(c, row, "ids_special", &n_ids);
  int32_t *types = golden_ids(c, row, "type_ids", &n_types);
  int32_t *mask = golden_ids(c, row, "special_mask", &n_mask);
  if (!worked(c,
              att_encode_pair(&got, job->tokenizer, first->text, first->text_bytes, second->text,
                              second->text_bytes, &options),
              "att_encode_pair"))
    return;
  int32_t *added = golden_alloc(c, got->n, sizeof *added);
  for (int64_t i = 0; i < got->n; i++) added[i] = got->source[i] < 0;
  if (ids) golden_expect_ids(c, "ids_special", got->ids, got->n, ids, n_ids);
  if (types) golden_expect_ids(c, "type_ids", got->types, got->n, types, n_types);
  if (mask) golden_expect_ids(c, "special_mask", added, got->n, mask, n_mask);
  expect_spans(c, row, "offsets_special", got, (const att_json_node *[]){first, second});
  att_encoding_free(got);
}

static void tokenizer_row(golden_case *c, const att_json_node *row) {
  const tokenizer_job *job = c->payload;
  const char *id = golden_member_text(row, "id");
  const att_json_node *text = find_text(job, row), *pair = att_json_member(row, "pair");
  int64_t n = 0;
  int32_t *decode = golden_ids(c, row, "decode_ids", &n);
  if (!golden_begin(c->g, c->path, id ? id : "row")) return;
  if (!job->tokenizer)
    golden_skip(c->g, "unsupported: tokenizer.json");
  else if (decode)
    expect_decodings(c, row, decode, n, NULL);
  else if (text && pair)
    run_pair(c, row, text, pair);
  else if (text)
    run_text(c, row, text);
  else
    golden_skip(c->g, "the text of a row in expected.jsonl is absent");
  golden_end(c->g);
}

void golden_tokenizer(golden_case *c) {
  char path[GOLDEN_PATH];
  att_tokenizer *tokenizer = NULL;
  find_tokenizer(path, c->path);
  att_status status = att_tokenizer_open(&tokenizer, c->g->runtime, path, 0);
  if (status != ATT_OK && status != ATT_UNSUPPORTED) {
    if (!golden_begin(c->g, c->path, "")) return;
    golden_fail(c->g, "no tokenizer: %s", att_message());
    golden_end(c->g);
    return;
  }
  tokenizer_job job = {tokenizer, read_strings(c)};
  c->payload = &job;
  golden_each_line(c, tokenizer_row);
  att_json_free(job.strings);
  att_tokenizer_free(tokenizer);
}
