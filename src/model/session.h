/* Inside of an att_session, and how something watches one. */
#ifndef ATT_MODEL_SESSION_H
#define ATT_MODEL_SESSION_H

#include "attend/session.h"
#include "model/encoder.h"

/* Somebody who watches a session: a tap on its layers, and word of every
 * change of its length. Owned by whoever attached it. */
typedef struct att_observer {
  att_tap tap;
  int64_t limit;      /* positions that it has room for */
  int64_t text_limit; /* and tokens of an encoded text */
  int64_t bytes;      /* that it holds, for att_session_bytes */
  /* The session holds `length` positions now; those from there on are gone. The
   * text that was encoded has `text` tokens. */
  void (*moved)(void *payload, int64_t length, int64_t text);
  /* The session is being freed; forget it. */
  void (*closed)(void *payload);
  /* Of one that changes what it sees, and so stands before those that only look: a row of
   * scores or weights (or a sink's share) of the running pass as it is now, with its number
   * of keys; NULL if it is attention's own. Else NULL. */
  const float *(*edited)(void *payload, int64_t *keys, att_site site, int64_t layer, int64_t head,
                         int64_t row);
  struct att_observer *next;
} att_observer;

struct att_session {
  const att_model *model;
  att_runtime *runtime;
  int64_t context, chunk;
  int64_t block, span;
  bool all_logits;

  /* Of a decoder: */
  att_cache *cache;
  att_sdpa_plan *plan;
  att_rope_table ropes[2];    /* of rotary models; the second of windowed layers */
  att_distance_rows distance; /* of relative positions */
  att_activations act;

  att_encoder encoder; /* room 0: the model has none */
  int64_t text_limit;  /* tokens of a text */
  bool in_encoder;     /* the layers that run now are the encoder's, not the decoder's */

  int32_t *tokens; /* [context] */
  int64_t length;  /* positions read */
  float *logits;   /* [logit_rows,V] */
  int64_t logit_rows;
  int64_t n_logits; /* rows that hold the last eval's */

  att_observer *observers;
};

void att_session_attach(att_session *session, att_observer *observer);
void att_session_detach(att_session *session, att_observer *observer);

/* Tells the observers how far the session is. */
void att_session_tell(const att_session *session);

/* What att_session_eval answers without reading anything. */
att_status att_session_check(const att_session *session, const int32_t *tokens, int64_t n);

/* The pass of `rows` tokens through `layer` at the session's position. */
att_attention_pass att_session_pass(const att_session *session, int64_t layer, int64_t rows);

#endif
