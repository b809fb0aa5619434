/* Rewriting pieces. What lies between pieces was dropped by an earlier step and
 * does not come back. */
#include "text/split_front.h"

#include <string.h>

static bool begins_with(const att_job *job, att_piece piece, const char *text, int64_t n) {
  return piece.end - piece.begin >= n &&
         memcmp(job->text.bytes + piece.begin, text, (size_t)n) == 0;
}

static bool wants_front(const att_job *job, const att_front *f, att_piece piece) {
  if (f->where == ATT_FRONT_NEVER || begins_with(job, piece, " ", 1) ||
      begins_with(job, piece, f->front, f->front_bytes))
    return false;
  return f->where == ATT_FRONT_ALWAYS ||
         att_text_origin(&job->text, piece.begin, piece.end).begin == 0;
}

static att_status rewrite_piece(att_rewrite *r, const att_job *job, const att_front *f,
                                att_piece piece) {
  while (r->at < piece.begin) att_rewrite_skip(r);
  r->before = (att_origin){r->here.begin, r->here.begin};
  if (wants_front(job, f, piece)) ATT_TRY(att_rewrite_put(r, f->front, f->front_bytes));
  while (r->at < piece.end) {
    if (r->code == ' ' && !r->bad) {
      ATT_TRY(att_rewrite_put(r, f->space, f->space_bytes));
      att_rewrite_skip(r);
    } else {
      ATT_TRY(att_rewrite_keep(r));
    }
  }
  return ATT_OK;
}

att_status att_split_front(att_job *job, const att_front *front) {
  const att_piece *pieces = job->pieces.items;
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  for (int64_t i = 0; i < job->pieces.n; i++) {
    int64_t begin = job->text.spare_bytes.n;
    ATT_TRY(rewrite_piece(&r, job, front, pieces[i]));
    ATT_TRY(att_job_cut(job, begin, job->text.spare_bytes.n));
  }
  att_rewrite_end(&r);
  return ATT_OK;
}
