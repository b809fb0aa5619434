/* heads_ablate.c — see the header. */
#include "heads_ablate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/edit.h"
#include "distribution.h"
#include "memory.h"

static att_status read(distribution *d, att_session *session, const subject *s) {
  att_status status = att_session_truncate(session, 0);
  if (status == ATT_OK) status = att_session_eval(session, s->ids, s->n);
  if (status != ATT_OK) return status;
  return distribution_of(d, s->runtime, att_session_logits(session).data,
                         att_model_describe(s->model)->vocab);
}

static att_status without(double *kl, att_session *session, const subject *s,
                          const distribution *whole, int64_t layer, int64_t head) {
  att_edit edit = {.op = ATT_EDIT_ZERO, .heads = {head, head + 1}};
  snprintf(edit.at, sizeof edit.at, "blocks.%" PRId64 ".attn.hook_z", layer);
  att_edits *edits;
  distribution rest = {0};
  att_status status = att_edits_create(&edits, session, &edit, 1);
  if (status != ATT_OK) return status;
  status = read(&rest, session, s);
  if (status == ATT_OK) *kl = distribution_kl(whole, &rest);
  distribution_free(&rest);
  att_edits_free(edits);
  return status;
}

att_status heads_ablate(double *kl, const subject *s) {
  const att_model_info *info = att_model_describe(s->model);
  att_session_options room;
  att_session_options_init(&room);
  room.context = s->n;
  att_session *session = NULL;
  distribution whole = {0};
  float *logits =
      memory_get((size_t)info->vocab, sizeof *logits); /* the session's are overwritten */
  att_status status = att_session_create(&session, s->model, &room);
  if (status == ATT_OK) status = read(&whole, session, s);
  if (status == ATT_OK) {
    memcpy(logits, whole.logits, (size_t)info->vocab * sizeof *logits);
    whole.logits = logits;
  }
  for (int64_t i = 0; i < info->layers * info->heads && status == ATT_OK; i++)
    status = without(&kl[i], session, s, &whole, i / info->heads, i % info->heads);
  distribution_free(&whole);
  free(logits);
  att_session_free(session);
  return status;
}
