/* WordPiece and Unigram tokenizers in GGUF's spelling against the same ones from
 * tokenizer.json. */
#include "support.h"

#include <unistd.h>

#include "model.h"
#include "text/load_gguf.h"

#define TOKENIZERS ATT_SHARED_DIR "/golden_models/tokenizers/"

/* The vocabulary as llama.cpp's converter writes it. */
static void spell(att_stored_text *out, char *memory, const char *piece, size_t n) {
  bool bracketed = n >= 2 && piece[0] == '[' && piece[n - 1] == ']';
  const char *front = bracketed ? "" : "\xE2\x96\x81";
  if (n >= 2 && memcmp(piece, "##", 2) == 0 && !bracketed) {
    front = "";
    piece += 2;
    n -= 2;
  }
  size_t before = strlen(front);
  memcpy(memory, front, before);
  memcpy(memory + before, piece, n);
  *out = (att_stored_text){memory, before + n};
}

static const char *const texts[] = {
    "",
    "The quick brown fox jumps over the lazy dog.",
    "Un caf\xC3\xA9 na\xC3\xAFve \xE2\x80\x94 d\xC3\xA9j\xC3\xA0 vu!",
    "unaffable embeddings, tokenization; [brackets] [MASK] and #hashes ##ing",
    "\xE4\xBD\xA0\xE5\xA5\xBD\xE4\xB8\x96\xE7\x95\x8C 123 3.14",
    "  spaces\tand\nlines  ",
    "supercalifragilistic \xF0\x9F\x98\x80 \xFF",
};

static void compare(const att_tokenizer *from_json, const att_tokenizer *from_gguf) {
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (int special = 0; special < 2; special++) {
      const att_encode_options how = {.add_special = special, .parse_special = true};
      att_encoding *a, *b;
      assert_ok(att_encode(&a, from_json, texts[i], strlen(texts[i]), &how));
      assert_ok(att_encode(&b, from_gguf, texts[i], strlen(texts[i]), &how));
      assert_int_equal(a->n, b->n);
      if (a->n > 0) assert_memory_equal(a->ids, b->ids, (size_t)a->n * sizeof *a->ids);
      att_encoding_free(a);
      att_encoding_free(b);
    }
  att_encoding *a, *b;
  assert_ok(att_encode_pair(&a, from_json, texts[1], 10, texts[3], 9, NULL));
  assert_ok(att_encode_pair(&b, from_gguf, texts[1], 10, texts[3], 9, NULL));
  assert_int_equal(a->n, b->n);
  assert_memory_equal(a->ids, b->ids, (size_t)a->n * sizeof *a->ids);
  assert_memory_equal(a->types, b->types, (size_t)a->n * sizeof *a->types);
  att_encoding_free(a);
  att_encoding_free(b);
}

static void try_folder(const char *path) {
  test_need(path);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_tokenizer *json, *gguf;
  assert_ok(att_tokenizer_open(&json, runtime, path, 0));
  int64_t n = att_tokenizer_size(json);
  att_stored_text *tokens = calloc((size_t)n, sizeof *tokens);
  int32_t *types = calloc((size_t)n, sizeof *types);
  char *memory = malloc((size_t)n * 128), *at = memory;
  for (int64_t id = 0; id < n; id++) {
    const char *piece;
    size_t bytes;
    assert_ok(att_tokenizer_piece(&piece, &bytes, json, (int32_t)id));
    assert_true(bytes < 120);
    spell(&tokens[id], at, piece, bytes);
    at += tokens[id].n;
    types[id] =
        att_tokenizer_is_special(json, (int32_t)id) ? ATT_STORED_CONTROL : ATT_STORED_NORMAL;
  }
  att_stored_tokenizer stored = {.name = "test",
                                 .model = {"bert", 4},
                                 .n_tokens = n,
                                 .tokens = tokens,
                                 .types = types,
                                 .bos = -1,
                                 .eos = -1,
                                 .eot = -1,
                                 .eom = -1,
                                 .unknown = att_tokenizer_find(json, "[UNK]", 5),
                                 .cls = att_tokenizer_find(json, "[CLS]", 5),
                                 .sep = att_tokenizer_find(json, "[SEP]", 5)};
  assert_ok(att_load_gguf(&gguf, runtime, &stored));
  compare(json, gguf);
  att_tokenizer_free(gguf);
  stored.cls = n;
  assert_status(ATT_CORRUPT, att_load_gguf(&gguf, runtime, &stored));
  assert_message_has("cls_token_id");
  stored.cls = -1;
  assert_status(ATT_CORRUPT, att_load_gguf(&gguf, runtime, &stored));
  stored.n_tokens = 0;
  assert_status(ATT_CORRUPT, att_load_gguf(&gguf, runtime, &stored));
  att_tokenizer_free(json);
  free(memory);
  free(types);
  free(tokens);
  att_runtime_free(runtime);
}

/* Pieces that are spelled back wrongly, or accents that are kept. */
static void test_small_letters(void **state) {
  (void)state;
  try_folder(TOKENIZERS "bert_uncased/tokenizer.json");
}

/* Capitals that are lost though the vocabulary has them. */
static void test_capitals(void **state) {
  (void)state;
  try_folder(TOKENIZERS "small_bert_cased_style/tokenizer.json");
}

/* ---- Unigram ---- */

/* Base64 of a JSON string; the number of bytes comes back. */
static size_t decode_base64(char *out, const char *text, size_t n) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t written = 0;
  for (size_t i = 0; i + 3 < n; i += 4) {
    uint32_t bits = 0;
    int padding = 0;
    for (size_t k = 0; k < 4; k++) {
      const char *digit = strchr(digits, text[i + k]);
      bits = bits << 6 | (digit ? (uint32_t)(digit - digits) : 0);
      padding += text[i + k] == '=';
    }
    for (int k = 0; k < 3 - padding; k++) out[written++] = (char)(bits >> (16 - 8 * k));
  }
  return written;
}

static char *slurp(const char *path, size_t *n) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *n = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(*n + 1);
  assert_int_equal(fread(text, 1, *n, file), *n);
  text[*n] = 0;
  fclose(file);
  return text;
}

static void assert_same_ids(const att_tokenizer *one, const att_tokenizer *other) {
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    att_encoding *a, *b;
    assert_ok(att_encode(&a, one, texts[i], strlen(texts[i]), NULL));
    assert_ok(att_encode(&b, other, texts[i], strlen(texts[i]), NULL));
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->ids, b->ids, (size_t)a->n * sizeof *a->ids);
    att_encoding_free(a);
    att_encoding_free(b);
  }
}

/* A score, a map of characters or an end that is lost on the way. */
static void test_unigram(void **state) {
  (void)state;
  static const char path[] = TOKENIZERS "unigram_en/tokenizer.json";
  test_need(path);
  att_runtime *runtime = test_runtime_of(NULL, 1, NULL);
  att_tokenizer *json, *gguf;
  size_t bytes;
  char *text = slurp(path, &bytes);
  att_json *tree;
  assert_ok(att_json_parse(&tree, runtime, text, bytes, path));
  const att_json_node *root = att_json_root(tree);
  const att_json_node *map =
      att_json_member(att_json_member(root, "normalizer"), "precompiled_charsmap");
  const att_json_node *list = att_json_member(att_json_member(root, "model"), "vocab");
  int64_t n = list->count, id = 0;
  att_stored_text *tokens = calloc((size_t)n, sizeof *tokens);
  float *scores = calloc((size_t)n, sizeof *scores);
  int32_t *types = calloc((size_t)n, sizeof *types);
  for (const att_json_node *pair = list->child; pair; pair = pair->next, id++) {
    tokens[id] = (att_stored_text){pair->child->text, pair->child->text_bytes};
    scores[id] = (float)pair->child->next->number;
    types[id] = id < 3 ? ATT_STORED_CONTROL : ATT_STORED_NORMAL;
  }
  char *table = malloc(map->text_bytes);
  att_stored_tokenizer stored = {
      .name = "test",
      .model = {"t5", 2},
      .n_tokens = n,
      .tokens = tokens,
      .scores = scores,
      .types = types,
      .charsmap = {table, decode_base64(table, map->text, map->text_bytes)},
      .bos = -1,
      .eos = 2,
      .eot = -1,
      .eom = -1,
      .cls = -1,
      .sep = -1,
      .unknown = 0,
      .add_bos = -1,
      .add_eos = -1,
      .add_space = -1};
  assert_ok(att_tokenizer_open(&json, runtime, path, 0));
  assert_ok(att_load_gguf(&gguf, runtime, &stored));
  assert_same_ids(json, gguf);
  att_tokenizer_free(gguf);
  stored.charsmap.n = 3;
  assert_status(ATT_CORRUPT, att_load_gguf(&gguf, runtime, &stored));
  assert_message_has("charsmap");
  stored.scores = NULL;
  assert_status(ATT_CORRUPT, att_load_gguf(&gguf, runtime, &stored));
  assert_message_has("scores");
  att_tokenizer_free(json);
  att_json_free(tree);
  free(table), free(types), free(scores), free(tokens), free(text);
  att_runtime_free(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_letters),
      cmocka_unit_test(test_capitals),
      cmocka_unit_test(test_unigram),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
