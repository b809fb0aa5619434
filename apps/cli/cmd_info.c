/* cmd_info.c — attend info: what a model is, or what this machine offers. */
#include <stdio.h>

#include "json_out.h"
#include "subject.h"
#include "table.h"

static subject what;

static const option options[] = {SUBJECT_MODEL_OPTIONS(what), {0}};

static void row_text(table *rows, const char *name, const char *value) {
  table_head(rows, name);
  table_put(rows, INK_OFF, "%s", value);
}

static void row_int(table *rows, const char *name, int64_t value) {
  table_head(rows, name);
  table_put(rows, INK_OFF, "%lld", (long long)value);
}

static void print_text(const cli *c, const att_model_info *i) {
  table *rows = table_new(&c->term, "ll");
  char cpu[96];
  att_cpu_name(cpu, sizeof cpu);
  row_text(rows, "model", i->name);
  row_text(rows, "family", i->family);
  row_text(rows, "format", i->format);
  row_text(rows, "weights", i->dtype);
  table_head(rows, "");
  table_put(rows, INK_OFF, "%lld numbers, %.4g MB%s", (long long)i->parameters,
            (double)i->weight_bytes / 1e6, i->tied_output ? ", output tied to the embedding" : "");
  row_int(rows, "layers", i->layers);
  table_head(rows, "heads");
  table_put(rows, INK_OFF, "%lld of width %lld, %lld key/value heads", (long long)i->heads,
            (long long)i->head_dim, (long long)i->kv_heads);
  row_int(rows, "width", i->width);
  row_int(rows, "feed-forward", i->ffn_width);
  row_int(rows, "vocabulary", i->vocab);
  row_int(rows, "context", i->context);
  row_text(rows, "tokenizer", what.tokenizer ? att_tokenizer_kind(what.tokenizer) : "none");
  row_text(rows, "processor", cpu);
  table_head(rows, "kernels");
  table_put(rows, INK_OFF, "%s, class %s, %d threads", att_runtime_target(what.runtime),
            att_runtime_class(what.runtime), att_runtime_threads(what.runtime));
  table_print(rows, 0);
}

static void print_json(const att_model_info *i) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", i->name);
  json_string(&j, "family", i->family);
  json_string(&j, "format", i->format);
  json_string(&j, "dtype", i->dtype);
  json_int(&j, "parameters", i->parameters);
  json_int(&j, "weight_bytes", i->weight_bytes);
  json_bool(&j, "tied_output", i->tied_output);
  json_int(&j, "layers", i->layers);
  json_int(&j, "heads", i->heads);
  json_int(&j, "kv_heads", i->kv_heads);
  json_int(&j, "head_dim", i->head_dim);
  json_int(&j, "width", i->width);
  json_int(&j, "ffn_width", i->ffn_width);
  json_int(&j, "vocab", i->vocab);
  json_int(&j, "context", i->context);
  json_string(&j, "tokenizer", what.tokenizer ? att_tokenizer_kind(what.tokenizer) : NULL);
  json_string(&j, "target", att_runtime_target(what.runtime));
  json_string(&j, "class", att_runtime_class(what.runtime));
  json_int(&j, "threads", att_runtime_threads(what.runtime));
  json_open(&j, "targets", '[');
  for (int n = 0, usable; att_target_name(n, &usable); n++)
    if (usable) json_string(&j, NULL, att_target_name(n, NULL));
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static int run(const cli *c, int n, char **operands) {
  if (n > 0 && what.model_path) return cli_usage(c, "the model is given twice");
  if (n > 0) what.model_path = operands[0];
  int code = subject_open_model(&what, c);
  if (code == CLI_OK) {
    const att_model_info *info = att_model_describe(what.model);
    if (c->json)
      print_json(info);
    else
      print_text(c, info);
  }
  subject_close(&what);
  return code;
}

const command cmd_info = {
    .operands = "[MODEL]",
    .least = 0,
    .most = 1,
    .about = "Describes a model: family, sizes, number of weights, tokenizer; and the kernels that "
             "would run it here. --json also lists every kernel target that this processor has.",
    .options = options,
    .run = run,
};
