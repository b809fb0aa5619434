/* peer_model.c — the same models in attend: peer_model - MODEL THREADS. */
#include <stdlib.h>

#include "attend/attend.h"
#include "model_worker.h"

static const att_model_info *info;
static att_session *session;

bool model_open(int argc, char **argv) {
  att_runtime *runtime;
  att_model *model;
  att_runtime_options how;
  att_open_options open;
  att_session_options room;
  if (argc < 4) return false;
  att_runtime_options_init(&how);
  how.threads = atoi(argv[3]);
  att_open_options_init(&open);
  open.without_tokenizer = true;
  att_session_options_init(&room);
  room.context = MODEL_CONTEXT;
  room.chunk = 512;
  room.cache_dtype = ATT_F16;
  if (att_runtime_create(&runtime, &how) != ATT_OK ||
      att_model_open(&model, runtime, argv[2], &open) != ATT_OK ||
      att_session_create(&session, model, &room) != ATT_OK)
    return false;
  info = att_model_describe(model);
  return true;
}

bool model_read(int32_t *tokens, int64_t n) {
  return att_session_eval(session, tokens, n) == ATT_OK;
}

bool model_forget(int64_t length) { return att_session_truncate(session, length) == ATT_OK; }

const float *model_logits(void) { return att_session_logits(session).data; }

int64_t model_vocabulary(void) { return info->vocab; }
