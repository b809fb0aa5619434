/* Globs, lists of them, and edit distance. */
#include "base/match.h"

#include <stdio.h>
#include <string.h>

bool att_glob(const char *pattern, size_t bytes, const char *name) {
  const char *end = pattern + bytes, *star = NULL, *retry = NULL;
  while (*name) {
    if (pattern < end && *pattern == '*') {
      star = ++pattern; /* first try the empty run, later longer ones */
      retry = name;
    } else if (pattern < end && (*pattern == '?' || *pattern == *name)) {
      pattern++;
      name++;
    } else if (star) {
      pattern = star;
      name = ++retry;
    } else {
      return false;
    }
  }
  while (pattern < end && *pattern == '*') pattern++;
  return pattern == end;
}

bool att_next_pattern(const char **list, const char **pattern, size_t *bytes) {
  while (**list == ',' || **list == ' ') (*list)++;
  if (!**list) return false;
  *pattern = *list;
  *bytes = strcspn(*list, ", ");
  *list += *bytes;
  return true;
}

int att_edit_distance(const char *a, size_t bytes, const char *b) {
  enum { MOST = 127 };
  int row[MOST + 1];
  int n = (int)(bytes < MOST ? bytes : MOST), m = (int)strnlen(b, MOST);
  for (int j = 0; j <= m; j++) row[j] = j;
  for (int i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      int exchange = diagonal + (a[i - 1] != b[j - 1]);
      int shorter = row[j - 1] < row[j] ? row[j - 1] : row[j];
      diagonal = row[j];
      row[j] = exchange < shorter + 1 ? exchange : shorter + 1;
    }
  }
  return row[m];
}

/* As many of a name's last components as a text has. */
static const char *same_end(const char *name, const char *text, size_t bytes) {
  size_t points = 0;
  for (size_t i = 0; i < bytes; i++) points += text[i] == '.';
  for (const char *at = name + strlen(name); at > name; at--)
    if (at[-1] == '.' && points-- == 0) return at;
  return name;
}

/* Keeps a name, once, if it is among the nearest. */
static void put(att_nearest *nearest, const char *name, int distance) {
  enum { MOST = 3 };
  int at = nearest->n;
  for (int i = 0; i < nearest->n; i++)
    if (!strcmp(nearest->name[i], name)) return;
  while (at > 0 && distance < nearest->distance[at - 1]) at--;
  if (at == MOST) return;
  if (nearest->n < MOST) nearest->n++;
  for (int i = nearest->n - 1; i > at; i--) {
    nearest->distance[i] = nearest->distance[i - 1];
    memcpy(nearest->name[i], nearest->name[i - 1], sizeof nearest->name[i]);
  }
  nearest->distance[at] = distance;
  snprintf(nearest->name[at], sizeof nearest->name[at], "%s", name);
}

void att_nearest_offer(att_nearest *nearest, const char *name) {
  const char *text = nearest->text;
  size_t bytes = nearest->bytes;
  if (bytes > 2 && !strncmp(text, "*.", 2)) text += 2, bytes -= 2;
  const char *end = same_end(name, text, bytes);
  char pattern[sizeof nearest->name[0]];
  bool whole = end == name || !nearest->patterns;
  snprintf(pattern, sizeof pattern, "%s%s", whole ? "" : "*.", whole ? name : end);
  int distance = att_edit_distance(text, bytes, end);
  int full = att_edit_distance(nearest->text, nearest->bytes, name);
  if (full <= distance)
    put(nearest, name, full);
  else
    put(nearest, pattern, distance);
}

void att_nearest_list(char *out, size_t bytes, const att_nearest *nearest) {
  size_t used = 0;
  out[0] = 0;
  for (int i = 0; i < nearest->n && used < bytes; i++) {
    const char *before = i == 0 ? "" : i == nearest->n - 1 ? " or " : ", ";
    int n = snprintf(out + used, bytes - used, "%s%s", before, nearest->name[i]);
    used += n > 0 ? (size_t)n : 0;
  }
}
