/* Puts a string in front of the text, unless the text is empty: the "dummy
 * prefix" with which SentencePiece makes the first word look like the others.
 * It stands for the text's first character. */
#include <string.h>

#include "text/steps.h"

att_status att_normalize_prepend(att_job *job, const void *settings) {
  const char *prefix = settings;
  if (job->text.n == 0) return ATT_OK;
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  ATT_TRY(att_rewrite_put(&r, prefix, (int64_t)strlen(prefix)));
  while (att_rewrite_more(&r)) ATT_TRY(att_rewrite_keep(&r));
  att_rewrite_end(&r);
  return ATT_OK;
}
