/* cmd_demo.c — attend demo: what the small model story has learned, a dozen prompts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "demo.h"
#include "json_out.h"
#include "memory.h"
#include "progress.h"

/* Whatever is called like it where the command is given: a demo is of that model. */
static subject what = {.builtin = "story"};

static const option options[] = {SUBJECT_MODEL_OPTIONS_OF(what, "story"), {0}};

/* ---- showing ---- */

/* Without the space that begins a word. */
static const char *bare(const char *text) { return text + (text[0] == ' '); }

static void print_side(const cli *c, const char *prompt, const char *first, double p,
                       const char *second, double q) {
  fputs("    ", stdout);
  text_wrap_from(stdout, &c->term, prompt, 4, c->term.width);
  text_put(&c->term, "      → %s %.3f   %s %.3f\n", bare(first), p, bare(second), q);
}

static void print_one(const cli *c, const demo *d, const demo_result *r) {
  const term *t = &c->term;
  printf("%s%s%s\n", t->inks[INK_STRONG], d->name, t->inks[INK_OFF]);
  print_side(c, d->prompt, d->a, r->p[0][0], d->b, r->p[0][1]);
  print_side(c, d->twin, d->b, r->p[1][1], d->a, r->p[1][0]);
  text_say(t, INK_OFF, 4, "%s%s", d->finding, demo_holds(r) ? "" : " Not in this model.");
  if (!(r->share > 0)) return; /* no head alone moves it there */
  text_say(t, INK_FAINT, 4,
           "Head %" PRId64 " of layer %" PRId64 " tells the end more than any other head: there it "
           "looks at \"%s\" with %.2f. What it hands on, put into the twin, goes %.2f of the way: "
           "%s %.3f, %s %.3f.",
           r->head, r->layer, bare(r->key_text), r->weight, r->share, bare(d->a), r->with[0],
           bare(d->b), r->with[1]);
}

static void print_more(const demo *d, const demo_result *r) {
  const char *model = what.model_path ? what.model_path : what.builtin;
  printf("\n    attend look '%s' -m %s -L %" PRId64 " -H %" PRId64 "\n", d->prompt, model, r->layer,
         r->head);
  printf("    attend dla '%s' -m %s --target '%s' --vs '%s'\n", d->prompt, model, d->a, d->b);
  if (r->tokens[0] == r->tokens[1]) /* patch takes no others */
    printf("    attend patch '%s' '%s' -m %s --at z --grid head-position --target '%s' --vs '%s'\n",
           d->prompt, d->twin, model, d->a, d->b);
}

static void print_json_one(json *j, const demo *d, const demo_result *r) {
  json_open(j, NULL, '{');
  json_string(j, "name", d->name);
  json_string(j, "prompt", d->prompt);
  json_string(j, "twin", d->twin);
  json_string(j, "a", d->a);
  json_string(j, "b", d->b);
  json_string(j, "finding", d->finding);
  json_bool(j, "holds", demo_holds(r));
  for (int side = 0; side < 2; side++) {
    json_open(j, side ? "twin_probability" : "probability", '{');
    json_double(j, "a", r->p[side][0]);
    json_double(j, "b", r->p[side][1]);
    json_close(j);
  }
  json_open(j, "head", '{');
  json_int(j, "layer", r->layer);
  json_int(j, "head", r->head);
  json_double(j, "share", r->share);
  json_double(j, "a_with", r->with[0]);
  json_double(j, "b_with", r->with[1]);
  json_int(j, "key", r->key);
  json_string(j, "key_text", r->key_text);
  json_double(j, "weight", r->weight);
  json_close(j);
  json_close(j);
}

static void print_json(const demo *all, const demo_result *results, int n) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", att_model_describe(what.model)->name);
  json_string(&j, "class", att_runtime_class(what.runtime));
  json_open(&j, "demos", '[');
  for (int i = 0; i < n; i++) print_json_one(&j, &all[i], &results[i]);
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static void print_text(const cli *c, const demo *all, const demo_result *results, int n) {
  for (int i = 0; i < n; i++) {
    if (i > 0) putchar('\n');
    print_one(c, &all[i], &results[i]);
  }
  if (n == 1) print_more(all, results);
}

/* ---- the command ---- */

static int choose(int *first, int *n, const cli *c, const char *name) {
  char names[256] = "";
  for (int i = 0, at = 0; i < demo_count; i++) {
    if (strcmp(demos[i].name, name) == 0) {
      *first = i, *n = 1;
      return CLI_OK;
    }
    at += snprintf(names + at, sizeof names - (size_t)at, "%s%s", i ? ", " : "", demos[i].name);
  }
  return cli_usage(c, "no demo is called %s; there are %s", name, names);
}

static int run(const cli *c, int n, char **operands) {
  int first = 0, count = demo_count;
  int code = n > 0 ? choose(&first, &count, c, operands[0]) : CLI_OK;
  if (code != CLI_OK) return code;
  if (what.tokenizer_path && !what.model_path)
    return cli_usage(c, "%s has a tokenizer of its own; -z needs -m", what.builtin);
  code = subject_open_model(&what, c);
  if (code == CLI_OK && !what.tokenizer)
    code =
        cli_fail(c, "%s has no tokenizer: give one with -z", att_model_describe(what.model)->name);
  demo_result *results = memory_get((size_t)count, sizeof *results);
  progress bar = progress_begin(c, "reading");
  for (int i = 0; i < count && code == CLI_OK; i++) {
    code = demo_measure(&results[i], c, &what, &demos[first + i]);
    progress_show((double)(i + 1) / (double)count, &bar);
  }
  progress_end(&bar);
  if (code == CLI_OK && c->json)
    print_json(demos + first, results, count);
  else if (code == CLI_OK)
    print_text(c, demos + first, results, count);
  free(results);
  subject_close(&what);
  return code;
}

const command cmd_demo = {
    .operands = "[NAME]",
    .least = 0,
    .most = 1,
    .about =
        "A dozen prompts with a finding each, read anew by the built-in model story, or MODEL: how "
        "it goes on, how it goes on after the prompt's twin, in which what decides has changed, "
        "and the head whose output at the prompt's end, put into the end of the twin, goes "
        "furthest from the twin's answer to the prompt's, with what it looks at there. With NAME "
        "one of them, and the commands that show more.\n\n"
        "  attend demo\n"
        "  attend demo her\n"
        "  attend demo --json",
    .options = options,
    .run = run,
};
