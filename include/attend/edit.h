/* attend/edit.h — what if: numbers inside a model changed while it runs.
 *
 * An edit is plain data: where (a site by name or pattern, heads, positions, keys) and
 * what (edits.inc). Attached to a session, a list of them acts on everything it reads
 * from then on, in the order of the list; captures show the edited numbers. Freed, the
 * session is as it was: reading the same tokens gives the same bits as ever.
 *
 *     att_edit edit = {.at = "blocks.4.attn.hook_z", .op = ATT_EDIT_ZERO, .heads = {7, 8}};
 *     att_edits_create(&edits, session, &edit, 1);
 *     att_session_eval(session, ids, n);
 *
 * The same in words, "zero blocks.4.attn.hook_z head=7", or in JSON,
 * [{"op": "zero", "at": "blocks.4.attn.hook_z", "head": 7}].
 */
#ifndef ATTEND_EDIT_H
#define ATTEND_EDIT_H

#include "attend/archive.h"
#include "attend/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_edit_op {
#define ATT_EDIT(name, value, text, needs, doc) ATT_EDIT_##name = value,
#include "attend/edits.inc"
#undef ATT_EDIT
  ATT_EDIT_COUNT
} att_edit_op;

#define ATT_EDIT_AT_BYTES 96

/* Called with the numbers x of one row (and head, else -1) at one site, which may be changed
 * in place; of scores and weights with each run of visible chosen keys, from `first` on. */
typedef void att_edit_fn(float *x, int64_t n, const char *name, int64_t head, int64_t position,
                         int64_t first, void *payload);

typedef struct att_edit {
  char at[ATT_EDIT_AT_BYTES]; /* a name or pattern; for more than one, several edits */
  att_edit_op op;
  att_range heads;     /* {0, 0} is all, here and below; of keys and values: of their own heads */
  att_range positions; /* rows: of scores and weights the queries; of several texts read
                          together they count on, as in att_session_hidden */
  att_range keys;      /* of scores and weights only; they count on likewise */
  float value;
  const att_capture *run;  /* where SOURCE ops find the site of the same name, or */
  const att_archive *file; /* in a file, or */
  att_view rows;           /* [N, …] for all sites alike; a vector is one row for all */
  att_edit_fn *change;     /* in place of op, if not NULL */
  void *payload;
} att_edit;

typedef struct att_edits att_edits;

/* Sites can be edited that vectors pass on their way, and attn_scores and pattern of each
 * attention; not hook_result, raw and scaled scores or logits, which nothing reads.
 * Sources are borrowed until the edits are freed. What the session has read from the first edited
 * position on is forgotten: read it again (and encode again what an edited encoder read). A source
 * that kept some positions is read at these, a file by its metadata "first_position"; where
 * `positions` are given it must have them all, else those it lacks are left alone. Rows of scores
 * and weights with other keys than the source's end att_session_eval with BAD_SHAPE. One list at a
 * time (WRONG_STATE). NOT_FOUND (with nearest names), BAD_ARGUMENT, BAD_SHAPE, CORRUPT,
 * UNSUPPORTED, OUT_OF_MEMORY. */
ATT_API att_status att_edits_create(att_edits **out, att_session *session, const att_edit *list,
                                    int64_t n);

/* Takes the edits away, and what the session read under them. Before or after it is freed. */
ATT_API void att_edits_free(att_edits *edits);

/* Reads edits from words (separated by ;) or, where it begins with [, JSON: at most `most`,
 * *n is how many. Sources are the caller's to add. BAD_ARGUMENT names the word. */
ATT_API att_status att_edits_read(att_edit *out, int64_t *n, int64_t most, att_runtime *runtime,
                                  const char *text);

/* "zero", and one line about it; NULL outside. True for what needs a source. */
ATT_API const char *att_edit_op_name(att_edit_op op);
ATT_API const char *att_edit_op_about(att_edit_op op);
ATT_API bool att_edit_needs_source(att_edit_op op);

#ifdef __cplusplus
}
#endif
#endif
