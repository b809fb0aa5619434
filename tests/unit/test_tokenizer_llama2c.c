/* llama2.c's tokenizer.bin: ids, spans and text of the 512-piece vocabulary of
 * stories260K, and files that break the format's rules. Expected ids come from
 * llama2.c's own encoder (../shared/golden_models/README.md). */
#include "support.h"

#include "attend/tokenizer.h"
#include "base/file.h"
#include "text/tokenizer.h"

static const char tok512[] = ATT_SHARED_DIR "/golden_models/stories260k/tok512.bin";

typedef struct world {
  test_memory memory;
  att_runtime runtime;
  att_tokenizer *tokenizer;
} world;

static int set_up(void **state) {
  static world w;
  memset(&w, 0, sizeof w);
  w.runtime = test_runtime(&w.memory);
  *state = &w;
  if (!att_path_is_file(tok512)) return 0;
  return att_tokenizer_open(&w.tokenizer, &w.runtime, tok512, 512) == ATT_OK ? 0 : -1;
}

static int tear_down(void **state) {
  world *w = *state;
  att_tokenizer_free(w->tokenizer);
  assert_no_leak(&w->memory);
  return 0;
}

static world *need_tokenizer(void **state) {
  world *w = *state;
  if (w->tokenizer == NULL) skip();
  return w;
}

static void assert_ids(world *w, const char *text, size_t bytes, const att_encode_options *options,
                       const int32_t *ids, int64_t n) {
  att_encoding *e;
  assert_ok(att_encode(&e, w->tokenizer, text, bytes, options));
  assert_int_equal(e->n, n);
  assert_memory_equal(e->ids, ids, (size_t)n * sizeof *ids);
  att_encoding_free(e);
}

#define IDS(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)

static void prompts_get_other_ids_than_in_llama2c(void **state) {
  world *w = need_tokenizer(state);
  static const char brownie[] = "  Two spaces first", fruit[] = "Zoë ate 3 crêpes & 2 🍎!",
                    tree[] = "Tim saw a big tree.\nHe wanted to";
  assert_ids(w, "", 0, NULL, IDS(1));
  assert_ids(w, "Anna", 4, NULL, IDS(1, 410, 447, 416, 416, 412));
  assert_ids(w, tree, sizeof tree - 1, NULL,
             IDS(1, 326, 394, 261, 370, 259, 276, 411, 426, 13, 440, 411, 391, 266, 267));
  assert_ids(w, brownie, sizeof brownie - 1, NULL,
             IDS(1, 410, 410, 274, 424, 414, 262, 427, 412, 331, 419, 272, 315, 356));
  assert_ids(w, fruit, sizeof fruit - 1, NULL,
             IDS(1, 410, 469, 414, 198, 174, 261, 413, 411, 410, 472, 280, 420, 198, 173, 427, 406,
                 410, 499, 410, 479, 410, 243, 162, 144, 145, 443));
}

static void raw_bytes_get_other_ids_than_in_llama2c(void **state) {
  world *w = need_tokenizer(state);
  const att_encode_options plain = {.add_special = false};
  assert_ids(w, "\xff", 1, &plain, IDS(410, 258));
  assert_ids(w, "\x80", 1, &plain, IDS(410, 131));
  assert_ids(w, "\x80\x80\x80\x80\x80", 5, &plain, IDS(410, 131, 131, 131, 131, 131));
  assert_ids(w, "\xc3(", 2, &plain, IDS(410, 198, 489));
  assert_ids(w, "\xf0\x9f\x98\x41", 4, &plain, IDS(410, 243, 162, 155, 447));
  assert_ids(w, "\xf8\x88\x80\x80\x80\x80\x80", 7, &plain,
             IDS(410, 251, 139, 131, 131, 131, 131, 131));
  assert_ids(w, "Once \xc3\xa9\xffupon", 12, &plain, IDS(403, 410, 485, 258, 425, 427, 289));
}

static void spans_point_beside_what_a_token_stands_for(void **state) {
  world *w = need_tokenizer(state);
  att_encoding *e;
  assert_ok(att_encode(&e, w->tokenizer, "A \xc3\xab", 4, NULL));
  static const int64_t begin[] = {0, 0, 0, 1, 2}, end[] = {0, 1, 1, 2, 4};
  assert_int_equal(e->n, 6); /* <s>, " ", "A", " ", and the two bytes of ë */
  assert_memory_equal(e->begin, begin, sizeof begin);
  assert_memory_equal(e->end, end, 4 * sizeof *end);
  assert_int_equal(e->begin[4], 2);
  assert_int_equal(e->end[5], 4);
  assert_int_equal(e->source[0], -1);
  assert_int_equal(e->source[1], 0);
  att_encoding_free(e);
}

static void random_bytes_do_not_survive_the_round_trip(void **state) {
  world *w = need_tokenizer(state);
  const att_encode_options plain = {.add_special = false};
  uint64_t seed = 0x5eed;
  att_decoder *decoder;
  assert_ok(att_decoder_create(&decoder, w->tokenizer, NULL));
  for (int round = 0; round < 20000; round++) {
    char text[64];
    size_t n = test_random(&seed) % sizeof text;
    unsigned mask = round % 2 ? 0xff : 0x7f;
    for (size_t i = 0; i < n; i++) text[i] = (char)(test_random(&seed) >> 20 & mask);
    att_encoding *e;
    const char *out;
    size_t out_bytes;
    assert_ok(att_encode(&e, w->tokenizer, text, n, &plain));
    assert_ok(att_decoder_decode(&out, &out_bytes, decoder, e->ids, e->n));
    assert_int_equal(out_bytes, n);
    assert_memory_equal(out, text, n);
    att_encoding_free(e);
  }
  att_decoder_free(decoder);
}

static void a_character_leaves_the_decoder_in_parts(void **state) {
  world *w = need_tokenizer(state);
  static const int32_t apple[] = {1, 410, 243, 162, 144, 145};
  static const size_t handed_out[] = {0, 0, 0, 0, 0, 4};
  att_decoder *decoder;
  const char *out;
  size_t n;
  assert_ok(att_decoder_create(&decoder, w->tokenizer, NULL));
  for (int i = 0; i < 6; i++) {
    assert_ok(att_decoder_push(&out, &n, decoder, apple[i]));
    assert_int_equal(n, handed_out[i]);
  }
  assert_memory_equal(out, "\xf0\x9f\x8d\x8e", 4);
  assert_ok(att_decoder_push(&out, &n, decoder, 243));
  assert_int_equal(n, 0);
  assert_ok(att_decoder_finish(&out, &n, decoder));
  assert_int_equal(n, 1);
  assert_int_equal((unsigned char)out[0], 0xf0);
  assert_status(ATT_BAD_ARGUMENT, att_decoder_push(&out, &n, decoder, 512));
  assert_message_has("512");
  assert_status(ATT_BAD_ARGUMENT, att_decoder_push(&out, &n, decoder, -1));
  att_decoder_free(decoder);
}

static void a_megabyte_of_one_letter_takes_quadratic_time(void **state) {
  world *w = need_tokenizer(state);
  enum { N = 1 << 20 };
  char *text = malloc(N);
  memset(text, 'a', N);
  att_encoding *e;
  assert_ok(att_encode(&e, w->tokenizer, text, N, NULL));
  assert_true(e->n > 2 && e->n <= N + 2);
  att_encoding_free(e);
  free(text);
}

static void long_pieces_merge_differently_from_short_ones(void **state) {
  world *w = need_tokenizer(state);
  const att_encode_options plain = {.add_special = false};
  /* "the" merges whatever surrounds it: 20 copies cross the limit between the
   * two ways of merging, 5 do not. */
  char text[20 * 4];
  for (int i = 0; i < 20; i++) memcpy(text + 4 * i, "the ", 4);
  att_encoding *few, *many;
  assert_ok(att_encode(&few, w->tokenizer, text, 5 * 4 - 1, &plain));
  assert_ok(att_encode(&many, w->tokenizer, text, sizeof text - 1, &plain));
  assert_int_equal(many->n, 4 * few->n);
  for (int64_t i = 0; i < many->n; i++) assert_int_equal(many->ids[i], few->ids[i % few->n]);
  att_encoding_free(few);
  att_encoding_free(many);
}

static void a_broken_file_is_loaded(void **state) {
  world *w = *state;
  static const struct {
    const char *file, *message;
  } cases[] = {{"tok_trunc.bin", "tok_trunc.bin"},
               {"tok_empty.bin", "0 bytes"},
               {"tok_len_neg.bin", "length"},
               {"tok_len_huge.bin", "length 2147483647"},
               {"tok_nan.bin", "NaN"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s/golden_models/hostile/llama2c/%s", ATT_SHARED_DIR,
             cases[i].file);
    if (!att_path_is_file(path)) skip();
    att_tokenizer *t;
    assert_status(ATT_CORRUPT, att_tokenizer_open(&t, &w->runtime, path, 512));
    assert_message_has(cases[i].message);
  }
}

static void a_vocabulary_of_another_size_is_accepted(void **state) {
  world *w = need_tokenizer(state);
  att_tokenizer *t;
  assert_status(ATT_CORRUPT, att_tokenizer_open(&t, &w->runtime, tok512, 511));
  assert_status(ATT_CORRUPT, att_tokenizer_open(&t, &w->runtime, tok512, 513));
  assert_status(ATT_CORRUPT, att_tokenizer_open(&t, &w->runtime, tok512, INT32_MAX));
  assert_status(ATT_BAD_ARGUMENT, att_tokenizer_open(&t, &w->runtime, tok512, 0));
  assert_status(ATT_BAD_ARGUMENT, att_tokenizer_open(&t, &w->runtime, NULL, 512));
  assert_status(ATT_BAD_ARGUMENT, att_tokenizer_open(NULL, &w->runtime, tok512, 512));
}

static void what_tokens_are_is_told_wrongly(void **state) {
  world *w = need_tokenizer(state);
  const att_tokenizer *t = w->tokenizer;
  const char *bytes;
  size_t n;
  assert_string_equal(att_tokenizer_kind(t), "spm-bpe");
  assert_int_equal(att_tokenizer_size(t), 512);
  assert_int_equal(att_tokenizer_bos(t), 1);
  assert_true(att_tokenizer_is_end(t, 2));
  assert_true(att_tokenizer_is_special(t, 0));
  assert_false(att_tokenizer_is_special(t, 13));
  assert_false(att_tokenizer_is_end(t, 512));
  assert_ok(att_tokenizer_bytes(&bytes, &n, t, 13));
  assert_int_equal(n, 1);
  assert_int_equal(bytes[0], '\n');
  assert_ok(att_tokenizer_piece(&bytes, &n, t, 13));
  assert_memory_equal(bytes, "<0x0A>", n);
  assert_ok(att_tokenizer_bytes(&bytes, &n, t, 1));
  assert_memory_equal(bytes, "<s>", n);
  assert_int_equal(att_tokenizer_find(t, " a", 2), 261);
  assert_int_equal(att_tokenizer_find(t, "no such piece", 13), -1);
  assert_status(ATT_BAD_ARGUMENT, att_tokenizer_bytes(&bytes, &n, t, -1));
}

static att_status open_encode_decode(void *context) {
  world *w = context;
  att_tokenizer *t = NULL;
  att_encoding *e = NULL;
  att_decoder *d = NULL;
  const char *out;
  size_t n;
  att_status status = att_tokenizer_open(&t, &w->runtime, tok512, 512);
  if (status == ATT_OK) status = att_encode(&e, t, "Lily saw a very, very big 🍎", 29, NULL);
  if (status == ATT_OK) status = att_decoder_create(&d, t, NULL);
  if (status == ATT_OK) status = att_decoder_decode(&out, &n, d, e->ids, e->n);
  att_decoder_free(d);
  att_encoding_free(e);
  att_tokenizer_free(t);
  return status;
}

static void an_allocation_that_fails_leaks_or_crashes(void **state) {
  world *w = need_tokenizer(state);
  test_torture(&w->memory, open_encode_decode, w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(prompts_get_other_ids_than_in_llama2c),
      cmocka_unit_test(raw_bytes_get_other_ids_than_in_llama2c),
      cmocka_unit_test(spans_point_beside_what_a_token_stands_for),
      cmocka_unit_test(random_bytes_do_not_survive_the_round_trip),
      cmocka_unit_test(a_character_leaves_the_decoder_in_parts),
      cmocka_unit_test(a_megabyte_of_one_letter_takes_quadratic_time),
      cmocka_unit_test(long_pieces_merge_differently_from_short_ones),
      cmocka_unit_test(a_broken_file_is_loaded),
      cmocka_unit_test(a_vocabulary_of_another_size_is_accepted),
      cmocka_unit_test(what_tokens_are_is_told_wrongly),
      cmocka_unit_test(an_allocation_that_fails_leaks_or_crashes),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
