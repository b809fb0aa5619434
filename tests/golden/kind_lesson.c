/* lesson: the small worked examples.
 *
 * Nearly all are one attention call: softmax of given scores (head width 1, q
 * = 1, k = score), one dot product, a mix with given weights (k = log weight),
 * the river bank, the causal mask. The last two go from x through projections
 * and heads to the output. Held to 1e-6 of the natural size of each result: the
 * largest value for a mix, the sum of absolute products for a product. */
#include <math.h>
#include <string.h>

#include "attention.h"

#define RELATIVE 1e-6

/* The stored tensor `name`, whose shape may leave out the leading ones. */
static void expect(golden_case *c, const char *name, att_view got, double size) {
  att_view want = golden_view(c, name);
  if (!want.data || !got.data) return;
  if (att_view_count(&want) == att_view_count(&got) && want.ndim != got.ndim)
    got = golden_reshaped(got, want.ndim, want.shape); /* row-major, made here */
  golden_expect(c, name, got, want, RELATIVE * size);
  if (strcmp(name, "weights") == 0) golden_expect_zeros(c, name, got, want);
}

static void causal(golden_case *c, att_sdpa_args *args) {
  if (golden_number(c, "causal", 0) != 0)
    golden_rule(c, args, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
}

/* Visible pairs are those with weight; there are n(n+1)/2 of them. */
static void expect_pairs(golden_case *c, att_view weights) {
  att_view visible = golden_view(c, "visible"), pairs = golden_view(c, "allowed_pairs");
  if (!visible.data) return;
  int64_t count = att_view_count(&visible), seen = 0;
  double *allowed = golden_doubles(c, &visible), *weight = golden_doubles(c, &weights);
  for (int64_t i = 0; i < count; i++) {
    seen += weight[i] > 0;
    if ((weight[i] > 0) != (allowed[i] != 0))
      golden_fail(c->g, "pair %lld has weight %g, but may %sbe seen", (long long)i, weight[i],
                  allowed[i] != 0 ? "" : "not ");
  }
  if (pairs.data && seen != (int64_t)*golden_doubles(c, &pairs))
    golden_fail(c->g, "%lld visible pairs, want %g", (long long)seen, *golden_doubles(c, &pairs));
}

static att_view scores_of(golden_case *c, att_sdpa_args args, att_score_stage stage) {
  args.scores =
      golden_new(c, ATT_F32, 4,
                 (int64_t[]){args.q.shape[0], args.q.shape[1], args.q.shape[2], args.k.shape[2]});
  args.score_stage = stage;
  golden_ok(c->g, att_sdpa_once(c->g->runtime, &args), "scores");
  return args.scores;
}

static void one_call(golden_case *c) {
  att_sdpa_args args;
  golden_attention_args(c, &args);
  causal(c, &args);
  args.q = golden_view(c, "q");
  args.k = golden_view(c, "k");
  args.v = golden_view(c, "v");
  const int64_t *q = args.q.shape, keys = args.k.shape[2];
  if (!args.v.data) args.v = golden_as(c, args.k, ATT_F32); /* only a score is asked for */
  args.out = golden_new(c, ATT_F32, 4, (int64_t[]){q[0], q[1], q[2], args.v.shape[3]});
  args.lse = golden_new(c, ATT_F32, 3, q);
  args.weights = golden_new(c, ATT_F32, 4, (int64_t[]){q[0], q[1], q[2], keys});
  if (!golden_ok(c->g, att_sdpa_once(c->g->runtime, &args), "attention")) return;

  double value = golden_largest(c, args.v);
  double score = golden_largest(c, args.q) * golden_largest(c, args.k) * (double)q[3];
  expect(c, "out", args.out, value);
  expect(c, "mix", args.out, value);
  expect(c, "lse", args.lse, score);
  expect(c, "weights", args.weights, 1);
  att_view raw = scores_of(c, args, ATT_SCORES_RAW);
  att_view scaled = scores_of(c, args, ATT_SCORES_SCALED);
  expect(c, "dot", raw, score);
  expect(c, "dots", raw, score);
  expect(c, "scores", scaled, score);
  expect(c, "scaled", scaled, score);
  expect_pairs(c, args.weights);
}

static double product_size(golden_case *c, att_view x, const char *weight) {
  att_view w = golden_view(c, weight);
  double *a = golden_doubles(c, &x), *b = golden_doubles(c, &w), most = 0;
  for (int64_t m = 0; m < x.shape[0]; m++)
    for (int64_t n = 0; n < w.shape[0]; n++) {
      double sum = 0;
      for (int64_t k = 0; k < x.shape[1]; k++)
        sum += fabs(a[m * x.shape[1] + k] * b[n * x.shape[1] + k]);
      if (sum > most) most = sum;
    }
  return most;
}

static void multi_head(golden_case *c) {
  att_view x = golden_view(c, "x"), none = att_view_none();
  int64_t n_heads = (int64_t)golden_number(c, "heads", 1), rows = x.shape[0];
  att_view q = golden_linear(c, x, golden_view(c, "w_q"), none),
           k = golden_linear(c, x, golden_view(c, "w_k"), none),
           v = golden_linear(c, x, golden_view(c, "w_v"), none);
  att_view concat = golden_new(c, ATT_F32, 2, v.shape);
  att_sdpa_args args;
  golden_attention_args(c, &args);
  causal(c, &args);
  args.q = golden_heads(q, 1, n_heads);
  args.k = golden_heads(k, 1, n_heads);
  args.v = golden_heads(v, 1, n_heads);
  args.out = golden_heads(concat, 1, n_heads);
  args.weights = golden_new(c, ATT_F32, 4, (int64_t[]){1, n_heads, rows, rows});
  if (!golden_ok(c->g, att_sdpa_once(c->g->runtime, &args), "attention")) return;
  att_view out = golden_linear(c, concat, golden_view(c, "w_o"), none);

  /* A score of size s carries its relative error into the weights as s times it. */
  double score = product_size(c, x, "w_q") * product_size(c, x, "w_k");
  double weight = 1 + score * fabs(golden_number(c, "scale", 1)) * (double)args.q.shape[3];
  expect(c, "weights", args.weights, weight);
  expect(c, "concat", concat, weight * product_size(c, x, "w_v"));
  expect(c, "out", out, weight * product_size(c, concat, "w_o"));
}

void golden_lesson(golden_case *c) {
  if (!golden_begin(c->g, c->path, "")) return;
  if (golden_view(c, "q").data && golden_view(c, "k").data)
    one_call(c);
  else if (golden_view(c, "x").data)
    multi_head(c);
  else
    golden_skip(c->g, "lesson without q and k or x");
  golden_end(c->g);
}
