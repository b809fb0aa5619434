/* cmd_init.c — attend init: a new model with random weights. */
#include "attend/convert.h"
#include "cli.h"
#include "json_out.h"

#include <stdio.h>

enum { MOST = 1 << 30 };

static att_init_options what;
static const char *target;
static bool force;
static int dtype;

static const char *const dtypes[] = {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_K", "q6_K"};

static const option options[] = {
    {"output", 'o', OPTION_TEXT, &target, "TARGET", 0, 0,
     "where to: a .gguf file or a directory; must be given"},
    {"layers", 0, OPTION_INT, &what.layers, "N", 1, 10000, "blocks; default 4"},
    {"width", 0, OPTION_INT, &what.width, "C", 1, MOST, "numbers per position; default 128"},
    {"heads", 0, OPTION_INT, &what.heads, "H", 1, MOST, "query heads; default width/32"},
    {"kv-heads", 0, OPTION_INT, &what.kv_heads, "G", 1, MOST,
     "key/value heads; default as many as heads"},
    {"ffn", 0, OPTION_INT, &what.ffn_width, "F", 1, MOST,
     "feed-forward width; default 4 times the width (llama: 8/3)"},
    {"vocab", 0, OPTION_INT, &what.vocab, "V", 1, MOST,
     "tokens; default that of the tokenizer, else the 256 bytes and an end"},
    {"context", 0, OPTION_INT, &what.context, "N", 1, MOST, "positions; default 256"},
    {"untied", 0, OPTION_FLAG, &what.untied, NULL, 0, 0, "an output matrix of its own"},
    {"qkv-bias", 0, OPTION_FLAG, &what.qkv_bias, NULL, 0, 0,
     "of attention: biases of queries, keys and values"},
    {"learned-positions", 0, OPTION_FLAG, &what.learned_positions, NULL, 0, 0,
     "of attention: a vector for each position in place of a rotation"},
    {"rope-theta", 0, OPTION_REAL, &what.rope_theta, "BASE", 1, 1e9,
     "base of the rotation of llama and attention; default 10000"},
    {"look-back", 0, OPTION_REAL, &what.look_back, "W", 0, 1000,
     "biases with which heads of the first two layers begin to look 1, 2, 3 … tokens back, the "
     "more strongly the larger W is (12: clearly); default 0"},
    {"deviation", 0, OPTION_REAL, &what.deviation, "D", 1e-9, 10,
     "of the random weights; default 0.02"},
    {"dtype", 0, OPTION_CHOICE, &dtype, "f32|f16|bf16|q8_0|q4_0|q4_K|q6_K", 0, 0,
     "type of the matrices; default f32"},
    {"tokenizer", 'z', OPTION_TEXT, &what.tokenizer_path, "FILE", 0, 0,
     "tokenizer to put in; default: one that makes a token of every byte"},
    {"force", 0, OPTION_FLAG, &force, NULL, 0, 0, "replace a TARGET that is a file already there"},
    {0}};

static int run(const cli *c, int n, char **operands) {
  (void)n;
  att_runtime *runtime;
  if (!target) return cli_usage(c, "where to? Give -o TARGET");
  int code = cli_new_file(c, target, force);
  if (code == CLI_OK) code = cli_runtime(&runtime, c);
  if (code != CLI_OK) return code;
  what.struct_size = sizeof what;
  what.family = operands[0];
  what.dtype = dtypes[dtype];
  what.seed = c->seed;
  code = att_init_model(runtime, target, &what) == ATT_OK ? CLI_OK : cli_fail_status(c);
  att_runtime_free(runtime);
  if (code != CLI_OK) return code;
  if (c->json) {
    json j = json_begin(stdout);
    json_open(&j, NULL, '{');
    json_string(&j, "family", operands[0]);
    json_string(&j, "target", target);
    json_close(&j);
    json_end(&j);
  }
  cli_note(c, "%s is written", target);
  return CLI_OK;
}

const command cmd_init = {
    .operands = "FAMILY",
    .least = 1,
    .most = 1,
    .about = "Writes a new model of the FAMILY gpt2, llama, qwen2 (llama with biases of "
             "queries, keys and values) or attention (llama without its "
             "feed-forward network; a directory only) with random weights, ready to be trained: "
             "normal with deviation 0.02, norms 1, biases 0. The same --seed gives the same "
             "weights. TARGET must not be there yet, but for a directory that is empty or, with "
             "--force, a file.",
    .options = options,
    .run = run,
};
