/* nn.MultiheadAttention: projections, heads, masks and output of a PyTorch
 * module, forward and back, with the weights of each head. */
#include "module.h"
#include "tape.h"

/* Mean over heads, [N,H,L,S] to [N,L,S]. */
static att_view average(golden_case *c, att_view weights) {
  int64_t *shape = weights.shape, inner = shape[2] * shape[3];
  double *w = golden_doubles(c, &weights);
  att_view mean = golden_new(c, ATT_F64, 3, (int64_t[]){shape[0], shape[2], shape[3]});
  for (int64_t i = 0; i < shape[0] * inner; i++) {
    double sum = 0;
    for (int64_t h = 0; h < shape[1]; h++) sum += w[(i / inner * shape[1] + h) * inner + i % inner];
    ((double *)mean.data)[i] = sum / (double)shape[1];
  }
  return mean;
}

static void compare(const golden_module *m, att_view out, att_view weights) {
  golden_case *c = m->c;
  att_view want = golden_view(c, "out"), want_weights = golden_view(c, "weights");
  att_view want_average = golden_view(c, "weights_avg");
  double allowed = golden_number(c, "tol_f32_weights", 1e-6);
  if (want.data && golden_number(c, "batch_first", 1) == 0) want = att_view_transpose(want, 0, 1);
  out = golden_reshaped(out, 3, (int64_t[]){m->batch, m->queries, out.shape[1]});
  if (want.data) golden_expect(c, "out", out, want, golden_number(c, "tol_f32_out", 1e-6));
  if (want_weights.data) {
    golden_expect(c, "weights", weights, want_weights, allowed);
    golden_expect_zeros(c, "weights", weights, want_weights);
  }
  if (want_average.data)
    golden_expect(c, "weights_avg", average(c, weights), want_average, allowed);
}

/* An input of its own, or the one of self-attention. */
static att_view input(golden_case *c, const char *name, int64_t *batch, int64_t *n) {
  att_view rows = golden_input_rows(c, name, batch, n);
  return rows.data ? rows : golden_input_rows(c, "x", batch, n);
}

/* The gradient of self-attention's one input is the sum of three. */
static void compare_gradients(const golden_module *m, att_view out, const att_view in[3]) {
  static const char *const names[] = {"dq", "dk", "dv"};
  golden_back(m->c, out, m->batch, m->queries);
  golden_expect_input(m->c, "dx", in, 3, m->batch, m->queries);
  for (int i = 0; i < 3; i++)
    golden_expect_input(m->c, names[i], &in[i], 1, m->batch, i ? m->keys : m->queries);
}

static void run(golden_case *c, bool back) {
  golden_module m = {.c = c, .prefix = "", .mask = "attn_mask", .padding = "key_padding_mask"};
  int64_t again;
  att_view out, weights,
      in[3] = {input(c, "q", &m.batch, &m.queries), input(c, "k", &m.batch, &m.keys),
               input(c, "v", &m.batch, &again)};
  m.heads = (int64_t)golden_number(c, "num_heads", 1);
  if (!in[0].data || !in[1].data || !in[2].data)
    golden_fail(c->g, "no input x, or q, k and v");
  else if (!golden_module_run(&out, &weights, &m, in[0], in[1], in[2]))
    return;
  else if (back)
    compare_gradients(&m, out, in);
  else
    compare(&m, out, weights);
}

void golden_mha(golden_case *c) {
  for (int back = 0; back < 2; back++) {
    if (!golden_begin(c->g, c->path, back ? "gradients" : "")) continue;
    c->tape = NULL;
    run(c, back);
    golden_end(c->g);
  }
}
