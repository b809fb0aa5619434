/* Every part that a tokenizer.json can be made of, against the native Hugging
 * Face library (tokenizers 0.23.2, from npm), whose ids, offsets and decoded
 * text are in tests/data/tokenizer_parts.jsonl: a tokenizer and its strings a
 * line, written by that library alone. */
#include "support.h"

#include "attend/tokenizer.h"
#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer.h"

static const char data[] = ATT_SOURCE_DIR "/tests/data/tokenizer_parts.jsonl";

typedef att_json_node node;

typedef struct subject {
  const char *name;
  att_tokenizer *tokenizer;
  att_decoder *decoder;
  int64_t failures;
} subject;

static int64_t code_points(const char *text, int64_t bytes, int64_t end, bool round_up) {
  int64_t n = 0;
  for (int64_t i = 0; i < bytes; i++) n += (text[i] & 0xC0) != 0x80;
  bool inside = bytes < end && (text[bytes] & 0xC0) == 0x80;
  return inside && !round_up ? n - 1 : n;
}

static void complain(subject *s, const char *text, const char *what, long long at, long long got,
                     long long want) {
  if (s->failures++ < 3)
    print_error("%s \"%s\": %s %lld: got %lld, want %lld\n", s->name, text, what, at, got, want);
}

static void check_case(subject *s, const node *c) {
  const node *text = att_json_member(c, "text"), *ids = att_json_member(c, "ids");
  const node *decoded = att_json_member(c, "decoded");
  const node *id = ids->child, *offset = att_json_member(c, "offsets")->child;
  const att_encode_options options = {.add_special = true, .parse_special = true};
  att_encoding *e;
  const char *out;
  size_t out_bytes;
  assert_ok(att_encode(&e, s->tokenizer, text->text, text->text_bytes, &options));
  if (e->n != ids->count) complain(s, text->text, "tokens", 0, e->n, ids->count);
  for (int64_t i = 0; i < e->n && id; i++, id = id->next, offset = offset->next->next) {
    int64_t n = (int64_t)text->text_bytes;
    int64_t begin = code_points(text->text, e->begin[i], n, false);
    int64_t end = code_points(text->text, e->end[i], n, true);
    if (e->ids[i] != id->integer) complain(s, text->text, "id", i, e->ids[i], id->integer);
    if (begin != offset->integer) complain(s, text->text, "begin", i, begin, offset->integer);
    if (end != offset->next->integer) complain(s, text->text, "end", i, end, offset->next->integer);
  }
  assert_ok(att_decoder_decode(&out, &out_bytes, s->decoder, e->ids, e->n));
  if (out_bytes != decoded->text_bytes || memcmp(out, decoded->text, out_bytes) != 0)
    complain(s, text->text, "decoded bytes", 0, (long long)out_bytes,
             (long long)decoded->text_bytes);
  att_encoding_free(e);
}

static int64_t check_line(att_runtime *runtime, const char *line, size_t n) {
  static const att_decoder_options keep = {.skip_special = false, .replace_invalid = true};
  att_json *json;
  assert_ok(att_json_parse(&json, runtime, line, n, "tokenizer_parts.jsonl"));
  const node *root = att_json_root(json), *tokenizer = att_json_member(root, "tokenizer");
  subject s = {.name = att_json_member(root, "name")->text};
  /* The tokenizer's own text lies between its key and that of the cases. */
  const char *begin = strchr(line + tokenizer->offset, '{');
  const char *end = strstr(begin, ",\"cases\":");
  assert_non_null(end);
  assert_ok(att_load_hf(&s.tokenizer, runtime, begin, (size_t)(end - begin), s.name));
  assert_ok(att_decoder_create(&s.decoder, s.tokenizer, &keep));
  for (const node *c = att_json_member(root, "cases")->child; c; c = c->next) check_case(&s, c);
  att_decoder_free(s.decoder);
  att_tokenizer_free(s.tokenizer);
  att_json_free(json);
  return s.failures;
}

static void a_part_works_otherwise_than_in_the_native_library(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file file;
  int64_t failures = 0;
  int lines = 0;
  assert_ok(att_file_map(&file, data));
  const char *at = (const char *)file.data, *end = at + file.bytes;
  while (at < end) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    assert_non_null(newline);
    failures += check_line(&runtime, at, (size_t)(newline - at));
    at = newline + 1;
    lines++;
  }
  att_file_unmap(&file);
  assert_int_equal(failures, 0);
  assert_true(lines >= 50);
  assert_no_leak(&memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_part_works_otherwise_than_in_the_native_library),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
