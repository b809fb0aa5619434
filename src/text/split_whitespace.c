/* Cuts pieces at white space, which is dropped. */
#include "text/splitter.h"
#include "text/steps.h"

static bool is_space(uint32_t code, const void *payload) {
  (void)payload;
  return att_char_is_space(code);
}

att_status att_split_whitespace(att_job *job, const void *settings) {
  (void)settings;
  return att_split_at(job, ATT_SPLIT_REMOVED, is_space, NULL);
}
