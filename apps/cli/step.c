/* step.c — moving the cursor, taking parts away and giving them back. */
#include "step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "screen.h"

static const int64_t BUDGET = (int64_t)1 << 32;

/* ---- runs ---- */

static att_view site(const step *s, int64_t layer) {
  char name[64];
  att_view view = att_view_none();
  snprintf(name, sizeof name, "blocks.%" PRId64 ".attn.hook_pattern", layer);
  return att_capture_get(&view, s->capture, name) == ATT_OK ? view : att_view_none();
}

static const float *all_logits(const step *s) {
  att_view view = att_view_none();
  return att_capture_get(&view, s->capture, "logits") == ATT_OK ? view.data : NULL;
}

static att_status read_again(step *s) {
  att_edits_free(s->attached);
  s->attached = NULL;
  att_status status = att_session_truncate(s->session, 0);
  if (status == ATT_OK && s->n_edits > 0)
    status = att_edits_create(&s->attached, s->session, s->edits, s->n_edits);
  return status == ATT_OK ? att_session_eval(s->session, s->what->ids, s->what->n) : status;
}

att_status step_open(step *s, const subject *what) {
  const att_model_info *info = att_model_describe(what->model);
  *s = (step){.what = what, .layers = info->layers, .heads = info->heads, .vocab = info->vocab};
  s->query = s->key = what->n - 1;
  att_session_options room;
  att_session_options_init(&room);
  room.context = what->n;
  att_status status = att_session_create(&s->session, what->model, &room);
  if (status == ATT_OK)
    status =
        att_capture_create(&s->capture, s->session, "blocks.*.attn.hook_pattern,logits", 0, BUDGET);
  if (status == ATT_OK) status = read_again(s);
  if (status != ATT_OK) return status;
  const size_t floats = (size_t)(what->n * info->vocab);
  s->start = memory_get(floats, sizeof *s->start);
  memcpy(s->start, all_logits(s), floats * sizeof *s->start);
  return ATT_OK;
}

int step_edit(step *s, const cli *c, const edit_options *o) {
  int code = edit_read(&s->given, s->edits, &s->n_edits, c, s->what->runtime, o);
  if (code != CLI_OK || s->n_edits == 0) return code;
  return read_again(s) == ATT_OK ? CLI_OK : cli_fail_status(c);
}

void step_close(step *s) {
  att_edits_free(s->attached);
  edit_detach(&s->given);
  att_capture_free(s->capture);
  att_session_free(s->session);
  free(s->start);
  *s = (step){0};
}

/* ---- looking ---- */

float step_weight(const step *s, int64_t layer, int64_t head) {
  const att_view view = site(s, layer);
  return ((const float *)view.data)[head * view.stride[0] + s->query * view.stride[1] + s->key];
}

const float *step_weights(const step *s) {
  const att_view view = site(s, s->layer);
  return (const float *)view.data + s->head * view.stride[0] + s->query * view.stride[1];
}

const float *step_logits(const step *s) { return all_logits(s) + s->query * s->vocab; }

bool step_is_at_start(const step *s) {
  return memcmp(s->start, all_logits(s), (size_t)(s->what->n * s->vocab) * sizeof(float)) == 0;
}

/* ---- edits ---- */

static att_edit edit_at(const step *s, att_edit_op op, const char *name, bool edge) {
  att_edit e = {.op = op, .heads = {s->head, s->head + 1}};
  snprintf(e.at, sizeof e.at, "blocks.%" PRId64 ".attn.%s", s->layer, name);
  if (!edge) return e;
  e.positions = (att_range){s->query, s->query + 1};
  e.keys = (att_range){s->key, s->key + 1};
  return e;
}

static bool is_same_range(att_range a, att_range b) { return a.first == b.first && a.end == b.end; }

static bool is_same(const att_edit *a, const att_edit *b) {
  return a->op == b->op && !strcmp(a->at, b->at) && is_same_range(a->heads, b->heads) &&
         is_same_range(a->positions, b->positions) && is_same_range(a->keys, b->keys);
}

/* Once it is there, the second time away again. */
static att_status toggle(step *s, const att_edit *edit, const char *what) {
  for (int64_t i = 0; i < s->n_edits; i++)
    if (is_same(&s->edits[i], edit)) {
      s->n_edits--;
      memmove(&s->edits[i], &s->edits[i + 1], (size_t)(s->n_edits - i) * sizeof *edit);
      snprintf(s->note, sizeof s->note, "%s: given back", what);
      return read_again(s);
    }
  if (s->n_edits == EDITS_MOST) {
    snprintf(s->note, sizeof s->note, "%d edits are the most", EDITS_MOST);
    return ATT_OK;
  }
  s->edits[s->n_edits++] = *edit;
  snprintf(s->note, sizeof s->note, "%s: taken away", what);
  return read_again(s);
}

static att_status ablate(step *s) {
  char what[60];
  const att_edit edit = edit_at(s, ATT_EDIT_ZERO, "hook_z", false);
  snprintf(what, sizeof what, "layer %" PRId64 ", head %" PRId64, s->layer, s->head);
  return toggle(s, &edit, what);
}

/* Knocks out the edge between the query and the key under the cursor. */
static att_status cut(step *s, bool after_softmax) {
  char what[80];
  const att_edit edit = after_softmax ? edit_at(s, ATT_EDIT_ZERO, "hook_pattern", true)
                                      : edit_at(s, ATT_EDIT_HIDE, "hook_attn_scores", true);
  snprintf(what, sizeof what, "edge %" PRId64 " to %" PRId64 ", %s softmax", s->query, s->key,
           after_softmax ? "after" : "before");
  return toggle(s, &edit, what);
}

static att_status give_back(step *s, int64_t keep) {
  if (s->n_edits == 0) {
    snprintf(s->note, sizeof s->note, "nothing is taken away");
    return ATT_OK;
  }
  s->n_edits = keep;
  att_status status = read_again(s);
  if (status == ATT_OK)
    snprintf(s->note, sizeof s->note, "%s",
             keep > 0              ? "the last edit is undone"
             : step_is_at_start(s) ? "no edits: the same bits as at the start"
                                   : "no edits, but OTHER BITS than at the start");
  return status;
}

/* ---- keys ---- */

static void move(int64_t *place, int64_t by, int64_t end) {
  if (*place + by >= 0 && *place + by < end) *place += by;
}

static void move_query(step *s, int64_t to) {
  bool at_itself = s->key == s->query;
  s->query = to;
  if (at_itself || s->key > to) s->key = to;
}

att_status step_take(step *s, int key, bool *known) {
  *known = true;
  s->note[0] = 0;
  switch (key) {
  case 'h':
  case SCREEN_LEFT: move_query(s, s->query > 0 ? s->query - 1 : 0); break;
  case 'l':
  case SCREEN_RIGHT: move_query(s, s->query + 1 < s->what->n ? s->query + 1 : s->query); break;
  case '0':
  case SCREEN_HOME: move_query(s, 0); break;
  case '$':
  case SCREEN_LAST: move_query(s, s->what->n - 1); break;
  case 'j':
  case SCREEN_DOWN: move(&s->layer, 1, s->layers); break;
  case 'k':
  case SCREEN_UP: move(&s->layer, -1, s->layers); break;
  case '[': move(&s->head, -1, s->heads); break;
  case ']': move(&s->head, 1, s->heads); break;
  case ',': move(&s->key, -1, s->query + 1); break;
  case '.': move(&s->key, 1, s->query + 1); break;
  case 's': s->curve = (heat_curve)((s->curve + 1) % 3); break;
  case 'x': return ablate(s);
  case 'e': return cut(s, false);
  case 'E': return cut(s, true);
  case 'u': return give_back(s, s->n_edits - 1);
  case 'r': return give_back(s, 0);
  case '?': s->helps = !s->helps; break;
  case 'q':
  case SCREEN_ESCAPE:
    s->ends = !s->helps;
    s->helps = false;
    break;
  default: *known = false;
  }
  return ATT_OK;
}
