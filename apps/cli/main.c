/* main.c — finds the command, reads its options, runs it.
 *
 * attend COMMAND [operands] [options]. Data goes to stdout, talk to stderr;
 * exit 0 ok, 1 failed, 2 wrong usage. Commands are rows of commands.inc.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "textshow.h"

typedef struct entry {
  const char *name, *summary;
  const command *command;
} entry;

static const entry entries[] = {
#define ATT_COMMAND(name, object, summary) {#name, summary, &object},
#include "commands.inc"
#undef ATT_COMMAND
};
enum { N_ENTRIES = sizeof entries / sizeof entries[0] };

static cli settings;

static const option shared[] = {
    {"json", 0, OPTION_FLAG, &settings.json, "", 0, 0, "one JSON value on stdout"},
    {"quiet", 0, OPTION_FLAG, &settings.quiet, "", 0, 0, "no talk on stderr but errors"},
    {"threads", 0, OPTION_INT, &settings.threads, "N", 1, 256,
     "threads; default: one for each processor. Results never depend on it"},
    {"cpu", 0, OPTION_TEXT, &settings.target, "TARGET", 0, 0,
     "kernels to use: avx2, plain, portable …; default: the best this processor has"},
    {"seed", 0, OPTION_SEED, &settings.seed, "N", 0, 0, "of everything random; default 0"},
    {"color", 0, OPTION_CHOICE, &settings.color, "auto|always|never", 0, 0,
     "auto: on a terminal, unless NO_COLOR is set"},
    {"theme", 0, OPTION_CHOICE, &settings.theme, "auto|dark|light", 0, 0,
     "the terminal's background; auto: COLORFGBG, else dark"},
    {"help", 'h', OPTION_FLAG, &settings.help, "", 0, 0, "this text"},
    {0}};

static const entry *find(const char *name) {
  for (int i = 0; i < N_ENTRIES; i++)
    if (!strcmp(entries[i].name, name)) return &entries[i];
  return NULL;
}

static int unknown(const char *name) {
  const char *names[N_ENTRIES];
  for (int i = 0; i < N_ENTRIES; i++) names[i] = entries[i].name;
  const char *near = nearest_word(name, names, N_ENTRIES);
  settings.command = "help";
  if (near) return cli_usage(&settings, "no command \"%s\"; did you mean \"%s\"?", name, near);
  return cli_usage(&settings, "no command \"%s\"; attend help lists them", name);
}

static void print_overview(FILE *out) {
  fprintf(out,
          "attend %s - attention that you can run, train and look inside\n\n"
          "usage: attend COMMAND [operands] [options]\n\n",
          att_version());
  for (int i = 0; i < N_ENTRIES; i++)
    fprintf(out, "  %-10s %s\n", entries[i].name, entries[i].summary);
  fprintf(out, "  %-10s %s\n\n", "help", "all about one command: attend help run");
  fprintf(out, "A MODEL is a Hugging Face directory, a .gguf, a llama2.c .bin or a built-in one;\n"
               "without -m it is " CLI_USUAL_MODEL
               ". Start with: attend demo, or attend lesson river-bank\n");
}

/* Lines of the text are wrapped each; leading blanks are their indent. Examples, which
 * have some, keep their columns where they fit. */
static void print_about(const term *t, const char *text) {
  while (*text) {
    char line[1024];
    size_t length = strcspn(text, "\n");
    snprintf(line, sizeof line, "%.*s", (int)length, text);
    if (length == 0)
      putchar('\n');
    else if (*line == ' ' && text_width(t, line) <= t->width)
      text_print(stdout, t, line, strlen(line)), putchar('\n');
    else
      text_wrap(stdout, t, line, (int)strspn(line, " "), t->width);
    text += length + (text[length] != 0);
  }
}

static void print_help(const entry *e) {
  const term *t = &settings.term;
  const char *gap = e->command->operands[0] ? " " : "";
  text_say(t, INK_OFF, 0, "usage: attend %s%s%s [options]", e->name, gap, e->command->operands);
  putchar('\n');
  text_wrap(stdout, t, e->summary, 0, t->width);
  putchar('\n');
  print_about(t, e->command->about);
  if (e->command->options && e->command->options[0].name) {
    printf("\noptions\n");
    options_help(t, e->command->options);
  }
  printf("\noptions of every command\n");
  options_help(t, shared);
}

static int help(int argc, char **argv) {
  settings.command = "help";
  settings.term = term_probe(COLOR_AUTO, THEME_AUTO);
  if (argc > 1) return cli_usage(&settings, "one command at a time");
  if (argc == 0) {
    print_overview(stdout);
    return CLI_OK;
  }
  const entry *e = find(argv[0]);
  if (!e) return unknown(argv[0]);
  print_help(e);
  return CLI_OK;
}

static int run(const entry *e, int argc, char **argv) {
  settings.command = e->name;
  const option_set set = {e->name, e->command->options, shared};
  int n = options_parse(&set, argc, argv);
  if (n < 0) return CLI_USAGE;
  settings.term = term_probe((color_when)settings.color, (color_theme)settings.theme);
  if (settings.help) {
    print_help(e);
    return CLI_OK;
  }
  if (n < e->command->least)
    return cli_usage(&settings, "needs %s (attend help %s)", e->command->operands, e->name);
  if (n > e->command->most)
    return cli_usage(&settings, "one operand too many: \"%s\" (attend help %s)",
                     argv[e->command->most], e->name);
  return e->command->run(&settings, n, argv);
}

/* The reader has gone: nothing is wrong, there is only nobody to tell. */
static void reader_gone(int number) {
  (void)number;
  _exit(CLI_OK);
}

static int dispatch(int argc, char **argv) {
  if (argc < 2) {
    print_overview(stderr);
    return CLI_USAGE;
  }
  const char *name = argv[1];
  if (!strcmp(name, "--version") || !strcmp(name, "version")) {
    printf("attend %s (numerics %d)\n", att_version(), ATT_NUMERICS);
    return CLI_OK;
  }
  if (!strcmp(name, "--help") || !strcmp(name, "-h")) return help(0, NULL);
  if (!strcmp(name, "help")) return help(argc - 2, argv + 2);
  const entry *e = find(name);
  return e ? run(e, argc - 2, argv + 2) : unknown(name);
}

int main(int argc, char **argv) {
  signal(SIGPIPE, reader_gone);
  int code = dispatch(argc, argv);
  if ((fflush(stdout) || ferror(stdout)) && code == CLI_OK) {
    fprintf(stderr, "attend: cannot write the output: %s\n", strerror(errno));
    code = CLI_FAILED;
  }
  return code;
}
