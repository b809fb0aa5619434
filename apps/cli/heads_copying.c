/* heads_copying.c — see the header and attend/copying.h. */
#include "heads_copying.h"

#include "attend/copying.h"

att_status heads_copying(double *score, double *share, const subject *what, int64_t top) {
  const att_model_info *info = att_model_describe(what->model);
  att_copying_options options;
  att_copying_options_init(&options);
  options.top = top;
  att_copying *copying;
  att_status status = att_copying_create(&copying, what->model, &options);
  if (status != ATT_OK) return status;
  for (int64_t i = 0; i < info->layers * info->heads && status == ATT_OK; i++) {
    const int64_t layer = i / info->heads, head = i % info->heads;
    att_copying_value v;
    att_copying_tokens_value t;
    status = att_copying_score(&v, copying, layer, head);
    if (status == ATT_OK) status = att_copying_tokens(&t, copying, layer, head, what->ids, what->n);
    if (status == ATT_OK) score[i] = v.score, share[i] = t.share;
  }
  att_copying_free(copying);
  return status;
}
