/* golden DIR…: runs every reference case found below the given places.
 *
 * A place may be a root, a group, a model's folder or one file. Nothing here
 * knows the names of cases: whatever tree is given is walked, and kinds.inc
 * says what each file is. The one case list is a manifest.json whose rows say
 * what a loader "must" do; its folder is run by that list. */
#define _XOPEN_SOURCE 700 /* for realpath */
#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "golden.h"

#define MAX_DEPTH 16
#define PATH_BYTES 1000

static const struct {
  const char *op, *pattern;
  golden_run_fn *run;
} kinds[] = {
#define GOLDEN_OP(op, run) {op, NULL, run},
#define GOLDEN_FILE(pattern, run) {NULL, pattern, run},
#include "kinds.inc"
#undef GOLDEN_OP
#undef GOLDEN_FILE
};

static golden_run_fn *find_kind(const char *op, const char *tail) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (op && kinds[i].op && strcmp(op, kinds[i].op) == 0) return kinds[i].run;
    if (!op && kinds[i].pattern && fnmatch(kinds[i].pattern, tail, 0) == 0) return kinds[i].run;
  }
  return NULL;
}

/* "…/a/b/c" → "b/c" */
static const char *last_two(const char *path) {
  const char *tail = path + strlen(path);
  for (int slashes = 0; tail > path; tail--)
    if (tail[-1] == '/' && ++slashes == 2) break;
  return tail;
}

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

void golden_file(golden *g, const char *path) {
  golden_case c = {.g = g, .path = path};
  const char *op = NULL;
  if (ends_with(path, ".safetensors")) {
    if (att_archive_open(&c.archive, g->runtime, path) != ATT_OK) {
      if (golden_begin(g, path, "")) {
        golden_fail(g, "cannot be read: %s", att_message());
        golden_end(g);
      }
      return;
    }
    op = att_archive_metadata(c.archive, "op");
  }
  golden_run_fn *run = find_kind(op, last_two(path));
  if (run)
    run(&c);
  else if (op)
    golden_skip_run(g, path, "", "op of no known kind");
  golden_case_free(&c);
  att_archive_close(c.archive);
}

static void walk(golden *g, const char *path, int depth) {
  struct stat info;
  if (stat(path, &info) != 0) return; /* a link that leads nowhere */
  if (!S_ISDIR(info.st_mode)) {
    golden_file(g, path);
    return;
  }
  if (depth == MAX_DEPTH || golden_hostile_folder(g, path, NULL)) return;
  struct dirent **names;
  int n = scandir(path, &names, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    char child[PATH_BYTES];
    int length = snprintf(child, sizeof child, "%s/%s", path, names[i]->d_name);
    if (names[i]->d_name[0] != '.' && length < PATH_BYTES) walk(g, child, depth + 1);
    free(names[i]);
  }
  if (n >= 0) free(names);
}

/* A place inside a folder with a case list is run by that list. */
static bool inside_hostile(golden *g, const char *place) {
  char folder[PATH_BYTES];
  snprintf(folder, sizeof folder, "%s", place);
  for (int up = 0; up < 3; up++) {
    char *slash = strrchr(folder, '/');
    if (!slash) return false;
    *slash = 0;
    if (golden_hostile_folder(g, folder, place)) return true;
  }
  return false;
}

/* Places are made absolute: a case looks for its models in the folders above. */
static bool run_place(golden *g, const char *argument) {
  char *place = realpath(argument, NULL);
  if (!place) {
    fprintf(stderr, "golden: %s does not exist\n", argument);
    return false;
  }
  if (!inside_hostile(g, place)) walk(g, place, 0);
  free(place);
  return true;
}

static int usage(void) {
  fprintf(stderr, "usage: golden [--cpu TARGET] [--threads N] [--block N] [--span N]\n"
                  "              [--chunk PLAN] [--only TEXT] [--quiet] PLACE…\n"
                  "PLAN is 5,1,7 or 1x17: how many tokens a model or cache takes at a time\n");
  return 2;
}

/* A whole number above 0, else 0. */
static int64_t positive(const char *text) {
  char *end;
  long long value = strtoll(text, &end, 10);
  return *end || value < 1 ? 0 : value;
}

/* Index of the first place, or -1. */
static int parse(golden_options *options, int argc, char **argv) {
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; i++) {
    const char *name = argv[i];
    if (strcmp(name, "--quiet") == 0) {
      options->quiet = true;
      continue;
    }
    if (++i == argc) return -1;
    const char *value = argv[i];
    if (strcmp(name, "--cpu") == 0)
      options->target = value;
    else if (strcmp(name, "--only") == 0)
      options->only = value;
    else if (strcmp(name, "--chunk") == 0 && value[0] >= '1' && value[0] <= '9')
      options->chunk = value;
    else if (strcmp(name, "--threads") == 0 && positive(value))
      options->threads = (int)positive(value);
    else if (strcmp(name, "--block") == 0 && positive(value))
      options->block = positive(value);
    else if (strcmp(name, "--span") == 0 && positive(value))
      options->span = positive(value);
    else
      return -1;
  }
  return i < argc ? i : -1;
}

static void log_line(att_log_level level, const char *line, void *payload) {
  (void)payload;
  if (level <= ATT_LOG_WARNING) fprintf(stderr, "golden: %s\n", line);
}

int main(int argc, char **argv) {
  golden g = {0};
  int first = parse(&g.options, argc, argv);
  if (first < 0) return usage();
  att_runtime_options options;
  att_runtime_options_init(&options);
  if (g.options.threads) options.threads = g.options.threads;
  options.target = g.options.target;
  options.log = log_line;
  if (att_runtime_create(&g.runtime, &options) != ATT_OK) {
    fprintf(stderr, "golden: %s\n", att_message());
    return 2;
  }
  bool all_there = true;
  for (int i = first; i < argc; i++) all_there = run_place(&g, argv[i]) && all_there;
  golden_report(&g);
  golden_skips_free(&g);
  att_runtime_free(g.runtime);
  if (!all_there) return 2;
  return g.failed > 0 ? 1 : 0;
}
