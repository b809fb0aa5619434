/* attend/capture.h — keep what flows through a model, by the field's names.
 *
 * A capture is told at creation which sites to keep ("blocks.1.attn.hook_q",
 * patterns with * and ?, several separated by commas), belongs to one session
 * and fills while the session evaluates, or encodes one text or several. Capturing
 * never changes a bit of the results; without one nothing is computed or copied. sites.inc lists
 * all sites with their shapes, site_aliases.inc further names that are understood.
 */
#ifndef ATTEND_CAPTURE_H
#define ATTEND_CAPTURE_H

#include "attend/session.h"
#include "attend/sites.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_capture att_capture;

/* first … end-1; {0, 0} is all. */
typedef struct att_range {
  int64_t first, end;
} att_range;

/* What to keep of the selected sites, and how much there may be. */
typedef struct att_capture_options {
  size_t struct_size;    /* set by att_capture_options_init */
  int64_t max_positions; /* to have room for; 0: all that the session can read, which of an
                            encoder is encoder_tokens, of all texts together */
  int64_t budget_bytes;  /* most that it may hold; 0: no limit */
  att_range layers;
  att_range heads;     /* of queries; of keys and values those that these heads read */
  att_range positions; /* rows that are kept; pairs keep all keys of these queries */
} att_capture_options;

ATT_API void att_capture_options_init(att_capture_options *options);

/* Attaches a capture to a session that has read nothing yet. `select` is a
 * list of names or patterns. `max_positions` is how many positions there will
 * be room for (0: all that the session can read); reading more is CONTEXT_FULL then.
 * The capture is freed with att_capture_free, before or after the session.
 * NOT_FOUND (a pattern that matches nothing; the message has the nearest
 * names), OUT_OF_MEMORY, TOO_LARGE (more than `budget_bytes`, 0 = no limit;
 * the message says how much), WRONG_STATE. */
ATT_API att_status att_capture_create(att_capture **out, att_session *session, const char *select,
                                      int64_t max_positions, int64_t budget_bytes);
ATT_API void att_capture_free(att_capture *capture);

/* The same of parts: tensors then begin with the first head and position kept. NULL
 * options: everything. BAD_ARGUMENT also for a range that the model does not have. */
ATT_API att_status att_capture_create_part(att_capture **out, att_session *session,
                                           const char *select, const att_capture_options *options);

/* Bytes that such a capture would hold, the workspace for weights and scores included, but
 * for each tensor's name and sizes. Changes nothing; errors as above. */
ATT_API att_status att_capture_measure(int64_t *out, const att_session *session, const char *select,
                                       const att_capture_options *options);

/* Number of captured tensors and the name of each ("blocks.0.attn.hook_q"). */
ATT_API int64_t att_capture_count(const att_capture *capture);
ATT_API const char *att_capture_name(const att_capture *capture, int64_t index);

/* The axes of a captured tensor as sites.inc spells them: "T H D", "H T S"; NULL
 * outside. Borrowed from the library. */
ATT_API const char *att_capture_axes(const att_capture *capture, int64_t index);

/* A captured tensor by any of its names, f32, T = positions read so far, without batch axis; see
 * sites.inc for its shape. In scores a key that the query does not see is -inf,
 * in weights 0. Borrowed until the capture is freed; the content of rows read
 * later appears in later views. NOT_FOUND with nearest names. */
ATT_API att_status att_capture_get(att_view *out, const att_capture *capture, const char *name);

/* The same of one of several texts that att_session_encode read together. Their rows lie
 * one after the other in what att_capture_get gives, and no text sees a key of another, so
 * weights [H,T,T] of all are a block for each text and 0 elsewhere (scores: -inf). This is
 * that block [H,N,N], the rows [N,...], of text `text`: the bits that it has when it is read
 * alone. 0 is all there is where one text was read, and in a decoder. Borrowed as above, until
 * the next texts. NOT_FOUND, BAD_ARGUMENT (no such text). */
ATT_API att_status att_capture_get_text(att_view *out, const att_capture *capture, const char *name,
                                        int64_t text);

/* Bytes held, as att_capture_measure announces them. */
ATT_API int64_t att_capture_bytes(const att_capture *capture);

#ifdef __cplusplus
}
#endif
#endif
