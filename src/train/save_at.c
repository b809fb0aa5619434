/* Checkpoints at steps that are told one by one or spread evenly over the logarithm:
 * most of what a model learns, and every head that forms, it does in the first part of
 * a run. */
#include "train/save_at.h"

#include <string.h>

#include "base/status.h"
#include "kernels/function64.h"

enum { MOST = 1000 };
static const char log_prefix[] = "log:";

/* A number at *at, which moves behind it; -1 if there is none. */
static int64_t read_number(const char **at) {
  int64_t n = 0;
  if (**at < '0' || **at > '9') return -1;
  for (; **at >= '0' && **at <= '9'; ++*at)
    if (n <= INT32_MAX) n = 10 * n + (**at - '0');
  return n;
}

/* Step i = 0 … n-1 after `before`: 0, then 1 … steps with equal ratios, as far as whole
 * numbers allow. */
static int64_t log_step(int64_t i, int64_t n, int64_t steps, int64_t before) {
  if (i == 0) return 0;
  if (i == n - 1) return steps;
  const double share = (double)(i - 1) / (double)(n - 2);
  const int64_t near = (int64_t)(att_exp64(share * att_log64((double)steps)) + 0.5);
  return near > before ? near : before + 1;
}

static bool is_log(const char *text) { return !strncmp(text, log_prefix, strlen(log_prefix)); }

static att_status check_log(const char *text, int64_t steps) {
  const char *at = text + strlen(log_prefix);
  const int64_t n = read_number(&at), most = steps < MOST ? steps + 1 : MOST;
  if (n >= 2 && n <= most && !*at) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT, "\"save_at\" is \"%s\"; log:N has an N from 2 to %lld", text,
                  (long long)most);
}

att_status att_save_at_check(const char *text, int64_t steps) {
  if (is_log(text)) return check_log(text, steps);
  int64_t before = -1;
  for (const char *at = text; *at;) {
    const int64_t step = read_number(&at);
    if (step <= before || step > steps || (*at && (*at != ',' || !at[1])))
      return att_fail(ATT_BAD_ARGUMENT,
                      "\"save_at\" is \"%s\", neither log:N nor ascending steps from 0 to %lld "
                      "with commas between them",
                      text, (long long)steps);
    before = step;
    at += *at == ',';
  }
  return ATT_OK;
}

bool att_save_at_has(const char *text, int64_t steps, int64_t step) {
  if (!is_log(text)) {
    for (const char *at = text; *at; at += *at == ',')
      if (read_number(&at) == step) return true;
    return false;
  }
  const char *at = text + strlen(log_prefix);
  const int64_t n = read_number(&at);
  for (int64_t i = 0, one = -1; i < n && one < step; i++)
    if ((one = log_step(i, n, steps, one)) == step) return true;
  return false;
}
