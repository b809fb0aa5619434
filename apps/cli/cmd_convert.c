/* cmd_convert.c — attend convert: a model into another file format. */
#include "attend/convert.h"
#include "json_out.h"
#include "progress.h"
#include "stored_types.h"

#include <stdio.h>

static const char *tokenizer_path;
static bool without_tokenizer, without_heads, force;
static int dtype;

static const char *const dtypes[] = {NULL, "f32", "f16", "bf16", "q8_0", "q4_0", "q4_K", "q6_K"};

static const option options[] = {
    {"dtype", 0, OPTION_CHOICE, &dtype, "keep|f32|f16|bf16|q8_0|q4_0|q4_K|q6_K", 0, 0,
     "type of the matrices; default: as they are stored. Rows that are no whole blocks of it "
     "become q8_0, or f16"},
    {"tokenizer", 'z', OPTION_TEXT, &tokenizer_path, "FILE", 0, 0,
     "tokenizer to put in; default: the one that belongs to the model"},
    {"no-tokenizer", 0, OPTION_FLAG, &without_tokenizer, NULL, 0, 0, "put none in"},
    {"no-heads", 0, OPTION_FLAG, &without_heads, NULL, 0, 0,
     "leave out the heads of an encoder, which fill gaps and pool; GGUF has no place for them"},
    {"force", 0, OPTION_FLAG, &force, NULL, 0, 0, "replace a TARGET that is a file already there"},
    {0}};

/* What came of it, by looking into the new file: "9 F32, 14 Q8_0". */
static int report(const cli *c, att_runtime *runtime, const char *source, const char *target) {
  att_description *written;
  if (att_describe(&written, runtime, target) != ATT_OK) return cli_fail_status(c);
  const stored_types all = stored_types_of(written);
  char list[160] = "";
  size_t used = 0;
  for (int i = 0; i < all.n && used < sizeof list; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%lld %s", i ? ", " : "",
                             (long long)all.types[i].tensors, all.types[i].type);
  cli_note(c, "%s is written; tensors: %s", target, list);
  if (c->json) {
    json j = json_begin(stdout);
    json_open(&j, NULL, '{');
    json_string(&j, "source", source);
    json_string(&j, "target", target);
    json_open(&j, "tensors", '{');
    for (int i = 0; i < all.n; i++) json_int(&j, all.types[i].type, all.types[i].tensors);
    json_close(&j);
    json_close(&j);
    json_end(&j);
  }
  att_description_free(written);
  return CLI_OK;
}

static int run(const cli *c, int n, char **operands) {
  (void)n;
  att_runtime *runtime;
  int code = cli_new_file(c, operands[1], force);
  if (code == CLI_OK) code = cli_runtime(&runtime, c);
  if (code != CLI_OK) return code;
  progress bar = progress_begin_stoppable(c, "converting");
  att_convert_options how;
  att_convert_options_init(&how);
  how.dtype = dtypes[dtype];
  how.tokenizer_path = tokenizer_path;
  how.without_tokenizer = without_tokenizer;
  how.without_heads = without_heads;
  how.progress = progress_show;
  how.payload = &bar;
  att_status status = att_convert(runtime, operands[0], operands[1], &how);
  progress_end(&bar);
  code = status == ATT_OK ? report(c, runtime, operands[0], operands[1]) : cli_fail_status(c);
  att_runtime_free(runtime);
  return code;
}

const command cmd_convert = {
    .operands = "SOURCE TARGET",
    .least = 2,
    .most = 2,
    .about =
        "Writes the model SOURCE (a Hugging Face directory, a .gguf or a llama2.c .bin) as TARGET: "
        "a GGUF file if its name ends in .gguf, else a Hugging Face directory. The tokenizer goes "
        "along. TARGET appears when it is complete; it must not be there yet, but for a folder "
        "that "
        "is empty or, with --force, a file.",
    .options = options,
    .run = run,
};
