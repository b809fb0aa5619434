/* Selecting sites by names and patterns. */
#include "inspect/selection.h"

#include "base/match.h"
#include "base/status.h"

bool att_selection_has(const att_config *config, const char *select, const att_site_place *place) {
  const char *pattern;
  size_t bytes;
  while (att_next_pattern(&select, &pattern, &bytes))
    if (att_site_answers(config, place, pattern, bytes)) return true;
  return false;
}

typedef struct looking {
  const att_config *config;
  att_nearest nearest;
  bool found;
} looking;

static bool look(const char *name, const att_site_place *place, void *context) {
  looking *l = context;
  l->found = att_site_answers(l->config, place, l->nearest.text, l->nearest.bytes);
  att_nearest_offer(&l->nearest, name);
  return !l->found;
}

static att_status unknown(const att_nearest *nearest) {
  char near[200];
  att_nearest_list(near, sizeof near, nearest);
  return att_fail(ATT_NOT_FOUND, "no site is called %.*s; nearest: %s", (int)nearest->bytes,
                  nearest->text, near);
}

att_status att_selection_check(const att_config *config, const char *select) {
  const char *pattern;
  size_t bytes;
  bool any = false;
  while (att_next_pattern(&select, &pattern, &bytes)) {
    looking l = {.config = config, .nearest = {.text = pattern, .bytes = bytes, .patterns = true}};
    att_site_each(config, look, &l);
    if (!l.found) return unknown(&l.nearest);
    any = true;
  }
  return any ? ATT_OK : att_fail(ATT_BAD_ARGUMENT, "select names no site");
}

att_status att_range_check(att_range range, const char *what, int64_t count) {
  if (!range.first && !range.end) return ATT_OK;
  if (range.first >= 0 && range.first < range.end && range.end <= count) return ATT_OK;
  return att_fail(ATT_BAD_ARGUMENT, "%s %lld to %lld (not included) are not among %lld", what,
                  (long long)range.first, (long long)range.end, (long long)count);
}

bool att_range_has(att_range range, int64_t i) {
  return !range.end || (i >= range.first && i < range.end);
}
