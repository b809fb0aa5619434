/* cmd_sdpa.c — attend sdpa: attention on the user's own tensors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "json_out.h"
#include "number.h"
#include "sdpa_cache.h"
#include "sdpa_files.h"
#include "textshow.h"

enum { SHOWN_HEADS = 4, SHOWN_ROWS = 8 };

static sdpa_files files;
static const char *output, *mask_path;
static bool causal, want_weights, strict, over_cache;
static int layout, align;
static int64_t left = ATT_UNBOUNDED, right = ATT_UNBOUNDED;
static double scale, softcap;

static const option options[] = {
    {"output", 'o', OPTION_TEXT, &output, "FILE", 0, 0,
     "writes the result: .safetensors (out, lse, weights if asked) or .npy (out)"},
    {"causal", 0, OPTION_FLAG, &causal, "", 0, 0, "row i sees keys up to its own position"},
    {"align", 0, OPTION_CHOICE, &align, "top-left|bottom-right", 0, 0,
     "where the first row stands if there are more keys than rows: at the first key, or so that "
     "the last row stands at the last key; default top-left"},
    {"left", 0, OPTION_INT, &left, "N", 0, 1e15, "window: keys up to N before the row's position"},
    {"right", 0, OPTION_INT, &right, "N", 0, 1e15, "window: keys up to N behind it"},
    {"scale", 0, OPTION_REAL, &scale, "X", -1e30, 1e30, "factor of q · k; default 1/√D"},
    {"softcap", 0, OPTION_REAL, &softcap, "X", 1e-30, 1e30,
     "scores s become X tanh(s/X); default: no cap"},
    {"mask", 0, OPTION_TEXT, &mask_path, "FILE.npy", 0, 0,
     "mask beside .npy files: bool (true: visible) or float (added to the scores)"},
    {"layout", 0, OPTION_CHOICE, &layout, "bhtd|bthd", 0, 0,
     "order of dimensions in the files; default bhtd"},
    {"weights", 0, OPTION_FLAG, &want_weights, "", 0, 0, "the weights too: T × S numbers a head"},
    {"cache", 0, OPTION_FLAG, &over_cache, "", 0, 0,
     "again over a cache of each type, f32 to q4_0: memory, and the error of the stored keys and "
     "values and of the result"},
    {"strict", 0, OPTION_FLAG, &strict, "", 0, 0, "fail rather than take a slow path"},
    {0}};

/* The three results, in the library's order of dimensions. */
typedef struct results {
  att_view out, lse, weights;
  char plan[200];
  sdpa_cache_error cache[SDPA_CACHE_TYPES];
} results;

static att_status add_rules(att_sdpa_args *args) {
  att_mask *mask = &args->mask;
  att_status status = ATT_OK;
  mask->align = align ? ATT_ALIGN_BOTTOM_RIGHT : ATT_ALIGN_TOP_LEFT;
  if (files.q_offset.data) {
    mask->align = ATT_ALIGN_OFFSETS;
    mask->offsets = files.q_offset.data;
  }
  if (files.prefix.data)
    status =
        att_mask_add(mask, (att_mask_rule){.kind = ATT_MASK_PREFIX, .lengths = files.prefix.data});
  else if (causal)
    status = att_mask_add(mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  if (status == ATT_OK && (option_given(&left) || option_given(&right)))
    status =
        att_mask_add(mask, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = left, .right = right});
  if (status == ATT_OK && files.kv_lens.data)
    status =
        att_mask_add(mask, (att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = files.kv_lens.data});
  if (status == ATT_OK && files.doc_ids_q.data)
    status = att_mask_add(mask, (att_mask_rule){.kind = ATT_MASK_DOCUMENTS,
                                                .query_side = files.doc_ids_q,
                                                .key_side = files.doc_ids_k});
  const att_view given = files.attn_mask;
  if (given.data && att_dtype_is_float(given.dtype))
    args->bias = given;
  else if (given.data && status == ATT_OK)
    status = att_mask_add(mask, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = given});
  return status;
}

/* Lists of one number a sequence are read as plain arrays: check them first. */
static int check_list(const cli *c, const char *name, const att_view *list) {
  if (!list->data) return CLI_OK;
  bool good = list->dtype == ATT_I64 && list->ndim == 1 && list->shape[0] == files.q.shape[0];
  if (good) return CLI_OK;
  return cli_fail(c, "%s must be I64 [%lld], one for each sequence", name,
                  (long long)files.q.shape[0]);
}

static int check_lists(const cli *c) {
  int code = check_list(c, "kv_lens", &files.kv_lens);
  if (code == CLI_OK) code = check_list(c, "q_offset", &files.q_offset);
  if (code == CLI_OK) code = check_list(c, "prefix_lens", &files.prefix);
  return code;
}

static int compute(const cli *c, att_runtime *runtime, results *r) {
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  const att_dtype numbers = files.q.dtype == ATT_F64 ? ATT_F64 : ATT_F32;
  if (!att_dtype_is_float(files.q.dtype))
    return cli_fail(c, "q is %s: attention takes f64, f32, f16, bf16",
                    att_dtype_name(files.q.dtype));
  sdpa_result_new(&r->out, &files, files.q.dtype, files.v.shape[3]);
  sdpa_result_new(&r->lse, &files, numbers, 1);
  if (want_weights) sdpa_result_new(&r->weights, &files, numbers, files.k.shape[2]);
  args.q = files.q;
  args.k = files.k;
  args.v = files.v;
  args.out = r->out;
  args.lse = att_view_select(r->lse, 3, 0);
  args.weights = r->weights;
  args.alibi_slopes = files.alibi_slopes;
  args.sinks = files.sink;
  args.strict = strict;
  if (option_given(&scale)) args.scale = scale;
  if (option_given(&softcap)) args.softcap = softcap;
  att_sdpa_plan *plan = NULL;
  att_status status = add_rules(&args);
  if (status == ATT_OK) status = att_sdpa_plan_create(&plan, runtime, &args);
  if (status == ATT_OK) {
    snprintf(r->plan, sizeof r->plan, "%s", att_sdpa_plan_describe(plan));
    status = att_sdpa(plan, &args);
  }
  att_sdpa_plan_free(plan);
  if (status != ATT_OK) return cli_fail_status(c);
  return over_cache ? sdpa_cache_measure(c, runtime, &args, r->cache) : CLI_OK;
}

static int save(const cli *c, att_runtime *runtime, const results *r) {
  const char *ending = strrchr(output, '.');
  const att_view out = sdpa_result_as_given(&files, r->out);
  if (ending && !strcmp(ending, ".npy"))
    return att_npy_write(runtime, output, &out) == ATT_OK ? CLI_OK : cli_fail_status(c);
  if (!ending || strcmp(ending, ".safetensors"))
    return cli_usage(c, "-o %s: the name must end in .safetensors or .npy", output);
  static const char *const names[] = {"out", "lse", "weights"};
  att_view lse = sdpa_result_as_given(&files, r->lse);
  lse = att_view_select(lse, lse.ndim - 1, 0);
  const att_view views[] = {out, lse,
                            want_weights ? sdpa_result_as_given(&files, r->weights) : out};
  const char *const about[] = {"program", "attend " ATT_VERSION, "class",
                               att_runtime_class(runtime)};
  att_status status =
      att_safetensors_write(runtime, output, want_weights ? 3 : 2, names, views, 2, about);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

static void json_tensor(json *j, const char *key, att_view view) {
  if (!view.data) return;
  att_view given = sdpa_result_as_given(&files, view);
  if (given.dtype == ATT_F32 || given.dtype == ATT_F64) {
    json_view(j, key, given);
    return;
  }
  att_view wide;
  sdpa_result_new(&wide, &files, ATT_F32, view.shape[3]);
  att_view_copy(&wide, &view);
  json_view(j, key, sdpa_result_as_given(&files, wide));
  free(wide.data);
}

static void print_json(att_runtime *runtime, const results *r) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "class", att_runtime_class(runtime));
  json_string(&j, "plan", r->plan);
  json_string(&j, "dtype", att_dtype_name(r->out.dtype));
  json_tensor(&j, "out", r->out);
  att_view lse = sdpa_result_as_given(&files, r->lse);
  json_view(&j, "lse", att_view_select(lse, lse.ndim - 1, 0));
  json_tensor(&j, "weights", r->weights);
  if (over_cache) sdpa_cache_json(&j, r->cache);
  json_close(&j);
  json_end(&j);
}

static void print_shape(const term *t, ink color, const char *name, const att_view *view) {
  printf("%s", t->inks[color]);
  text_put(t, "%s%s%s [", name, term_mark(t, color), color == INK_OFF ? "" : t->inks[INK_OFF]);
  for (int i = 0; i < view->ndim; i++) printf("%s%lld", i ? "," : "", (long long)view->shape[i]);
  printf("] %s\n", att_dtype_name(view->dtype));
}

/* The first rows of one head, as many columns as fit. */
static void print_head(const term *t, att_view m) {
  enum { DIGITS = 6 };
  const int64_t rows = m.shape[0], shown = rows < SHOWN_ROWS ? rows : SHOWN_ROWS, dv = m.shape[1];
  number_format f = {0, 0};
  for (int64_t i = 0; i < shown; i++)
    for (int64_t d = 0; d < dv; d++) {
      float x = ((const float *)m.data)[i * m.stride[0] + d * m.stride[1]];
      f = number_both(f, number_fit(&x, 1, DIGITS));
    }
  int64_t columns = (t->width - 9) / (f.width + 2);
  if (columns > dv) columns = dv;
  for (int64_t i = 0; i < shown; i++) {
    printf("  %4lld ", (long long)i);
    for (int64_t d = 0; d < columns; d++) {
      char number[NUMBER_BYTES];
      number_write(number, f, ((const float *)m.data)[i * m.stride[0] + d * m.stride[1]]);
      printf("  %s", number);
    }
    text_put(t, columns < dv ? " …\n" : "\n");
  }
  if (rows > shown) text_put(t, "     …  %lld more rows\n", (long long)(rows - shown));
}

static void print_rows(const term *t, const results *r) {
  att_view wide;
  sdpa_result_new(&wide, &files, ATT_F32, r->out.shape[3]);
  att_view_copy(&wide, &r->out);
  const int64_t heads = wide.shape[1], all = wide.shape[0] * heads;
  for (int64_t h = 0; h < all && h < SHOWN_HEADS; h++) {
    printf("batch %lld, head %lld\n", (long long)(h / heads), (long long)(h % heads));
    print_head(t, att_view_select(att_view_select(wide, 0, h / heads), 0, h % heads));
  }
  if (all > SHOWN_HEADS)
    text_put(t, "…  %lld more heads (-o and --json have all)\n", (long long)(all - SHOWN_HEADS));
  free(wide.data);
}

static void print_text(const cli *c, const results *r) {
  const term *t = &c->term;
  print_shape(t, INK_Q, "q", &files.q);
  print_shape(t, INK_K, "k", &files.k);
  print_shape(t, INK_V, "v", &files.v);
  print_shape(t, INK_OFF, "out", &r->out);
  printf("plan: %s\n", r->plan);
  if (over_cache)
    sdpa_cache_print(t, r->cache);
  else if (!output)
    print_rows(t, r);
}

static int run(const cli *c, int n, char **operands) {
  att_runtime *runtime = NULL;
  results r = {0};
  files.time_first = layout == 1;
  int code = cli_runtime(&runtime, c);
  if (code == CLI_OK) code = sdpa_files_open(&files, c, runtime, n, operands, mask_path);
  if (code == CLI_OK) code = check_lists(c);
  if (code == CLI_OK) code = compute(c, runtime, &r);
  if (code == CLI_OK && output) code = save(c, runtime, &r);
  if (code == CLI_OK) {
    if (c->json)
      print_json(runtime, &r);
    else
      print_text(c, &r);
  }
  free(r.out.data);
  free(r.lse.data);
  free(r.weights.data);
  sdpa_files_close(&files);
  att_runtime_free(runtime);
  return code;
}

const command cmd_sdpa = {
    .operands = "FILE.safetensors | Q.npy K.npy V.npy",
    .least = 1,
    .most = 3,
    .about =
        "Computes attention on tensors of your own: q [B,H,T,D], k [B,G,S,D], v [B,G,S,Dv], in "
        "float 64, 32, 16 or bfloat16; query head h reads key/value head h/(H/G). Three or two "
        "dimensions ([H,T,D], [T,D]) will do.\n\n"
        "A .safetensors may also hold attn_mask (bool, true: visible; or float, added), sink "
        "[H], alibi_slopes [H], kv_lens, q_offset, prefix_lens [B], doc_ids_q [B,T] and "
        "doc_ids_k [B,S]. All rules apply together.\n\n"
        "Prints shapes, the plan and the first rows; --json prints all numbers. A row that "
        "sees no key is 0, and its lse null in JSON.",
    .options = options,
    .run = run,
};
