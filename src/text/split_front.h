/* Rewriting pieces: spaces become a stand-in, and a piece that does not begin
 * with it gets one in front. */
#ifndef ATT_TEXT_SPLIT_FRONT_H
#define ATT_TEXT_SPLIT_FRONT_H

#include "text/job.h"

typedef enum att_front_where { ATT_FRONT_NEVER, ATT_FRONT_FIRST, ATT_FRONT_ALWAYS } att_front_where;

typedef struct att_front {
  const char *space; /* what a space becomes */
  int64_t space_bytes;
  const char *front;   /* what is put in front, of which pieces: the one where the */
  int64_t front_bytes; /* input begins, or all */
  att_front_where where;
} att_front;

att_status att_split_front(att_job *job, const att_front *front);

#endif
