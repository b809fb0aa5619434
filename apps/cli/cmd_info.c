/* cmd_info.c — attend info: what a file is, without loading its weights, or what
 * this machine offers. */
#include "attend/describe.h"
#include "attend/encoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json_out.h"
#include "options.h"
#include "stored_types.h"
#include "table.h"
#include "textshow.h"

static const char *model_path;
static int64_t context;
static bool list_tensors;

static const option options[] = {
    {"model", 'm', OPTION_TEXT, &model_path, "MODEL", 0, 0,
     "Hugging Face directory, .gguf, llama2.c .bin, .safetensors or .npy; "
     "default: " CLI_USUAL_MODEL},
    {"context", 'c', OPTION_INT, &context, "N", 1, INT32_MAX,
     "positions to reckon the memory of a session for; default: the model's limit"},
    {"tensors", 0, OPTION_FLAG, &list_tensors, NULL, 0, 0, "list every stored tensor"},
    {0}};

/* ---- text ---- */

static void row_text(table *rows, const char *name, const char *value) {
  table_head(rows, name);
  table_put(rows, INK_OFF, "%s", value);
}

static void row_int(table *rows, const char *name, int64_t value) {
  table_head(rows, name);
  table_put(rows, INK_OFF, "%lld", (long long)value);
}

/* NULL: the files say nothing. */
static const char *pooling_name(const att_model_info *i) {
  return i->pooling == ATT_POOL_CLS     ? "cls"
         : i->pooling == ATT_POOL_MEAN  ? "mean"
         : i->pooling == ATT_POOL_OTHER ? "other"
                                        : NULL;
}

static void put_encoder(table *rows, const att_model_info *i) {
  table_head(rows, "heads for");
  table_put(rows, INK_OFF, "%s",
            i->fills_gaps && i->pooling_head ? "filling gaps, pooling"
            : i->fills_gaps                  ? "filling gaps"
            : i->pooling_head                ? "pooling"
                                             : "nothing: vectors alone");
  table_head(rows, "pooling");
  table_put(rows, INK_OFF, "%s%s", pooling_name(i) ? pooling_name(i) : "not said",
            i->unit_length ? ", made 1 long" : "");
  table_head(rows, "memory");
  table_put(rows, INK_OFF, "%.4g MB, no cache", (double)i->weight_bytes / 1e6);
}

static void put_model(table *rows, const att_description *d, const att_model_info *i) {
  const att_tokenizer *tokenizer = att_description_tokenizer(d);
  table_head(rows, "");
  table_put(rows, INK_OFF, "%lld numbers, %.4g MB in memory%s", (long long)i->parameters,
            (double)i->weight_bytes / 1e6, i->tied_output ? ", output tied to the embedding" : "");
  table_head(rows, "activations");
  table_put(rows, INK_OFF, i->rounded ? "rounded to 8 bits for %lld of the numbers" : "f32",
            (long long)i->rounded);
  row_int(rows, "layers", i->layers);
  if (i->encoder_layers) row_int(rows, "encoder", i->encoder_layers);
  table_head(rows, "heads");
  table_put(rows, INK_OFF, "%lld of width %lld, %lld key/value heads", (long long)i->heads,
            (long long)i->head_dim, (long long)i->kv_heads);
  row_int(rows, "width", i->width);
  row_int(rows, "feed-forward", i->ffn_width);
  row_int(rows, "vocabulary", i->vocab);
  row_int(rows, "context", i->context);
  table_head(rows, "tokenizer");
  if (tokenizer)
    table_put(rows, INK_OFF, "%s, %lld tokens", att_tokenizer_kind(tokenizer),
              (long long)att_tokenizer_size(tokenizer));
  else
    table_put(rows, INK_OFF, "none");
  if (i->kind == ATT_MODEL_ENCODER) {
    put_encoder(rows, i);
    return;
  }
  int64_t positions = context ? context : i->context;
  double cache = (double)att_description_cache_bytes(d, positions, ATT_F32);
  table_head(rows, "memory");
  table_put(rows, INK_OFF, "%.4g MB at %lld positions", ((double)i->weight_bytes + cache) / 1e6,
            (long long)positions);
  table_head(rows, "");
  table_put(rows, INK_OFF, "%.4g MB of it keys and values", cache / 1e6);
}

static void put_types(table *rows, const stored_types *h) {
  for (int i = 0; i < h->n; i++) {
    const stored_type *t = &h->types[i];
    table_head(rows, i ? "" : "stored");
    table_put(rows, INK_OFF, "%s: %lld tensors, %lld numbers, %.4g MB", t->type,
              (long long)t->tensors, (long long)t->numbers, (double)t->bytes / 1e6);
  }
}

static void put_tensors(const cli *c, const att_description *d) {
  table *rows = table_new(&c->term, "lll");
  att_stored_tensor t;
  int64_t n = att_description_tensor_count(d);
  for (int64_t i = 0; i < n && att_description_tensor(&t, d, i); i++) {
    char shape[160] = "[";
    for (int k = 0; k < t.ndim; k++)
      snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", k ? "," : "",
               (long long)t.shape[k]);
    table_head(rows, t.name);
    table_put(rows, INK_OFF, "%s", t.type);
    table_put(rows, INK_OFF, "%s]", shape);
  }
  table_print(rows, 0);
}

static void print_text(const cli *c, const att_runtime *runtime, const att_description *d) {
  const att_model_info *info = att_description_model(d);
  const char *family = att_description_family(d);
  stored_types types = stored_types_of(d);
  table *rows = table_new(&c->term, "ll");
  char cpu[96];
  att_cpu_name(cpu, sizeof cpu);
  row_text(rows, "model", info ? info->name : model_path);
  row_text(rows, "family", family ? family : "none named");
  row_text(rows, "format", att_description_format(d));
  put_types(rows, &types);
  if (info) put_model(rows, d, info);
  row_text(rows, "processor", cpu);
  table_head(rows, "kernels");
  table_put(rows, INK_OFF, "%s, class %s, %d threads", att_runtime_target(runtime),
            att_runtime_class(runtime), att_runtime_threads(runtime));
  table_print(rows, 0);
  if (att_description_refusal(d))
    text_put(&c->term, "It would be refused: %s\n", att_description_refusal(d));
  if (list_tensors) put_tensors(c, d);
}

/* ---- JSON ---- */

static void json_model(json *j, const att_description *d, const att_model_info *i) {
  const att_tokenizer *tokenizer = att_description_tokenizer(d);
  int64_t positions = context ? context : i->context;
  json_string(j, "dtype", i->dtype);
  json_int(j, "parameters", i->parameters);
  json_int(j, "weight_bytes", i->weight_bytes);
  json_string(j, "activations", !i->rounded ? "f32" : "8 bits");
  json_int(j, "rounded_parameters", i->rounded);
  json_bool(j, "tied_output", i->tied_output);
  json_int(j, "layers", i->layers);
  json_int(j, "heads", i->heads);
  json_int(j, "kv_heads", i->kv_heads);
  json_int(j, "head_dim", i->head_dim);
  json_int(j, "width", i->width);
  json_int(j, "ffn_width", i->ffn_width);
  json_int(j, "vocab", i->vocab);
  json_int(j, "context", i->context);
  json_string(j, "tokenizer", tokenizer ? att_tokenizer_kind(tokenizer) : NULL);
  json_int(j, "encoder_layers", i->encoder_layers);
  json_bool(j, "fills_gaps", i->fills_gaps);
  json_string(j, "pooling", pooling_name(i));
  json_bool(j, "unit_length", i->unit_length);
  json_int(j, "cache_positions", positions);
  json_int(j, "cache_bytes", att_description_cache_bytes(d, positions, ATT_F32));
}

static void json_stored(json *j, const att_description *d) {
  stored_types types = stored_types_of(d);
  json_open(j, "stored", '[');
  for (int i = 0; i < types.n; i++) {
    json_open(j, NULL, '{');
    json_string(j, "type", types.types[i].type);
    json_int(j, "tensors", types.types[i].tensors);
    json_int(j, "numbers", types.types[i].numbers);
    json_int(j, "bytes", types.types[i].bytes);
    json_close(j);
  }
  json_close(j);
  if (!list_tensors) return;
  att_stored_tensor t;
  json_open(j, "tensors", '[');
  for (int64_t i = 0; i < types.tensors && att_description_tensor(&t, d, i); i++) {
    json_open(j, NULL, '{');
    json_string(j, "name", t.name);
    json_string(j, "type", t.type);
    json_open(j, "shape", '[');
    for (int k = 0; k < t.ndim; k++) json_int(j, NULL, t.shape[k]);
    json_close(j);
    json_int(j, "bytes", t.bytes);
    json_close(j);
  }
  json_close(j);
}

static void print_json(const att_runtime *runtime, const att_description *d) {
  const att_model_info *info = att_description_model(d);
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", info ? info->name : model_path);
  json_string(&j, "family", att_description_family(d));
  json_string(&j, "format", att_description_format(d));
  json_string(&j, "refused", att_description_refusal(d));
  if (info) json_model(&j, d, info);
  json_stored(&j, d);
  json_string(&j, "target", att_runtime_target(runtime));
  json_string(&j, "class", att_runtime_class(runtime));
  json_int(&j, "threads", att_runtime_threads(runtime));
  json_open(&j, "targets", '[');
  for (int n = 0, usable; att_target_name(n, &usable); n++)
    if (usable) json_string(&j, NULL, att_target_name(n, NULL));
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static int run(const cli *c, int n, char **operands) {
  if (n > 0 && model_path) return cli_usage(c, "the model is given twice");
  if (n > 0) model_path = operands[0];
  att_runtime *runtime;
  att_description *description = NULL;
  int code = cli_runtime(&runtime, c);
  if (code != CLI_OK) return code;
  if (att_describe(&description, runtime, model_path) != ATT_OK)
    code = cli_fail_status(c);
  else if (c->json)
    print_json(runtime, description);
  else
    print_text(c, runtime, description);
  att_description_free(description);
  att_runtime_free(runtime);
  return code;
}

const command cmd_info = {
    .operands = "[MODEL]",
    .least = 0,
    .most = 1,
    .about = "Describes a model file without loading its weights: family, sizes, how much of which "
             "element type, tokenizer, memory at a context, and why it would be refused; and the "
             "kernels that would run it here. --json also lists every kernel target that this "
             "processor has.",
    .options = options,
    .run = run,
};
