/* The result of att_encode. */
#ifndef ATT_TEXT_ENCODING_H
#define ATT_TEXT_ENCODING_H

#include "text/job.h"

/* Text 0 has tokens[0 … ends[0]-1], text 1 those up to ends[1]-1, spans being
 * in the input. `around` says what to add; NULL: nothing, text 0 then text 1. */
att_status att_encoding_create(att_encoding **out, const att_runtime *runtime,
                               const att_token *tokens, const int64_t ends[2],
                               const att_template *around);

#endif
