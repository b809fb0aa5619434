/* cmd_explain.c — attend explain: one row of one head, line by line. */
#include "explain.h"
#include "explain_grad.h"
#include "explain_words.h"

static subject what;
static explain_request request = {.layer = -1, .head = -1, .query = -1, .key = -1};
static int64_t most_keys = 16;
static bool gradients, by_words;
static const char *target;

static const option options[] = {
    SUBJECT_OPTIONS(what),
    READING_OPTIONS(request.way),
    {"layer", 'L', OPTION_INT, &request.layer, "l", 0, 1e6, "layer, from 0; default: the last"},
    {"head", 'H', OPTION_INT, &request.head, "h", 0, 1e6,
     "head, from 0; default: in a decoder's last layer the one that adds most to the likeliest "
     "token, elsewhere the one that looks hardest at another key"},
    {"query", 0, OPTION_INT, &request.query, "i", 0, 1e9,
     "position that looks, from 0, BOS included; default: the last"},
    {"key", 0, OPTION_INT, &request.key, "j", 0, 1e9,
     "position that is worked out term by term; default: the one with the largest weight"},
    {"block", 0, OPTION_FLAG, &request.block, "", 0, 0,
     "also the block around the head: residual stream, norms, feed-forward, with their lengths"},
    WORDS_OPTION(by_words),
    {"grad", 0, OPTION_FLAG, &gradients, "", 0, 0,
     "also the row's gradients dV, dA, dS, dQ and dK of the loss of --target; all numbers are "
     "those "
     "of f32 weights then, which q4 and q6 files otherwise do not run with"},
    {"target", 0, OPTION_TEXT, &target, "TEXT", 0, 0,
     "with --grad: the token that should come next; default: the likeliest"},
    {"keys", 0, OPTION_INT, &most_keys, "N", 2, 1e9, "at most N keys get a line; default 16"},
    {0}};

static int run(const cli *c, int n, char **operands) {
  explained e = {0};
  explained_grad g = {0};
  explained_words w = {0};
  if (target && !gradients) return cli_usage(c, "--target needs --grad");
  if (gradients && edit_given(&request.way.edits))
    return cli_usage(c, "--grad and --edit exclude each other: the way back is that of the model "
                        "without edits");
  what.f32_weights = gradients; /* the way back has no other */
  int code = subject_open(&what, c, n, operands);
  if (code == CLI_OK) code = explain_collect(&e, c, &what, &request);
  if (code == CLI_OK && gradients) code = explain_grad_collect(&g, c, &e, target);
  if (code == CLI_OK && by_words) code = explain_words_collect(&w, c, &e);
  if (code == CLI_OK) {
    if (c->json)
      explain_json(&e, request.block, gradients ? &g : NULL, by_words ? &w : NULL);
    else
      explain_text(c, &e, most_keys);
    if (!c->json && request.block) explain_block_text(c, &e);
    if (!c->json && gradients) explain_grad_text(c, &e, &g);
    if (!c->json && by_words) explain_words_text(c, &e, &w, most_keys);
  }
  explain_words_free(&w);
  explain_grad_free(&g);
  explain_free(&e);
  subject_close(&what);
  return code;
}

const command cmd_explain = {
    .operands = "[PROMPT]",
    .least = 0,
    .most = 1,
    .about =
        "Runs the model on PROMPT and writes out the arithmetic of one query in one head: the "
        "query, its product with each key, scale, mask, softmax, the weighted values and their "
        "sum. Every number is one that the model's own run made.\n\n"
        "Without PROMPT: a built-in model on a sentence that it was made for. Positions count "
        "from 0, BOS included; the row at "
        "position i predicts the token at i + 1. A word may be several tokens: --words has one "
        "weight for each.\n\n"
        "  attend explain \"Maya lost her kite\" --query 3 --words  # her: 3",
    .options = options,
    .run = run,
};
