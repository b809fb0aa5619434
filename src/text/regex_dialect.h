/* From Oniguruma's dialect of regular expressions to PCRE2's. */
#ifndef ATT_TEXT_REGEX_DIALECT_H
#define ATT_TEXT_REGEX_DIALECT_H

#include "base/runtime.h"

/* *out is zero-terminated and *bytes long with its zero; the caller releases
 * it. UNSUPPORTED for what has no equivalent, CORRUPT for a stray zero. */
att_status att_regex_translate(char **out, size_t *bytes, const att_runtime *runtime,
                               const char *pattern, size_t n);

#endif
