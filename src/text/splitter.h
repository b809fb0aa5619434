/* Cutting a piece at delimiters. The caller walks over the piece and reports
 * its stretches in order, each a delimiter or not; the splitter makes pieces of
 * them in one of five ways. For "the-final--countdown" and the delimiter "-":
 *
 *   removed     the | final | countdown
 *   isolated    the | - | final | - | - | countdown
 *   previous    the- | final- | - | countdown
 *   next        the | -final | - | -countdown
 *   contiguous  the | - | final | -- | countdown                            */
#ifndef ATT_TEXT_SPLITTER_H
#define ATT_TEXT_SPLITTER_H

#include "text/job.h"

typedef enum att_behavior {
  ATT_SPLIT_REMOVED,
  ATT_SPLIT_ISOLATED,
  ATT_SPLIT_PREVIOUS,
  ATT_SPLIT_NEXT,
  ATT_SPLIT_CONTIGUOUS
} att_behavior;

typedef struct att_splitter {
  att_job *job;
  att_behavior behavior;
  att_piece open;     /* not cut yet: something may join it */
  bool open_is_match; /* what its last stretch was */
} att_splitter;

static inline att_splitter att_splitter_of(att_job *job, att_behavior behavior) {
  return (att_splitter){.job = job, .behavior = behavior};
}
att_status att_splitter_add(att_splitter *s, int64_t begin, int64_t end, bool is_match);
att_status att_splitter_end(att_splitter *s);

/* Cuts all pieces of the job at the characters for which `is_delimiter` holds. */
typedef bool att_is_delimiter(uint32_t code, const void *payload);
att_status att_split_at(att_job *job, att_behavior behavior, att_is_delimiter *is_delimiter,
                        const void *payload);

#endif
