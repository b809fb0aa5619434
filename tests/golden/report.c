/* Counts and lines: failures as they happen, the skipped by reason at the end. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

struct golden_skips {
  golden_skips *next;
  int64_t count;
  char reason[200];
};

bool golden_begin(golden *g, const char *path, const char *variant) {
  snprintf(g->label, sizeof g->label, *variant ? "%s [%s]" : "%s%s", path, variant);
  g->run_failed = g->run_skipped = false;
  return !g->options.only || strstr(g->label, g->options.only);
}

void golden_end(golden *g) {
  if (g->run_failed)
    g->failed++;
  else if (g->run_skipped)
    g->skipped++;
  else
    g->passed++;
}

void golden_fail(golden *g, const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("FAIL %s: ", g->label);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  g->run_failed = true;
}

/* Reasons stay in the order in which they were first met. */
static void count_skip(golden *g, const char *reason) {
  golden_skips **place = &g->skips;
  while (*place && strcmp((*place)->reason, reason) != 0) place = &(*place)->next;
  if (!*place) {
    *place = calloc(1, sizeof **place);
    if (!*place) abort();
    snprintf((*place)->reason, sizeof(*place)->reason, "%s", reason);
  }
  (*place)->count++;
}

void golden_skip(golden *g, const char *format, ...) {
  char reason[200];
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
  if (!g->run_skipped) count_skip(g, reason);
  g->run_skipped = true;
}

void golden_skip_run(golden *g, const char *path, const char *variant, const char *reason) {
  if (!golden_begin(g, path, variant)) return;
  golden_skip(g, "%s", reason);
  golden_end(g);
}

bool golden_ok(golden *g, att_status status, const char *what) {
  if (status == ATT_OK) return true;
  if (status == ATT_UNSUPPORTED)
    golden_skip(g, "unsupported: %s", what);
  else
    golden_fail(g, "%s: %s: %s", what, att_status_name(status), att_message());
  return false;
}

void golden_report(const golden *g) {
  for (const golden_skips *skip = g->skips; skip && !g->options.quiet; skip = skip->next)
    printf("skipped %lld: %s\n", (long long)skip->count, skip->reason);
  printf("%lld passed, %lld failed, %lld skipped\n", (long long)g->passed, (long long)g->failed,
         (long long)g->skipped);
}

void golden_skips_free(golden *g) {
  while (g->skips) {
    golden_skips *next = g->skips->next;
    free(g->skips);
    g->skips = next;
  }
}
