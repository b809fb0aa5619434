/* Regular expressions by PCRE2, the only file that knows it. Compiled to
 * machine code where that works; a limit on backtracking ends what would hang. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>
#include <string.h>

#include "base/alloc.h"
#include "base/line.h"
#include "text/regex_dialect.h"

enum { MATCH_LIMIT = 20000000, HEAP_LIMIT_KIB = 256 * 1024 };

struct att_regex {
  const att_runtime *runtime;
  pcre2_general_context *memory;
  pcre2_code *code;
};

struct att_matcher {
  const att_regex *regex;
  pcre2_match_data *data;
  pcre2_match_context *context;
};

/* PCRE2 does not say how much it frees, so each block begins with its size. */
typedef union block {
  size_t bytes;
  max_align_t align;
} block;

static void *take(size_t bytes, void *payload) {
  void *memory;
  if (bytes > SIZE_MAX / 2 || att_alloc(&memory, payload, (int64_t)(bytes + sizeof(block)), 1,
                                        "regular expression") != ATT_OK)
    return NULL;
  ((block *)memory)->bytes = bytes;
  return (block *)memory + 1;
}

static void give_back(void *memory, void *payload) {
  if (memory == NULL) return;
  block *b = (block *)memory - 1;
  att_release(payload, b, (int64_t)(b->bytes + sizeof(block)), 1);
}

static att_status out_of_memory(void) {
  return att_fail(ATT_OUT_OF_MEMORY, "no memory for a regular expression");
}

static att_status cannot_compile(int error, size_t at, const char *pattern, size_t n) {
  char quoted[160];
  PCRE2_UCHAR reason[128];
  if (error == PCRE2_ERROR_HEAP_FAILED || error == PCRE2_ERROR_NOMEMORY) return out_of_memory();
  pcre2_get_error_message(error, reason, sizeof reason);
  return att_fail(ATT_CORRUPT, "pattern %s: %s at byte %zu",
                  att_quote(quoted, sizeof quoted, pattern, n), (char *)reason, at);
}

static att_status compile(att_regex *regex, const char *pattern, size_t n) {
  regex->memory = pcre2_general_context_create(take, give_back, (void *)regex->runtime);
  if (regex->memory == NULL) return out_of_memory();
  pcre2_compile_context *context = pcre2_compile_context_create(regex->memory);
  if (context == NULL) return out_of_memory();
  int error;
  PCRE2_SIZE at;
  regex->code = pcre2_compile((PCRE2_SPTR)pattern, n,
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                              &error, &at, context);
  pcre2_compile_context_free(context);
  if (regex->code == NULL) return cannot_compile(error, at, pattern, n);
  (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE); /* slower without, still right */
  return ATT_OK;
}

att_status att_regex_compile(att_regex **out, const att_runtime *runtime, const char *pattern,
                             size_t n) {
  void *memory;
  char *translated;
  size_t translated_bytes;
  ATT_TRY(att_regex_translate(&translated, &translated_bytes, runtime, pattern, n));
  att_status status = att_alloc(&memory, runtime, 1, sizeof(att_regex), "regular expression");
  if (status == ATT_OK) {
    att_regex *regex = memory;
    regex->runtime = runtime;
    status = compile(regex, translated, strlen(translated));
    if (status == ATT_OK)
      *out = regex;
    else
      att_regex_free(regex);
  }
  att_release(runtime, translated, (int64_t)translated_bytes, 1);
  return status;
}

void att_regex_free(att_regex *regex) {
  if (regex == NULL) return;
  pcre2_code_free(regex->code);
  pcre2_general_context_free(regex->memory);
  att_release(regex->runtime, regex, 1, sizeof *regex);
}

att_status att_matcher_create(att_matcher **out, const att_regex *regex) {
  void *memory;
  ATT_TRY(att_alloc(&memory, regex->runtime, 1, sizeof(att_matcher), "matcher"));
  att_matcher *matcher = memory;
  matcher->regex = regex;
  matcher->data = pcre2_match_data_create_from_pattern(regex->code, regex->memory);
  matcher->context = pcre2_match_context_create(regex->memory);
  if (matcher->data == NULL || matcher->context == NULL) {
    att_matcher_free(matcher);
    return out_of_memory();
  }
  pcre2_set_match_limit(matcher->context, MATCH_LIMIT);
  pcre2_set_heap_limit(matcher->context, HEAP_LIMIT_KIB);
  *out = matcher;
  return ATT_OK;
}

void att_matcher_free(att_matcher *matcher) {
  if (matcher == NULL) return;
  pcre2_match_data_free(matcher->data);
  pcre2_match_context_free(matcher->context);
  att_release(matcher->regex->runtime, matcher, 1, sizeof *matcher);
}

const att_regex *att_matcher_regex(const att_matcher *matcher) { return matcher->regex; }

att_status att_matcher_find(bool *found, size_t *begin, size_t *end, att_matcher *matcher,
                            const char *text, size_t n, size_t from) {
  PCRE2_SPTR subject = (PCRE2_SPTR)text;
  const pcre2_code *code = matcher->regex->code;
  int count =
      pcre2_match(code, subject, n, from, PCRE2_NO_UTF_CHECK, matcher->data, matcher->context);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter's stack is on the heap */
    count = pcre2_match(code, subject, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, matcher->data,
                        matcher->context);
  *found = count >= 0;
  if (count == PCRE2_ERROR_NOMATCH) return ATT_OK;
  if (count == PCRE2_ERROR_NOMEMORY) return out_of_memory();
  if (count < 0)
    return att_fail(ATT_UNSUPPORTED,
                    "a pattern of the tokenizer gives up at byte %zu: it backtracks too much",
                    from);
  const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(matcher->data);
  *begin = ends[0] > ends[1] ? ends[1] : ends[0]; /* \K can turn them round */
  *end = ends[1];
  return ATT_OK;
}
