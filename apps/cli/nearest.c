/* nearest.c — "did you mean": the known word with the fewest typing slips. */
#include <stdbool.h>
#include <string.h>

#include "options.h"

static int least(int a, int b) { return a < b ? a : b; }

/* Edits that turn one word into the other: insert, delete, change, swap two. */
static int distance(const char *a, const char *b) {
  enum { LONGEST = 31 };
  int n = (int)strlen(a), m = (int)strlen(b);
  if (n > LONGEST || m > LONGEST) return n + m;
  int d[LONGEST + 1][LONGEST + 1];
  for (int i = 0; i <= n; i++) d[i][0] = i;
  for (int k = 0; k <= m; k++) d[0][k] = k;
  for (int i = 1; i <= n; i++)
    for (int k = 1; k <= m; k++) {
      d[i][k] =
          least(least(d[i - 1][k], d[i][k - 1]) + 1, d[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        d[i][k] = least(d[i][k], d[i - 2][k - 2] + 1);
    }
  return d[n][m];
}

const char *nearest_word(const char *word, const char *const *words, int n) {
  const char *best = NULL;
  int best_distance = 0;
  for (int i = 0; i < n; i++) {
    size_t length = strlen(word);
    int edits = length >= 3 && !strncmp(word, words[i], length) ? 1 : distance(word, words[i]);
    if (!best || edits < best_distance) {
      best = words[i];
      best_distance = edits;
    }
  }
  return best && best_distance <= least(3, ((int)strlen(word) + 1) / 2) ? best : NULL;
}
