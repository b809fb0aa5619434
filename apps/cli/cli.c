/* cli.c — complaints, notes and the runtime, the same for every command. */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "attend/status.h"
#include "textshow.h"

/* stdout first, so that a terminal shows both in the order they were written. */
static void say(const cli *c, const char *format, va_list args) {
  char line[2048];
  vsnprintf(line, sizeof line, format, args);
  const term t = term_plain(80, term_locale_is_utf8());
  fflush(stdout);
  fprintf(stderr, "attend %s: ", c->command);
  text_line(stderr, &t, line);
  fputc('\n', stderr);
}

int cli_fail(const cli *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(c, format, args);
  va_end(args);
  return CLI_FAILED;
}

int cli_usage(const cli *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(c, format, args);
  va_end(args);
  return CLI_USAGE;
}

void cli_note(const cli *c, const char *format, ...) {
  if (c->quiet) return;
  va_list args;
  va_start(args, format);
  say(c, format, args);
  va_end(args);
}

int cli_fail_status(const cli *c) { return cli_fail(c, "%s", att_message()); }

static void log_line(att_log_level level, const char *line, void *payload) {
  const cli *c = payload;
  if (level <= ATT_LOG_WARNING) cli_note(c, "%s", line);
}

int cli_new_file(const cli *c, const char *path, bool replace) {
  struct stat about;
  if (replace || stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return CLI_OK;
  return cli_fail(c, "%s is already there; --force replaces it", path);
}

bool cli_path_ends_with(const char *path, const char *ending) {
  size_t n = strlen(path), m = strlen(ending);
  return n > m && !strcasecmp(path + n - m, ending);
}

int cli_runtime(att_runtime **out, const cli *c) {
  att_runtime_options options;
  att_runtime_options_init(&options);
  if (c->threads > 0) options.threads = (int)c->threads;
  options.target = c->target;
  options.log = log_line;
  options.log_payload = (void *)(uintptr_t)c;
  att_status status = att_runtime_create(out, &options);
  if (status == ATT_OK) return CLI_OK;
  if (status == ATT_UNSUPPORTED && c->target) return cli_usage(c, "--cpu: %s", att_message());
  return cli_fail_status(c);
}
