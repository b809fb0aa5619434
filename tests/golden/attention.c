#include "attention.h"

#include <math.h>
#include <string.h>

#include "base/runtime.h"
#include "tensor/product.h"

void golden_rule(golden_case *c, att_sdpa_args *args, att_mask_rule rule) {
  golden_ok(c->g, att_mask_add(&args->mask, rule), "att_mask_add");
}

void golden_attention_args(golden_case *c, att_sdpa_args *args) {
  att_sdpa_args_init(args);
  if (c->g->options.block) args->block = c->g->options.block;
  if (c->g->options.span) args->span = c->g->options.span;
  if (golden_number(c, "scale_is_default", 0) == 0)
    args->scale = golden_number(c, "scale", ATT_SCALE_DEFAULT);
  double softcap = golden_number(c, "softcap", 0);
  if (softcap > 0) args->softcap = softcap;
  args->alibi_slopes = golden_view(c, "alibi_slopes");
  args->sinks = golden_view(c, "sink");
}

void golden_expect_empty_rows(golden_case *c, att_view out, att_view lse) {
  int64_t rows = att_view_count(&lse);
  if (rows == 0) return;
  int64_t width = att_view_count(&out) / rows;
  double *o = golden_doubles(c, &out), *l = golden_doubles(c, &lse);
  for (int64_t i = 0; i < rows * width; i++) {
    if (l[i / width] != -INFINITY || o[i] == 0) continue;
    golden_fail(c->g, "out, worst element %lld, got %.9g, want exactly 0: its row sees no key",
                (long long)i, o[i]);
    return;
  }
}

double golden_largest(golden_case *c, att_view view) {
  int64_t count = att_view_count(&view);
  double *values = golden_doubles(c, &view), most = 1;
  for (int64_t i = 0; i < count; i++)
    if (fabs(values[i]) > most && isfinite(values[i])) most = fabs(values[i]);
  return most;
}

att_view golden_linear(golden_case *c, att_view x, att_view weight, att_view bias) {
  att_view y = golden_new(c, ATT_F32, 2, (int64_t[]){x.shape[0], weight.shape[0]});
  att_packed packed;
  if (!golden_ok(c->g, att_packed_create(&packed, c->g->runtime, &weight), "packing a matrix"))
    return y;
  att_product(c->g->runtime, &(att_product_args){.x = x.data,
                                                 .x_stride = x.stride[0],
                                                 .m = x.shape[0],
                                                 .w = &packed,
                                                 .bias = bias.data,
                                                 .y = y.data,
                                                 .y_stride = y.stride[0]});
  att_packed_release(&packed, c->g->runtime);
  return y;
}

att_view golden_heads(att_view rows, int64_t batch, int64_t n_heads) {
  int64_t dim = rows.shape[1] / n_heads, n = rows.shape[0] / batch;
  return (att_view){rows.data,
                    rows.dtype,
                    4,
                    {batch, n_heads, n, dim},
                    {n * rows.stride[0], dim, rows.stride[0], 1}};
}
