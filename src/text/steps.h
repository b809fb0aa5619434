/* The steps, each in a file of its own: normalize_*.c, split_*.c. What a
 * step's `settings` are is said beside it. */
#ifndef ATT_TEXT_STEPS_H
#define ATT_TEXT_STEPS_H

#include "text/job.h"

/* Settings: const char *, put in front of a text that is not empty. */
att_status att_normalize_prepend(att_job *job, const void *settings);

/* Decomposes; makes letters small; leaves out some characters. No settings. */
att_status att_normalize_nfd(att_job *job, const void *settings);
att_status att_normalize_lowercase(att_job *job, const void *settings);
att_status att_normalize_drop(att_job *job, bool (*drops)(uint32_t code));

/* Cuts at white space and drops it. No settings. */
att_status att_split_whitespace(att_job *job, const void *settings);

/* Cuts into words and marks, drops white space. No settings. */
att_status att_split_words(att_job *job, const void *settings);

#endif
