/* step.h — a run that can be walked through, and what was taken from it.
 *
 * One session reads the prompt anew after each edit; the first reading's logits stay
 * beside it, so every effect is between two runs of the engine. The newest edit comes
 * last; without any the bits are those of the start.
 */
#ifndef ATTEND_CLI_STEP_H
#define ATTEND_CLI_STEP_H

#include "edit_options.h"
#include "heat.h"
#include "subject.h"

typedef struct step {
  const subject *what;
  int64_t layers, heads, vocab;
  int64_t layer, head, query, key; /* where the cursor is; key <= query */
  heat_curve curve;
  bool helps; /* the page of keys is shown */
  bool ends, interrupted;
  char note[120]; /* what the last key did, or "" */
  att_edit edits[EDITS_MOST];
  edit_set given; /* those it began with; their source */
  int64_t n_edits;
  att_session *session;
  att_capture *capture;
  att_edits *attached;
  float *start; /* [n,V]: logits before any edit */
} step;

/* Reads the prompt. step_close follows in any case. */
att_status step_open(step *s, const subject *what);
void step_close(step *s);

/* Begins with edits in force; the start stays the run without any. Returns an exit code. */
int step_edit(step *s, const cli *c, const edit_options *o);

/* What a key does; *known tells if there is such a key. */
att_status step_take(step *s, int key, bool *known);

/* The cursor's row of weights [T], and a head's weight on the cursor's pair. */
const float *step_weights(const step *s);
float step_weight(const step *s, int64_t layer, int64_t head);

/* Logits of the cursor's row, now. True if all rows' are the bits of the start. */
const float *step_logits(const step *s);
bool step_is_at_start(const step *s);

/* Draws the view, at most `rows` lines of the term's width. */
att_status step_draw(const step *s, const term *t, int rows);

#endif
