/* Greedy continuations and next-token probabilities.
 *
 * greedy.jsonl: prompt, ids that the float64 reference goes on with, text.
 * sorted.jsonl: six letters in, six letters out.
 * next_token.json: the largest probabilities after each prompt.
 *
 * Two logits closer than 1e-3 may change places between float32 and float64, so
 * where the file says that such a gap occurs, the ids may part at a position
 * where the engine's own logits show it, and are not compared beyond. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jsonl.h"
#include "models.h"

#define SMALL_GAP 1e-3
#define LOGIT_ERROR 1e-4
#define PROBABILITY_ERROR 5e-5 /* what an error of 1e-4 in two logits can do */

typedef struct taken {
  int32_t *ids;
  int64_t n;
} taken;

static bool take(int32_t id, void *payload) {
  taken *new_ids = payload;
  new_ids->ids[new_ids->n++] = id;
  return true;
}

/* Generates at temperature 0. */
static bool go_on(golden_case *c, const golden_timeline *timeline, const int32_t *prompt,
                  int64_t n_prompt, int64_t n_new, taken *out) {
  golden *g = c->g;
  *out = (taken){golden_alloc(c, n_new, sizeof *out->ids), 0};
  att_sampler_options greedy;
  att_sampler_options_init(&greedy);
  greedy.temperature = 0;
  att_generate_options options;
  att_generate_options_init(&options);
  options.max_new = n_new;
  options.on_token = take;
  options.payload = out;
  att_sampler *sampler;
  int64_t vocab = att_model_describe(timeline->model)->vocab;
  if (!golden_ok(g, att_sampler_create(&sampler, g->runtime, &greedy, vocab), "sampler"))
    return false;
  att_generate_result result;
  bool fine =
      golden_ok(g, att_generate(&result, timeline->session, sampler, prompt, n_prompt, &options),
                "att_generate");
  att_sampler_free(sampler);
  return fine;
}

/* How far apart the engine itself sees two tokens after `n` ids. */
static double logit_gap(golden_case *c, const golden_timeline *timeline, const int32_t *ids,
                        int64_t n, int32_t a, int32_t b) {
  if (att_session_truncate(timeline->session, 0) != ATT_OK ||
      !golden_feed(c->g, timeline->session, ids, n, att_view_none()))
    return INFINITY;
  att_view all = att_session_logits(timeline->session);
  att_view last = att_view_select(all, 0, all.shape[0] - 1);
  double *logits = golden_doubles(c, &last);
  return fabs(logits[a] - logits[b]);
}

/* want: the prompt's ids and those after it. */
static void expect_ids(golden_case *c, const golden_timeline *timeline, const taken *got,
                       const int32_t *want, int64_t n_prompt, int64_t n_want, bool close_call) {
  int64_t n_new = n_want - n_prompt, i = 0;
  while (i < n_new && i < got->n && got->ids[i] == want[n_prompt + i]) i++;
  if (i == n_new && got->n == n_new) return;
  int32_t mine = i < got->n ? got->ids[i] : -1, theirs = i < n_new ? want[n_prompt + i] : -1;
  if (close_call && mine >= 0 && theirs >= 0 &&
      logit_gap(c, timeline, want, n_prompt + i, mine, theirs) < SMALL_GAP + 2 * LOGIT_ERROR)
    return;
  golden_fail(c->g, "new token, worst element [%lld], got id %d, want id %d (%lld new, want %lld)",
              (long long)i, mine, theirs, (long long)got->n, (long long)n_new);
}

/* The ids that belong to a checkpoint: those of the float64 run over its weights. */
static int32_t *wanted_ids(golden_case *c, const att_json_node *row, const char *model, int64_t *n,
                           bool *close_call) {
  static const char *const types[] = {"F16", "Q8_0"};
  const char *gap = "min_top2_gap";
  char ids_key[64] = "greedy_ids", gap_key[64];
  for (size_t i = 0; golden_is_rounded(model) && i < sizeof types / sizeof *types; i++) {
    if (!strstr(model, types[i])) continue;
    snprintf(gap_key, sizeof gap_key, "ref_dequant_%s_min_gap", types[i]);
    snprintf(ids_key, sizeof ids_key, "ref_dequant_%s_ids", types[i]);
    gap = gap_key;
  }
  const char *same = golden_member_text(row, ids_key);
  if (same && strcmp(same, "same") == 0) strcpy(ids_key, "greedy_ids");
  const att_json_node *smallest = att_json_member(row, gap);
  *close_call = smallest && smallest->number < SMALL_GAP;
  return golden_ids(c, row, ids_key, n);
}

static void run_greedy(golden_case *c, const att_json_node *row, const char *model) {
  golden_timeline timeline;
  int64_t n_prompt = 0, n_want = 0;
  bool close_call;
  int32_t *prompt = golden_ids(c, row, "prompt_ids", &n_prompt);
  int32_t *want = wanted_ids(c, row, model, &n_want, &close_call);
  if (!golden_timeline_open(&timeline, c->g, model, false, n_want)) return;
  taken got;
  if (!prompt || !want)
    golden_skip(c->g, "no greedy ids for this type of weights");
  else if (go_on(c, &timeline, prompt, n_prompt, n_want - n_prompt, &got))
    expect_ids(c, &timeline, &got, want, n_prompt, n_want, close_call);
  golden_timeline_close(&timeline);
}

static void expect_prompt(golden_case *c, const att_json_node *row,
                          const att_tokenizer *tokenizer) {
  int64_t n = 0;
  const att_json_node *prompt = att_json_member(row, "prompt");
  int32_t *want = golden_ids(c, row, "prompt_ids", &n);
  att_encoding *got;
  if (!prompt || !want ||
      !golden_ok(c->g, att_encode(&got, tokenizer, prompt->text, prompt->text_bytes, NULL),
                 "att_encode"))
    return;
  golden_expect_ids(c, "prompt ids", got->ids, got->n, want, n);
  att_encoding_free(got);
}

/* Appends what a decoder hands out; false if the text differs there. */
static bool follows(const att_json_node *text, size_t *at, const char *bytes, size_t n) {
  bool same = text->text_bytes - *at >= n && memcmp(text->text + *at, bytes, n) == 0;
  *at += n;
  return same;
}

static void expect_text(golden_case *c, const att_json_node *row, const att_tokenizer *tokenizer) {
  const att_json_node *text = att_json_member(row, "text");
  int64_t n = 0;
  int32_t *ids = golden_ids(c, row, "greedy_ids", &n);
  att_decoder *decoder;
  if (!text || !ids || !golden_ok(c->g, att_decoder_create(&decoder, tokenizer, NULL), "decoder"))
    return;
  const char *bytes;
  size_t n_bytes, at = 0;
  bool same = true;
  for (int64_t i = 0; same && i <= n; i++) {
    att_status status = i < n ? att_decoder_push(&bytes, &n_bytes, decoder, ids[i])
                              : att_decoder_finish(&bytes, &n_bytes, decoder);
    if (!golden_ok(c->g, status, "decoder")) break;
    same = follows(text, &at, bytes, n_bytes);
  }
  if (!same || at != text->text_bytes)
    golden_fail(c->g, "text differs before byte %zu of %zu", at, text->text_bytes);
  att_decoder_free(decoder);
}

/* A folder whose tokenizer.json is of a kind that is not read yet. */
static bool tokenizer_unsupported(golden_case *c, const char *model) {
  char path[GOLDEN_PATH];
  att_tokenizer *tokenizer;
  if (snprintf(path, sizeof path, "%s/tokenizer.json", model) >= GOLDEN_PATH) return false;
  att_status status = att_tokenizer_open(&tokenizer, c->g->runtime, path, 0);
  if (status == ATT_OK) att_tokenizer_free(tokenizer);
  return status == ATT_UNSUPPORTED;
}

static void run_text(golden_case *c, const att_json_node *row, const char *model) {
  golden_timeline timeline;
  if (tokenizer_unsupported(c, model)) {
    golden_skip(c->g, "unsupported: tokenizer.json");
    return;
  }
  if (!golden_timeline_open(&timeline, c->g, model, true, 0)) return;
  const att_tokenizer *tokenizer = att_model_tokenizer(timeline.model);
  if (tokenizer) {
    expect_prompt(c, row, tokenizer);
    expect_text(c, row, tokenizer);
  } else {
    golden_fail(c->g, "no tokenizer was found");
  }
  golden_timeline_close(&timeline);
}

static void each_model(golden_case *c, const att_json_node *row, const char *what,
                       void (*run)(golden_case *, const att_json_node *, const char *)) {
  golden_models models;
  golden_find_models(&models, c->path);
  const char *id = golden_member_text(row, "id");
  for (int i = 0; i < models.n; i++) {
    char label[256];
    snprintf(label, sizeof label, "%s %s %s", id ? id : "row", what,
             golden_model_label(models.path[i]));
    if (!golden_begin(c->g, c->path, label)) continue;
    run(c, row, models.path[i]);
    golden_end(c->g);
  }
}

static void greedy_row(golden_case *c, const att_json_node *row) {
  each_model(c, row, "ids", run_greedy);
  each_model(c, row, "text", run_text);
}

void golden_greedy(golden_case *c) { golden_each_line(c, greedy_row); }

static void run_sorted(golden_case *c, const att_json_node *row, const char *model) {
  golden_timeline timeline;
  if (!golden_timeline_open(&timeline, c->g, model, false, 0)) return;
  int64_t n_in = 0, n_out = 0;
  int32_t *in = golden_ids(c, row, "input", &n_in), *out = golden_ids(c, row, "output", &n_out);
  taken got;
  if (!in || !out)
    golden_fail(c->g, "no input or output");
  else if (go_on(c, &timeline, in, n_in, n_out, &got))
    expect_ids(c, &timeline, &got, out, 0, n_out, false);
  golden_timeline_close(&timeline);
}

static void sorted_row(golden_case *c, const att_json_node *row) {
  each_model(c, row, golden_member_text(row, "input_letters"), run_sorted);
}

void golden_sorted(golden_case *c) { golden_each_line(c, sorted_row); }

static void run_next(golden_case *c, const att_json_node *row, const char *model) {
  golden_timeline timeline;
  const att_json_node *top = att_json_member(row, "float64_top");
  int64_t n = 0;
  int32_t *ids = golden_ids(c, row, "input_ids", &n);
  if (!top || !ids) {
    golden_skip(c->g, "next_token without input_ids or float64_top");
    return;
  }
  if (!golden_timeline_open(&timeline, c->g, model, false, n)) return;
  int64_t vocab = att_model_describe(timeline.model)->vocab;
  att_view logits = golden_new(c, ATT_F32, 2, (int64_t[]){n, vocab});
  if (golden_feed(c->g, timeline.session, ids, n, logits)) {
    att_view last = att_view_select(logits, 0, n - 1);
    double *p = golden_doubles(c, &last), sum = 0;
    for (int64_t i = 0; i < vocab; i++) sum += exp(p[i]);
    for (const att_json_node *pair = top->child; pair; pair = pair->next) {
      int64_t id = pair->child->integer;
      double got = exp(p[id]) / sum, want = pair->child->next->number;
      if (!(fabs(got - want) <= PROBABILITY_ERROR))
        golden_fail(c->g, "probability, worst element [%lld], got %.9g, want %.9g", (long long)id,
                    got, want);
    }
  }
  golden_timeline_close(&timeline);
}

void golden_next_token(golden_case *c) {
  size_t bytes = 0;
  char *text = golden_slurp(c, c->path, &bytes);
  att_json *json;
  if (!text || att_json_parse(&json, c->g->runtime, text, bytes, c->path) != ATT_OK) {
    if (!golden_begin(c->g, c->path, "")) return;
    golden_fail(c->g, "cannot be read: %s", att_message());
    golden_end(c->g);
    return;
  }
  for (const att_json_node *row = att_json_root(json)->child; row; row = row->next)
    if (row->key && row->type == ATT_JSON_OBJECT) each_model(c, row, row->key, run_next);
  att_json_free(json);
}
