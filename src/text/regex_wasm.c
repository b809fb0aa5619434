/* Regular expressions in WebAssembly: none yet, so tokenizers that need one are
 * refused when they are opened. Takes the place of regex.c. */
#include "text/regex.h"

att_status att_regex_compile(att_regex **out, const att_runtime *runtime, const char *pattern,
                             size_t n) {
  (void)out, (void)runtime, (void)pattern, (void)n;
  return att_fail(ATT_UNSUPPORTED,
                  "the tokenizer splits by a regular expression, which this build cannot");
}

void att_regex_free(att_regex *regex) { (void)regex; }

att_status att_matcher_create(att_matcher **out, const att_regex *regex) {
  (void)out;
  return att_regex_compile(NULL, (const att_runtime *)regex, NULL, 0);
}

void att_matcher_free(att_matcher *matcher) { (void)matcher; }

const att_regex *att_matcher_regex(const att_matcher *matcher) { return (const void *)matcher; }

att_status att_matcher_find(bool *found, size_t *begin, size_t *end, att_matcher *matcher,
                            const char *text, size_t n, size_t from) {
  (void)found, (void)begin, (void)end, (void)matcher, (void)text, (void)n, (void)from;
  return att_regex_compile(NULL, NULL, NULL, 0);
}
