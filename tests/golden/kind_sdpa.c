/* sdpa: one attention call with any mix of masks and features, in float32, in
 * float64, in the half types where the inputs are exact in them, and once more
 * with the structural rules replaced by the bool mask they amount to. */
#include <string.h>

#include "attention.h"

static bool exact_in(const golden_case *c, const char *dtype) {
  const char *list = golden_text(c, "inputs_exact_in", "");
  for (size_t n = strlen(dtype); (list = strstr(list, dtype)); list++)
    if (list[n] == ',' || list[n] == 0) return true;
  return false;
}

static double tolerance(const golden_case *c, const golden_way *way, const char *output) {
  char key[64];
  bool half = way->dtype == ATT_F16 || way->dtype == ATT_BF16;
  bool rounded = half && strcmp(output, "out") == 0;
  const char *name = rounded ? att_dtype_name(way->dtype) : "f32";
  strcat(strcat(strcat(strcpy(key, "tol_"), name), "_"), output);
  /* tol_f32 is 1e-6 of the natural size or more; float64 is held to 1e-12. */
  double f32 = golden_number(c, key, 1e-6);
  return way->dtype == ATT_F64 ? f32 * 1e-6 : f32;
}

/* Only an explicit offset is handed over: the others are the library's to find. */
static void set_alignment(golden_case *c, att_sdpa_args *args) {
  const char *align = golden_text(c, "align", "none");
  if (strcmp(align, "bottom_right") == 0) args->mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  if (strcmp(align, "explicit") != 0) return;
  args->mask.align = ATT_ALIGN_OFFSETS;
  args->mask.offsets = golden_integers(c, "q_offset");
}

static void set_rules(golden_case *c, att_sdpa_args *args) {
  int64_t *prefix = golden_integers(c, "prefix_lens");
  if (prefix)
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_PREFIX, .lengths = prefix});
  else if (golden_number(c, "causal", 0) != 0)
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  int64_t left = (int64_t)golden_number(c, "window_left", -1);
  int64_t right = (int64_t)golden_number(c, "window_right", -1);
  if (left >= 0 || right >= 0)
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = left, .right = right});
  att_view ids = golden_view(c, "doc_ids_q");
  if (ids.data)
    golden_rule(c, args,
                (att_mask_rule){.kind = ATT_MASK_DOCUMENTS,
                                .query_side = ids,
                                .key_side = golden_view(c, "doc_ids_k")});
}

static void set_masks(golden_case *c, att_sdpa_args *args, const golden_way *way) {
  int64_t *kv_lens = golden_integers(c, "kv_lens");
  att_view mask = golden_view(c, "attn_mask");
  set_alignment(c, args);
  if (kv_lens) /* with `visible` too, since bottom-right counts from the last key */
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_KEYS, .lengths = kv_lens});
  if (mask.data && mask.dtype != ATT_BOOL) args->bias = mask;
  if (way->dense) {
    golden_rule(c, args,
                (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = golden_view(c, "visible")});
    return;
  }
  set_rules(c, args);
  if (mask.data && mask.dtype == ATT_BOOL)
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = mask});
}

static att_view output(golden_case *c, const char *name, att_dtype dtype) {
  att_view want = golden_view(c, name);
  return want.data ? golden_new(c, dtype, want.ndim, want.shape) : want;
}

static void compare(golden_case *c, const golden_way *way, const att_sdpa_args *args, att_view out,
                    att_view lse) {
  att_view want_out = golden_view(c, "out"), want_lse = golden_view(c, "lse");
  att_view keys_lse = golden_view(c, "lse_nosink"), want_weights = golden_view(c, "weights");
  if (want_out.data) golden_expect(c, "out", out, want_out, tolerance(c, way, "out"));
  if (want_lse.data) golden_expect(c, "lse", lse, want_lse, tolerance(c, way, "lse"));
  if (!keys_lse.data) keys_lse = want_lse;
  if (args->weights.data) {
    golden_expect(c, "weights", args->weights, want_weights, tolerance(c, way, "weights"));
    golden_expect_zeros(c, "weights", args->weights, want_weights);
  }
  if (keys_lse.data && want_out.ndim == 4) golden_expect_empty_rows(c, out, keys_lse);
}

static void dense_args(golden_case *c, const golden_way *way, att_sdpa_args *args) {
  att_dtype results = way->dtype == ATT_F64 ? ATT_F64 : ATT_F32;
  golden_attention_args(c, args);
  args->q = golden_as(c, golden_view(c, "q"), way->dtype);
  args->k = golden_as(c, golden_view(c, "k"), way->dtype);
  args->v = golden_as(c, golden_view(c, "v"), way->dtype);
  args->out = golden_new(
      c, way->dtype, 4,
      (int64_t[]){args->q.shape[0], args->q.shape[1], args->q.shape[2], args->v.shape[3]});
  args->lse = output(c, "lse", results);
  set_masks(c, args, way);
}

static void run_dense(golden_case *c, const golden_way *way) {
  if (!golden_begin(c->g, c->path, way->variant)) return;
  att_sdpa_args args;
  dense_args(c, way, &args);
  args.weights = output(c, "weights", way->dtype == ATT_F64 ? ATT_F64 : ATT_F32);
  if (golden_ok(c->g, att_sdpa_once(c->g->runtime, &args), golden_text(c, "features", "sdpa")))
    compare(c, way, &args, args.out, args.lse);
  golden_end(c->g);
}

/* [total,heads,dim] as [1,heads,total,dim]. */
static att_view packed(att_view view) {
  view = att_view_transpose(view, 0, 1);
  for (int d = 3; d > 0; d--) {
    view.shape[d] = view.shape[d - 1];
    view.stride[d] = view.stride[d - 1];
  }
  view.shape[0] = 1;
  view.ndim = 4;
  return view;
}

static void packed_args(golden_case *c, const golden_way *way, att_sdpa_args *args, att_view *out,
                        att_view *lse) {
  golden_attention_args(c, args);
  att_view cu_q = golden_view(c, "cu_seqlens_q"), cu_k = golden_view(c, "cu_seqlens_k");
  att_view q = golden_as(c, golden_view(c, "q"), way->dtype);
  att_view k = golden_as(c, golden_view(c, "k"), way->dtype);
  att_view v = golden_as(c, golden_view(c, "v"), way->dtype);
  *out = golden_new(c, way->dtype, 3, (int64_t[]){q.shape[0], q.shape[1], v.shape[2]});
  *lse = golden_new(c, way->dtype == ATT_F64 ? ATT_F64 : ATT_F32, 2,
                    (int64_t[]){q.shape[1], q.shape[0]});
  args->q = packed(q);
  args->k = packed(k);
  args->v = packed(v);
  args->out = packed(*out);
  args->lse = golden_reshaped(*lse, 3, (int64_t[]){1, q.shape[1], q.shape[0]});
  args->cu_q = cu_q.data;
  args->cu_k = cu_k.data;
  args->n_sequences = cu_q.shape[0] - 1;
  args->mask.align = ATT_ALIGN_BOTTOM_RIGHT;
  set_rules(c, args);
}

static void run_packed(golden_case *c, const golden_way *way) {
  if (!golden_begin(c->g, c->path, way->variant)) return;
  att_sdpa_args args;
  att_view out, lse;
  packed_args(c, way, &args, &out, &lse);
  if (golden_ok(c->g, att_sdpa_once(c->g->runtime, &args), "packed sequences"))
    compare(c, way, &args, out, lse);
  golden_end(c->g);
}

/* A gradient with the shape of its golden; absent where there is none. */
static att_view gradient(golden_case *c, const char *name) {
  att_view want = golden_view(c, name);
  return want.data ? golden_new(c, ATT_F32, want.ndim, want.shape) : want;
}

static void expect_gradient(golden_case *c, const golden_way *way, const char *name, att_view got) {
  if (got.data) golden_expect(c, name, got, golden_view(c, name), tolerance(c, way, name));
}

/* Forward, then backward, in f32. */
static void run_gradients(golden_case *c, bool is_packed) {
  const golden_way way = {"gradients", ATT_F32, false};
  if (!golden_begin(c->g, c->path, way.variant)) return;
  att_sdpa_args args;
  att_view out, lse;
  if (is_packed)
    packed_args(c, &way, &args, &out, &lse);
  else
    dense_args(c, &way, &args);
  att_view dq = gradient(c, "dq"), dk = gradient(c, "dk"), dv = gradient(c, "dv");
  att_view dout = golden_as(c, golden_view(c, "grad_out"), ATT_F32);
  att_sdpa_grads grads;
  att_sdpa_grads_init(&grads);
  grads.dout = is_packed ? packed(dout) : dout;
  grads.out = args.out;
  grads.lse = args.lse;
  grads.dq = is_packed ? packed(dq) : dq;
  grads.dk = is_packed ? packed(dk) : dk;
  grads.dv = is_packed ? packed(dv) : dv;
  grads.dbias = gradient(c, "d_bias");
  grads.dsinks = gradient(c, "d_sink");
  att_sdpa_backward_plan *plan = NULL;
  att_status status = att_sdpa_once(c->g->runtime, &args);
  if (status == ATT_OK) status = att_sdpa_backward_plan_create(&plan, c->g->runtime, &args, &grads);
  if (status == ATT_OK) status = att_sdpa_backward(plan, &args, &grads);
  att_sdpa_backward_plan_free(plan);
  if (golden_ok(c->g, status, "gradients")) {
    expect_gradient(c, &way, "dq", dq);
    expect_gradient(c, &way, "dk", dk);
    expect_gradient(c, &way, "dv", dv);
    expect_gradient(c, &way, "d_bias", grads.dbias);
    expect_gradient(c, &way, "d_sink", grads.dsinks);
  }
  golden_end(c->g);
}

static void run_ways(golden_case *c, void (*run)(golden_case *, const golden_way *)) {
  run(c, &(golden_way){"", ATT_F32, false});
  run(c, &(golden_way){"f64", ATT_F64, false});
  if (exact_in(c, "F16")) run(c, &(golden_way){"f16", ATT_F16, false});
  if (exact_in(c, "BF16")) run(c, &(golden_way){"bf16", ATT_BF16, false});
  if (golden_view(c, "visible").data) run(c, &(golden_way){"visible", ATT_F32, true});
  if (golden_number(c, "has_grads", 0) != 0) run_gradients(c, run == run_packed);
}

void golden_sdpa(golden_case *c) { run_ways(c, run_dense); }
void golden_varlen(golden_case *c) { run_ways(c, run_packed); }
