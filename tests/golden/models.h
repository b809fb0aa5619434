/* The checkpoints that a model's expected values belong to. */
#ifndef ATT_TESTS_GOLDEN_MODELS_H
#define ATT_TESTS_GOLDEN_MODELS_H

#include "golden.h"

#define GOLDEN_PATH 1024

typedef struct golden_models {
  int n;
  char path[16][GOLDEN_PATH];
} golden_models;

/* …/MODEL/expected/file: every checkpoint in MODEL and the folders in it, be it
 * llama2.c (.bin), Hugging Face (a folder with config.json) or .gguf. A file
 * config_X.json stands for a folder with the same weights and that as its
 * config.json: for it alone are the expected files whose names end in _X; one
 * without such files says the same as config.json in other words. */
void golden_find_models(golden_models *out, const char *expected_file);

/* The path without the folder that MODEL lies in, for labels. */
const char *golden_model_label(const char *path);

/* True for a GGUF whose weights are a rounding of the checkpoint (F16, Q8_0 …):
 * the float64 traces were not made from those. */
bool golden_is_rounded(const char *path);

/* GGUF has no key for some settings of a config.json; its files lack them or have
 * them folded into a weight. Both read the config.json beside a .gguf: */
/* a window that the file does not tell of: it is another model; */
bool golden_window_is_lost(golden *g, const char *path);
/* a scale of scores that is in the query weights: what brings the queries back. */
typedef struct golden_folding {
  float factor;  /* 1 if nothing is folded */
  bool by_layer; /* instead: layer + 1 */
} golden_folding;
golden_folding golden_folding_of(golden *g, const char *path);

/* d_model^-0.5 of T5's logits, which is in the last norm then. */
bool golden_factor_is_folded(golden *g, const char *path);

/* Where positions of the expected files begin: RoBERTa counts them behind the id of
 * its padding token. Read from config.json, in the folder or beside a .gguf. */
int64_t golden_first_position(golden *g, const char *path);

/* Opens model and session with the runner's block and span, for `context` positions
 * (0: the model's own): what depends on the length of a text is as for a text so
 * long. Where the library cannot, the run is marked and false comes back. */
typedef struct golden_timeline {
  att_model *model;
  att_session *session;
} golden_timeline;
bool golden_timeline_open(golden_timeline *out, golden *g, const char *path, bool tokenizer,
                          int64_t context);
void golden_timeline_close(golden_timeline *timeline);

/* Reads ids in the pieces that --chunk asks for; the logits of each position go
 * to rows of `logits` f32 [n,V] unless it is absent. */
bool golden_feed(golden *g, att_session *session, const int32_t *ids, int64_t n, att_view logits);

#endif
