/* heads_log.c — a line a checkpoint, in order, whatever was killed in between. */
#include "heads_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json_out.h"
#include "memory.h"
#include "watch.h"

enum { PATH = 4096 };

static void path_of(char out[PATH], const char *folder, const char *ending) {
  snprintf(out, PATH, "%s/heads.jsonl%s", folder, ending);
}

static int fail(const cli *c, const char *path) {
  return cli_fail(c, "%s: %s", path, strerror(errno));
}

/* Copies whole lines of earlier steps. */
static bool copy(FILE *to, FILE *from, int64_t step) {
  char *line = NULL;
  size_t room = 0;
  long long at;
  while (getline(&line, &room, from) > 0)
    if (strchr(line, '\n') && sscanf(line, "{\"step\":%lld", &at) == 1 && at < step)
      fputs(line, to);
  free(line);
  return !ferror(from) && !ferror(to);
}

int heads_log_shorten(const cli *c, const char *folder, int64_t step) {
  char path[PATH], other[PATH];
  path_of(path, folder, "");
  path_of(other, folder, ".part");
  FILE *from = fopen(path, "r");
  if (!from) return errno == ENOENT ? CLI_OK : fail(c, path);
  FILE *to = fopen(other, "w");
  bool good = to && copy(to, from, step);
  fclose(from);
  if (to && fclose(to) != 0) good = false;
  return good && rename(other, path) == 0 ? CLI_OK : fail(c, other);
}

int heads_log_add(const cli *c, const char *folder, int64_t step, double validation,
                  const att_model *model, const att_tokenizer *tokenizer) {
  const att_model_info *info = att_model_describe(model);
  if (info->context < 2) return CLI_OK; /* nothing can be there twice */
  double most,
      *scores = memory_get((size_t)(info->layers * info->heads) * WATCH_SCORES, sizeof(double));
  char path[PATH];
  path_of(path, folder, "");
  int code =
      watch_heads(scores, &most, model, tokenizer, c->seed) == ATT_OK ? CLI_OK : cli_fail_status(c);
  FILE *out = code == CLI_OK ? fopen(path, "a") : NULL;
  if (out) {
    json j = json_begin(out);
    json_open(&j, NULL, '{');
    json_int(&j, "step", step);
    json_float(&j, "validation", (float)validation); /* the log keeps nine digits of it */
    watch_json(&j, scores, info->layers, info->heads);
    json_close(&j);
    json_end(&j);
    bool good = !ferror(out);
    if (fclose(out) != 0 || !good) out = NULL;
  }
  free(scores);
  return code == CLI_OK && !out ? fail(c, path) : code;
}
