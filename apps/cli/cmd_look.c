/* cmd_look.c — attend look: attention as a picture in the terminal. */
#include <stdio.h>
#include <stdlib.h>

#include "attend/status.h"
#include "json_out.h"
#include "look.h"
#include "look_export.h"
#include "reading_words.h"

static subject what;
static reading_options way;
static dump_options source;
static const char *output;
static int64_t zoom; /* 0: not given */
static look_options choices = {
    .layer = -1, .head = -1, .top = 2, .stage = STAGE_WEIGHTS, .residual = 0.5};

static const option options[] = {
    SUBJECT_OPTIONS(what),
    READING_OPTIONS(way),
    DUMP_OPTIONS(source),
    {"layer", 'L', OPTION_INT, &choices.layer, "l", 0, 1e6, "this layer only"},
    {"head", 'H', OPTION_INT, &choices.head, "h", 0, 1e6,
     "this head only, large; of the last layer unless -L says another"},
    {"stage", 0, OPTION_CHOICE, &choices.stage, "raw|scaled|mask|weights", 0, 0,
     "q · k; times the scale; with what is hidden; after softmax. Default weights"},
    {"rollout", 0, OPTION_CHOICE, &choices.rollout, "none|mean|max|min", 0, 0,
     "all layers multiplied into one map, the heads of a layer as their mean, largest or least"},
    {"residual", 0, OPTION_REAL, &choices.residual, "R", 0, 1,
     "of the rollout: what share of a layer passes attention by. Default 0.5"},
    {"discard", 0, OPTION_REAL, &choices.discard, "R", 0, 0.999999,
     "of the rollout: this share of a layer's weights, the smallest, counts as 0. Default 0"},
    WORDS_OPTION(choices.words),
    {"first", 0, OPTION_CHOICE, &choices.first, "scale|hide|show", 0, 0,
     "the first token's column takes most of the weight in many heads: scale: it does not count "
     "for the colours; hide: it is not drawn; show: as any other. Default scale"},
    {"limit", 0, OPTION_CHOICE, &choices.limit, "head|one", 0, 0,
     "full colour at the largest number of the head, or at 1. Default head"},
    {"curve", 0, OPTION_CHOICE, &choices.curve, "linear|sqrt|log", 0, 0,
     "how colours follow numbers. Default linear"},
    {"top", 0, OPTION_INT, &choices.top, "N", 0, 9,
     "names the N strongest keys behind a row where there is room; default 2"},
    {"digits", 0, OPTION_INT, &choices.digits, "N", 0, 4, "numbers with N decimals, no colours"},
    {"output", 'o', OPTION_TEXT, &output, "FILE", 0, 0,
     "writes the picture: .svg (with text), .png, or .html, a page for itself with all numbers; a "
     ".csv of them: attend trace -o"},
    {"zoom", 0, OPTION_INT, &zoom, "N", 1, 4, "of a .png: 1 to 4 times as large"},
    {0}};

static int check_rollout(const look *l, const cli *c) {
  if (!l->options.rollout)
    return option_given(&choices.residual) || option_given(&choices.discard)
               ? cli_usage(c, "--residual and --discard are for --rollout")
               : CLI_OK;
  if (l->options.layer >= 0 || l->options.head >= 0 || l->options.stage != STAGE_WEIGHTS)
    return cli_usage(c, "--rollout is of the weights of all layers and heads");
  if (l->read.across)
    return cli_usage(c, "--rollout multiplies layers of one text: --stack encoder or decoder");
  return CLI_OK;
}

static int check(look *l, const cli *c) {
  int code = check_rollout(l, c);
  if (l->options.words &&
      (l->read.saved || l->options.rollout || l->options.stage != STAGE_WEIGHTS))
    return cli_usage(c, "--words are of the weights of a model's heads");
  if (code != CLI_OK) return code;
  l->layers = l->read.layers;
  l->heads = l->read.heads;
  if (l->read.saved && l->options.stage != STAGE_WEIGHTS)
    return cli_usage(c, "--stage: a dump has weights alone");
  if (l->read.saved && l->options.rollout && l->read.n_queries != l->read.n_keys)
    return cli_usage(c, "--rollout: this dump has not as many queries as keys");
  if (l->options.layer >= l->layers)
    return cli_usage(c, "-L %lld: the layers are 0 to %lld", (long long)l->options.layer,
                     (long long)l->layers - 1);
  if (l->options.head >= l->heads)
    return cli_usage(c, "-H %lld: the heads are 0 to %lld", (long long)l->options.head,
                     (long long)l->heads - 1);
  if (l->options.head >= 0 && l->options.layer < 0) l->options.layer = l->layers - 1;
  if (l->options.rollout) l->layers = l->heads = 1;
  if (output) {
    code = look_check_export(c, l, output, zoom);
    if (code != CLI_OK) return code;
  }
  if (zoom && !output) return cli_usage(c, "--zoom is for -o FILE.png");
  if (l->options.digits > 0 && l->options.head < 0 && !l->options.rollout)
    return cli_usage(c, "--digits is for one head: give -H");
  return CLI_OK;
}

static int evaluate(look *l, const cli *c) {
  char sites[160], layer[24] = "*";
  if (l->read.saved) return CLI_OK;
  if (l->options.layer >= 0) snprintf(layer, sizeof layer, "%lld", (long long)l->options.layer);
  snprintf(sites, sizeof sites, "%s.%s.%s,%s.%s.%s", layer, l->read.part,
           look_sites[l->options.stage], layer, l->read.part, look_sites[STAGE_MASK]);
  return reading_start(&l->read, c, sites, l->read.n_queries);
}

static void json_head(json *j, const look *l, int64_t layer, int64_t head) {
  const look_map m = look_map_of(l, layer, head);
  json_open(j, NULL, '{');
  if (!l->rolled) json_int(j, "layer", layer);
  if (!l->rolled) json_int(j, "head", head);
  if (l->options.stage == STAGE_WEIGHTS) json_float(j, "first_mass", m.first_mass);
  json_view(j, "values", m.values);
  json_close(j);
}

static void json_rollout(json *j, const look *l) {
  static const char *const heads[] = {"mean", "max", "min"};
  json_open(j, "rollout", '{');
  json_string(j, "heads", heads[l->options.rollout - 1]);
  json_double(j, "residual", l->options.residual);
  json_double(j, "discard", l->options.discard);
  json_int(j, "layers", l->read.layers);
  json_close(j);
}

static void print_json(const look *l) {
  static const char *const stages[] = {"raw", "scaled", "mask", "weights"};
  int64_t first = l->options.layer < 0 ? 0 : l->options.layer;
  int64_t end = l->options.layer < 0 ? l->layers : first + 1;
  json j = subject_json(&what);
  edit_json(&j, &l->read.edited);
  subject_json_ids(&j, &what, "query", l->read.query_ids, l->read.n_queries);
  subject_json_ids(&j, &what, "key", l->read.key_ids, l->read.n_keys);
  json_string(&j, "stage", stages[l->options.stage]);
  if (l->rolled) json_rollout(&j, l);
  if (l->options.words) json_string(&j, "words", WORDS_AGGREGATION);
  json_open(&j, "heads", '[');
  for (int64_t layer = first; layer < end; layer++)
    for (int64_t head = 0; head < l->heads; head++)
      if (l->options.head < 0 || head == l->options.head) json_head(&j, l, layer, head);
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

static int open_reading(look *l, dump *saved, const cli *c, int n, char **operands) {
  if (!source.path) {
    if (source.tokens) return cli_usage(c, "--tokens is for --dump");
    const int code = subject_open(&what, c, n, operands);
    return code == CLI_OK ? reading_choose(&l->read, c, &what, &way) : code;
  }
  if (n > 0) return cli_usage(c, "--dump stands in place of a model and a prompt");
  if (edit_given(&way.edits)) return cli_usage(c, "--edit needs a model, and a dump is none");
  const int code = dump_open(saved, &what, c, &source);
  if (code == CLI_OK) reading_of_dump(&l->read, &what, saved);
  return code;
}

static int run(const cli *c, int n, char **operands) {
  look l = {.what = &what, .options = choices};
  dump saved = {0};
  int code = open_reading(&l, &saved, c, n, operands);
  if (code == CLI_OK) code = check(&l, c);
  if (code == CLI_OK) code = evaluate(&l, c);
  if (code == CLI_OK && l.options.rollout && look_roll(&l) != ATT_OK) code = cli_fail_status(c);
  if (code == CLI_OK && l.options.words) code = reading_words(&l.read, &saved, &what, c);
  if (code == CLI_OK && output) code = look_export(c, &l, output, zoom);
  if (code == CLI_OK && (!output || c->json)) {
    if (!c->json) edit_say(&c->term, &l.read.edited);
    if (c->json)
      print_json(&l);
    else if (l.options.head >= 0 || l.rolled)
      look_head_text(c, &l, l.options.layer, l.options.head);
    else
      look_grid_text(c, &l);
  }
  free(l.rolled);
  reading_close(&l.read);
  dump_close(&saved);
  subject_close(&what);
  return code;
}

const command cmd_look = {
    .operands = "[PROMPT]",
    .least = 0,
    .most = 1,
    .about = "Runs the model on PROMPT and draws who looks at whom: all heads as small maps, those "
             "of one layer with -L, one head large with -H. Row i is the query at position i, "
             "column j the key; a dot is a hidden key. Of a model with encoder and decoder "
             "--stack says whose; across, queries are the answer's tokens and keys the "
             "prompt's.\n\n"
             "Half blocks with 24-bit or 256 colours, shades with 16, characters without colour; "
             "never wider than the terminal. --json prints all numbers. --rollout: "
             "docs/math/patterns.md.",
    .options = options,
    .run = run,
};
