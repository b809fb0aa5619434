/* Counting words. The text goes through a tokenizer without merges, made of the
 * same parts as the one that training will write, but its model only counts
 * the pieces it is given. So words are cut exactly as they will be later. */
#include <string.h>

#include "base/file.h"
#include "text/job.h"
#include "text/train.h"

/* A piece without end would be scanned again for each merge. */
enum { WORD_MAX = 1024, CHUNK = 1 << 20 };

typedef struct counter {
  att_trainer *trainer;
  att_arena arena;
  int32_t *slots; /* [mask + 1] words hashed by their bytes, or -1 */
  uint64_t mask;
} counter;

static int32_t *slot_of(const counter *c, const int32_t *symbols, int64_t n) {
  const att_train_word *words = c->trainer->words.items;
  const int32_t *all = c->trainer->symbols.items;
  uint64_t i = att_hash_bytes((const char *)symbols, n * (int64_t)sizeof *symbols) & c->mask;
  for (;; i = (i + 1) & c->mask) {
    int32_t word = c->slots[i];
    if (word < 0) return &c->slots[i];
    if (words[word].n == n &&
        memcmp(all + words[word].first, symbols, (size_t)n * sizeof *symbols) == 0)
      return &c->slots[i];
  }
}

/* Makes the table twice as large; the old one stays in the arena. */
static att_status grow(counter *c) {
  void *memory;
  uint64_t room = c->mask == 0 ? 1 << 12 : 2 * (c->mask + 1);
  ATT_TRY(att_arena_take(&memory, &c->arena, (int64_t)room, sizeof(int32_t)));
  c->slots = memset(memory, 0xFF, room * sizeof(int32_t));
  c->mask = room - 1;
  const att_train_word *words = c->trainer->words.items;
  const int32_t *all = c->trainer->symbols.items;
  for (int64_t i = 0; i < c->trainer->words.n; i++)
    *slot_of(c, all + words[i].first, words[i].n) = (int32_t)i;
  return ATT_OK;
}

static att_status count_word(counter *c, const char *text, int64_t n) {
  int32_t symbols[WORD_MAX];
  att_trainer *trainer = c->trainer;
  if (2 * (uint64_t)trainer->words.n >= c->mask) ATT_TRY(grow(c));
  for (int64_t i = 0; i < n; i++) symbols[i] = att_train_id_of_byte((unsigned char)text[i]);
  int32_t *slot = slot_of(c, symbols, n);
  if (*slot < 0) {
    att_train_word word = {trainer->symbols.n, n, 0};
    if (trainer->words.n == INT32_MAX)
      return att_fail(ATT_TOO_LARGE, "more than %d different words", INT32_MAX);
    ATT_TRY(att_list_append(&trainer->symbols, symbols, n));
    ATT_TRY(att_list_append(&trainer->words, &word, 1));
    *slot = (int32_t)trainer->words.n - 1;
  }
  ((att_train_word *)trainer->words.items)[*slot].count++;
  return ATT_OK;
}

static att_status count_piece(att_job *job, uint32_t begin, uint32_t end) {
  counter *c = (counter *)job->tokenizer->model;
  for (uint32_t at = begin; at < end; at += WORD_MAX)
    ATT_TRY(count_word(c, job->text.bytes + at, end - at < WORD_MAX ? end - at : WORD_MAX));
  return ATT_OK;
}

static const att_kind counting = {"counting", count_piece};

/* How much of the text to take at once: whole lines, up to one that begins with
 * something visible, since no word reaches across that. */
static size_t chunk_of(const char *text, size_t n) {
  if (n <= CHUNK) return n;
  for (size_t at = CHUNK; at < n; at++)
    if (text[at - 1] == '\n' && (unsigned char)text[at] > ' ' && (unsigned char)text[at] < 0x80)
      return at;
  return n;
}

static att_status count_file(counter *c, const att_tokenizer *cutter, const char *path,
                             double before, double share) {
  const att_encode_options options = {.add_special = false, .parse_special = true};
  att_file file;
  ATT_TRY(att_file_map(&file, path));
  const char *text = (const char *)file.data;
  att_status status = ATT_OK;
  for (size_t at = 0, n; at < file.bytes && status == ATT_OK; at += n) {
    att_encoding *nothing = NULL;
    n = chunk_of(text + at, file.bytes - at);
    status = att_encode(&nothing, cutter, text + at, n, &options);
    att_encoding_free(nothing);
    if (status == ATT_OK)
      status =
          att_train_progress(c->trainer, before + share * (double)(at + n) / (double)file.bytes);
  }
  att_file_unmap(&file);
  return status;
}

static att_status make_cutter(att_tokenizer **out, const att_trainer *trainer) {
  att_list json;
  att_list_init(&json, trainer->runtime, 1);
  att_status status = att_train_write(&json, trainer);
  if (status == ATT_OK)
    status = att_load_hf(out, trainer->runtime, json.items, (size_t)json.n, "training");
  att_list_free(&json);
  return status;
}

att_status att_train_count(att_trainer *trainer, const char *const *paths, int64_t n) {
  att_tokenizer *cutter;
  counter c = {.trainer = trainer};
  ATT_TRY(make_cutter(&cutter, trainer));
  att_arena_init(&c.arena, trainer->runtime);
  cutter->kind = &counting;
  cutter->model = &c;
  att_status status = ATT_OK;
  for (int64_t i = 0; i < n && status == ATT_OK; i++)
    status = count_file(&c, cutter, paths[i], 0.5 * (double)i / (double)n, 0.5 / (double)n);
  att_arena_free(&c.arena);
  att_tokenizer_free(cutter);
  return status;
}
