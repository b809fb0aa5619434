/* Unigram: of all ways to cut a piece into tokens, the one whose scores (log
 * probabilities) have the largest sum; of equal ones the first found, scanning
 * starts from left to right and lengths upwards.
 *
 * best[i] is the best way to reach byte i; a character without a token of its
 * own may be the unknown one, at a price below all scores. Unknown neighbours
 * are one token, or its bytes where the vocabulary has tokens for them. */
#include <math.h>
#include <string.h>

#include "base/line.h"
#include "text/hf.h"
#include "text/trie.h"
#include "text/vocab_models.h"

#define UNKNOWN_PENALTY 10.0

typedef struct unigram {
  att_trie trie;
  const double *scores; /* [vocabulary size] */
  double unknown_score;
  int32_t unknown; /* or -1 */
  bool byte_fallback;
  int32_t byte_ids[256];
} unigram;

typedef struct step {
  double score;
  uint32_t from; /* where the last token begins */
  int32_t id;    /* NOT_REACHED: no way leads here */
} step;

enum { NOT_REACHED = -1 };

static void offer(step *best, double score, uint32_t from, int32_t id) {
  if (best->id == NOT_REACHED || score > best->score) *best = (step){score, from, id};
}

/* Offers every token that begins at `at`; true if one is as long as the
 * character there. */
static bool offer_tokens(const unigram *model, step *best, const char *text, uint32_t n,
                         uint32_t at, uint32_t character) {
  bool covers = false;
  int32_t node = ATT_TRIE_ROOT;
  for (uint32_t i = at; i < n; i++) {
    node = att_trie_step(&model->trie, node, (unsigned char)text[i]);
    if (node == ATT_TRIE_NONE) break;
    int32_t id = model->trie.values[node];
    if (id < 0) continue;
    offer(&best[i + 1], best[at].score + model->scores[id], at, id);
    covers = covers || i + 1 - at == character;
  }
  return covers;
}

static att_status cannot_express(const att_job *job, uint32_t at, uint32_t n) {
  char quoted[64];
  return att_fail(ATT_UNSUPPORTED, "the vocabulary has no token for %s at byte %u",
                  att_quote(quoted, sizeof quoted, job->text.bytes + at, n),
                  att_text_origin(&job->text, at, at + n).begin);
}

static att_status find_best(att_job *job, step *best, uint32_t begin, uint32_t end) {
  const unigram *model = job->tokenizer->model;
  const char *text = job->text.bytes + begin;
  uint32_t n = end - begin, code;
  for (uint32_t i = 1; i <= n; i++) best[i].id = NOT_REACHED;
  best[0] = (step){0.0, 0, 0};
  for (uint32_t at = 0, length; at < n; at += length) {
    length = (uint32_t)att_char_next(&code, text + at, n - at);
    if (offer_tokens(model, best, text, n, at, length)) continue;
    if (model->unknown < 0) return cannot_express(job, begin + at, length);
    offer(&best[at + length], best[at].score + model->unknown_score, at, model->unknown);
  }
  return ATT_OK;
}

static bool has_bytes(const unigram *model, const char *text, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (model->byte_ids[(unsigned char)text[i]] < 0) return false;
  return model->byte_fallback;
}

/* A run of unknown characters. The run may spell a token after all. */
static att_status emit_unknown(att_job *job, uint32_t begin, uint32_t end) {
  const unigram *model = job->tokenizer->model;
  const char *text = job->text.bytes + begin;
  uint32_t n = end - begin;
  int32_t node = att_trie_walk(&model->trie, ATT_TRIE_ROOT, text, n);
  int32_t id = node == ATT_TRIE_NONE ? -1 : model->trie.values[node];
  if (id >= 0) return att_job_emit(job, id, begin, end);
  if (!has_bytes(model, text, n)) return att_job_emit(job, model->unknown, begin, end);
  for (uint32_t i = 0; i < n; i++)
    ATT_TRY(att_job_emit(job, model->byte_ids[(unsigned char)text[i]], begin, end));
  return ATT_OK;
}

/* Emits tokens[n-1], …, tokens[0], unknown neighbours as one. */
static att_status emit_backwards(att_job *job, const att_token *tokens, int64_t n) {
  const unigram *model = job->tokenizer->model;
  for (int64_t i = n - 1; i >= 0; i--) {
    uint32_t begin = tokens[i].begin;
    if (tokens[i].id != model->unknown) {
      ATT_TRY(att_job_emit(job, tokens[i].id, begin, tokens[i].end));
      continue;
    }
    while (i > 0 && tokens[i - 1].id == model->unknown) i--;
    ATT_TRY(emit_unknown(job, begin, tokens[i].end));
  }
  return ATT_OK;
}

static att_status encode(att_job *job, uint32_t begin, uint32_t end) {
  uint32_t n = end - begin;
  att_list *steps = att_job_scratch(job, 0, sizeof(step));
  att_list *way = att_job_scratch(job, 1, sizeof(att_token));
  ATT_TRY(att_list_reserve(steps, (int64_t)n + 1));
  step *best = steps->items;
  ATT_TRY(find_best(job, best, begin, end));
  for (uint32_t at = n; at > 0; at = best[at].from) {
    att_token token = {best[at].id, begin + best[at].from, begin + at};
    ATT_TRY(att_list_append(way, &token, 1));
  }
  return emit_backwards(job, way->items, way->n);
}

const att_kind att_kind_unigram = {"unigram", encode};

int32_t att_unigram_unknown(const att_tokenizer *t) { return ((const unigram *)t->model)->unknown; }

static att_status read_piece(att_hf *hf, double *scores, const att_json_node *pair, int32_t id) {
  const att_json_node *piece = pair->child, *score = piece ? piece->next : NULL;
  if (pair->type != ATT_JSON_ARRAY || pair->count != 2 || piece->type != ATT_JSON_STRING ||
      score->type != ATT_JSON_NUMBER)
    return att_hf_fail(hf, ATT_CORRUPT, pair, "an entry must be [piece, score]");
  if (piece->text_bytes == 0) return att_hf_fail(hf, ATT_CORRUPT, piece, "an empty piece");
  ATT_TRY(att_hf_set_piece(hf, pair, id, piece->text, piece->text_bytes, 0));
  scores[id] = score->number;
  hf->t->vocab.entries[id].score = (float)score->number;
  return ATT_OK;
}

/* The trie of the first n pieces (added tokens lie behind them), and the price of
 * what is none. */
static att_status plant(att_hf *hf, unigram *model, const double *scores, int64_t n) {
  const att_vocab *vocab = &hf->t->vocab;
  double least = INFINITY;
  int64_t bytes = 0;
  for (int64_t id = 0; id < n; id++) {
    bytes += vocab->entries[id].piece_bytes;
    if (scores[id] < least) least = scores[id];
  }
  ATT_TRY(att_trie_create(&model->trie, &hf->t->arena, bytes));
  for (int32_t id = 0; id < n; id++)
    if (vocab->entries[id].piece_bytes > 0)
      att_trie_add(&model->trie, vocab->entries[id].piece, vocab->entries[id].piece_bytes, id);
  model->scores = scores;
  model->unknown_score = least - UNKNOWN_PENALTY;
  return ATT_OK;
}

static att_status read_vocabulary(att_hf *hf, unigram *model, const att_json_node *list) {
  void *memory;
  ATT_TRY(att_hf_vocabulary(hf, list->count - 1, list->count));
  ATT_TRY(att_hf_take(&memory, hf, hf->t->vocab.size, sizeof(double)));
  double *scores = memory;
  int32_t id = 0;
  for (const att_json_node *pair = list->child; pair; pair = pair->next)
    ATT_TRY(read_piece(hf, scores, pair, id++));
  return plant(hf, model, scores, list->count);
}

static void find_bytes(unigram *model, att_vocab *vocab) {
  for (int byte = 0; byte < 256; byte++) {
    int32_t id = att_vocab_find_byte(vocab, (unsigned char)byte);
    model->byte_ids[byte] = id;
    if (id >= 0 && model->byte_fallback) vocab->entries[id].flags |= ATT_TOKEN_BYTE;
  }
}

att_status att_unigram_make(att_hf *hf, int32_t unknown) {
  const att_vocab *vocab = &hf->t->vocab;
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(unigram)));
  unigram *model = memory;
  ATT_TRY(att_hf_take(&memory, hf, vocab->size, sizeof(double)));
  double *scores = memory;
  for (int64_t id = 0; id < vocab->size; id++) scores[id] = (double)vocab->entries[id].score;
  ATT_TRY(plant(hf, model, scores, vocab->size));
  model->unknown = unknown;
  find_bytes(model, &hf->t->vocab);
  hf->t->kind = &att_kind_unigram;
  hf->t->model = model;
  return ATT_OK;
}

att_status att_hf_model_unigram(att_hf *hf, const att_json_node *node) {
  const att_json_node *list;
  int64_t unknown;
  void *memory;
  ATT_TRY(att_hf_take(&memory, hf, 1, sizeof(unigram)));
  unigram *model = memory;
  if (hf->byte_level) return att_hf_fail(hf, ATT_UNSUPPORTED, node, "Unigram behind ByteLevel");
  ATT_TRY(att_hf_field(&list, hf, node, "vocab", ATT_JSON_ARRAY));
  ATT_TRY(att_hf_integer(&unknown, hf, node, "unk_id", -1));
  ATT_TRY(att_hf_bool(&model->byte_fallback, hf, node, "byte_fallback", false));
  if (unknown < -1 || unknown >= list->count)
    return att_hf_fail(hf, ATT_CORRUPT, node, "\"unk_id\" is %lld in a vocabulary of %lld",
                       (long long)unknown, (long long)list->count);
  if (list->count == 0) return att_hf_fail(hf, ATT_CORRUPT, list, "an empty vocabulary");
  ATT_TRY(read_vocabulary(hf, model, list));
  model->unknown = (int32_t)unknown;
  find_bytes(model, &hf->t->vocab);
  hf->t->kind = &att_kind_unigram;
  hf->t->model = model;
  return ATT_OK;
}
