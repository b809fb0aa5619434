/* cli.h — what a command is, and what all commands share. */
#ifndef ATTEND_CLI_CLI_H
#define ATTEND_CLI_CLI_H

#include "attend/runtime.h"
#include "options.h"
#include "term.h"

/* What the program answers to its caller. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* What help says of a command without -m: the first row of models/builtin.cmake. */
#define CLI_USUAL_MODEL "story"

/* The settings shared by all commands. */
typedef struct cli {
  const char *command; /* "run": for messages */
  bool json, quiet, help;
  int64_t threads; /* 0: as many as there are processors */
  const char *target;
  uint64_t seed;
  int color, theme; /* color_when, color_theme */
  term term;
} cli;

typedef struct command {
  const char *operands; /* "PROMPT", "[NAME|FILE|list]", "" */
  int least, most;      /* how many operands */
  const char *about;    /* help: lines that get wrapped; leading blanks indent */
  const option *options;
  int (*run)(const cli *c, int n, char **operands);
} command;

#define ATT_COMMAND(name, object, summary) extern const command object;
#include "commands.inc"
#undef ATT_COMMAND

/* One line on stderr, "attend run: …"; control characters are spelled out.
 * cli_fail and cli_usage return the exit code that goes with them; cli_note is
 * talk that --quiet turns off. */
int cli_fail(const cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_usage(const cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_note(const cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says what the library left in att_message() and returns CLI_FAILED. */
int cli_fail_status(const cli *c);

/* The runtime that --threads and --cpu ask for. Warnings go to stderr. A target
 * that is not there is a usage error: returns the exit code, 0 on success. */
int cli_runtime(att_runtime **out, const cli *c);

/* Complains if a file of this name is there and is not to be replaced. */
int cli_new_file(const cli *c, const char *path, bool replace);

/* True of "map.PNG" and ".png": in any case, and with something before it. */
bool cli_path_ends_with(const char *path, const char *ending);

#endif
