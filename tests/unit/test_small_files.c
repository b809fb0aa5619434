/* What a small file may cost: no file of a few kilobytes, whatever it claims, makes a
 * parser hold more than a few megabytes at once. Every input of the fuzzers and every
 * hostile file beside the project goes through every way of opening a file, and so do
 * files made here that claim as much as their format can say. */
#define _XOPEN_SOURCE 700
#include "support.h"

#include <ftw.h>
#include <unistd.h>

#include "attend/archive.h"
#include "attend/describe.h"
#include "attend/tokenizer.h"
#include "model.h"

/* The largest that is honest: a table of a million ids, which a vocabulary may skip. */
enum { SMALL = 4096, MOST = 64 << 20 };

typedef struct watched {
  atomic_llong live, most; /* bytes now, and at the worst time */
} watched;

static watched memory;
static att_runtime *runtime;
static long files;

static void *take(size_t bytes, size_t alignment, void *payload) {
  (void)payload;
  long long live = atomic_fetch_add(&memory.live, (long long)bytes) + (long long)bytes;
  if (live > atomic_load(&memory.most)) atomic_store(&memory.most, live);
  void *block = live > MOST ? NULL : att_allocator_default().allocate(bytes, alignment, NULL);
  if (!block) atomic_fetch_sub(&memory.live, (long long)bytes);
  return block;
}

static void give_back(void *block, size_t bytes, void *payload) {
  (void)payload;
  atomic_fetch_sub(&memory.live, (long long)bytes);
  att_allocator_default().release(block, bytes, NULL);
}

static int set_up(void **state) {
  (void)state;
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.threads = 1;
  options.allocator = (att_allocator){.allocate = take, .release = give_back};
  assert_ok(att_runtime_create(&runtime, &options));
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  att_runtime_free(runtime);
  return 0;
}

/* Whether they succeed is no matter here. */
static void open_in_every_way(const char *path) {
  att_description *description;
  att_archive *archive;
  att_tokenizer *tokenizer;
  att_model *model;
  if (att_describe(&description, runtime, path) == ATT_OK) att_description_free(description);
  if (att_archive_open(&archive, runtime, path) == ATT_OK) att_archive_close(archive);
  if (att_model_open(&model, runtime, path, NULL) == ATT_OK) att_model_close(model);
  for (int64_t vocab = 0; vocab <= 512; vocab += 512)
    if (att_tokenizer_open(&tokenizer, runtime, path, vocab) == ATT_OK)
      att_tokenizer_free(tokenizer);
}

static void check(const char *path) {
  atomic_store(&memory.most, atomic_load(&memory.live));
  long long before = atomic_load(&memory.live);
  open_in_every_way(path);
  if (atomic_load(&memory.most) > MOST) fail_msg("%s: asks for more than %d bytes", path, MOST);
  if (atomic_load(&memory.live) != before) fail_msg("%s: leaves memory behind", path);
  files++;
}

static int visit(const char *path, const struct stat *about, int type, struct FTW *place) {
  (void)place;
  if (type == FTW_F && about->st_size <= SMALL) check(path);
  return 0;
}

static void a_known_input_takes_much_memory(void **state) {
  (void)state;
  files = 0;
  assert_int_equal(nftw(ATT_SOURCE_DIR "/fuzz/corpus", visit, 8, 0), 0);
  assert_true(files > 50);
  nftw(ATT_SHARED_DIR "/golden_models/hostile", visit, 8, 0); /* where it is there */
}

/* The bytes of a file; `name` gives the ending that a parser may go by. */
static void check_bytes(const char *name, const void *bytes, size_t n) {
  char folder[64], path[128];
  test_make_folder(folder);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  fclose(file);
  check(path);
  unlink(path);
  rmdir(folder);
}

#define TOKENIZER(added, model)                                                                    \
  "{\"version\": \"1.0\", \"added_tokens\": [" added                                               \
  "], \"normalizer\": null, \"pre_tokenizer\": null, \"post_processor\": null, "                   \
  "\"decoder\": null, \"model\": " model "}"
#define ADDED(id)                                                                                  \
  "{\"id\": " id ", \"content\": \"x\", \"single_word\": false, \"lstrip\": false, "               \
  "\"rstrip\": false, \"normalized\": false, \"special\": true}"
#define BPE(id) "{\"type\": \"BPE\", \"vocab\": {\"a\": " id "}, \"merges\": []}"
#define WORDS(id) "{\"type\": \"WordLevel\", \"vocab\": {\"a\": " id "}, \"unk_token\": \"a\"}"

static void a_text_claims_what_it_does_not_hold(void **state) {
  (void)state;
  static const struct {
    const char *name, *text;
  } rows[] = {
      {"tokenizer.json", TOKENIZER(ADDED("2147483646"), BPE("0"))},
      {"tokenizer.json", TOKENIZER(ADDED("100000000"), BPE("0"))},
      {"tokenizer.json", TOKENIZER("", BPE("2147483646"))},
      {"tokenizer.json", TOKENIZER("", BPE("20000000"))},
      {"tokenizer.json", TOKENIZER("", WORDS("2000000000"))},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    check_bytes(rows[i].name, rows[i].text, strlen(rows[i].text));
  char npy[128];
  static const char head[] = "\x93NUMPY\x01\x00\x76\x00", /* 118 bytes of text */
      text[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }";
  memset(npy, ' ', sizeof npy);
  memcpy(npy, head, sizeof head - 1);
  memcpy(npy + sizeof head - 1, text, sizeof text - 1);
  npy[sizeof npy - 1] = '\n';
  check_bytes("x.npy", npy, sizeof npy);
}

static void put(unsigned char **at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) *(*at)++ = (unsigned char)(value >> 8 * i);
}

static void put_text(unsigned char **at, const char *text) {
  put(at, strlen(text), 8);
  memcpy(*at, text, strlen(text));
  *at += strlen(text);
}

/* Counts and lengths of GGUF, of a llama2.c header and of a safetensors header. */
static void a_count_is_believed(void **state) {
  (void)state;
  static const uint64_t counts[] = {1000, 1u << 24, 1u << 31, UINT64_C(1) << 36, UINT64_MAX};
  enum { ARRAY = 9, STRING = 8, U8 = 0 };
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    for (int which = 0; which < 5; which++) {
      unsigned char bytes[SMALL] = {0}, *at = bytes;
      memcpy(at, "GGUF", 4);
      at += 4;
      put(&at, 3, 4);
      put(&at, which == 0 ? counts[i] : 1, 8); /* tensors */
      put(&at, which == 1 ? counts[i] : 1, 8); /* keys */
      put_text(&at, "tokenizer.ggml.tokens");
      put(&at, ARRAY, 4);
      put(&at, which == 2 ? STRING : U8, 4);
      put(&at, which > 1 && which < 4 ? counts[i] : 1, 8);
      put(&at, 0, 1);
      put_text(&at, "token_embd.weight");
      put(&at, 2, 4);
      put(&at, which == 4 ? counts[i] : 1, 8);
      put(&at, 1, 8);
      check_bytes("x.gguf", bytes, 1000);
    }
    unsigned char head[1024] = {0}, *at = head;
    put(&at, counts[i], 8);
    *at++ = '{';
    check_bytes("x.safetensors", head, sizeof head);
    unsigned char sizes[1024] = {0};
    at = sizes;
    for (int k = 0; k < 7; k++) put(&at, counts[i] & 0x7FFFFFFF, 4);
    check_bytes("x.bin", sizes, sizeof sizes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_known_input_takes_much_memory, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_text_claims_what_it_does_not_hold, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_count_is_believed, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
