/* cmd_dla.c — attend dla: which parts of the model speak for one token against another.
 *
 * The stream at the end is a sum: the embedding, what every head and every feed-forward
 * part added, biases. The last norm, its size taken of the whole sum, and the output
 * matrix are linear, so the difference of two logits is a sum over the same parts.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/capture.h"
#include "attend/lens.h"
#include "attend/status.h"
#include "engine.h"
#include "json_out.h"
#include "likely.h"
#include "memory.h"
#include "subject.h"
#include "table.h"

static subject what;
static const char *target_text, *versus_text;
static int64_t position = -1, layer = -1, head = -1, top;

static const option options[] = {
    SUBJECT_OPTIONS(what),
    {"target", 0, OPTION_TEXT, &target_text, "TEXT", 0, 0,
     "the token spoken for, \" word\"; default what the model says"},
    {"vs", 0, OPTION_TEXT, &versus_text, "TEXT", 0, 0,
     "the token spoken against; default none: the logit of the other by itself"},
    {"position", 'p', OPTION_INT, &position, "i", 0, 1e9,
     "the row that predicts, counted from 0; default the last"},
    {"layer", 'L', OPTION_INT, &layer, "l", 0, 1e6, "with -H: this head by its source tokens"},
    {"head", 'H', OPTION_INT, &head, "h", 0, 1e6, "with -L: this head by its source tokens"},
    {"top", 0, OPTION_INT, &top, "N", 1, 1e6, "the N largest parts only"},
    {0}};

typedef struct part {
  char name[48];
  int64_t layer, head, source; /* -1: none */
  double share;
} part;

typedef struct shares {
  att_session *session;
  att_capture *row;       /* everything at the position */
  att_capture *values;    /* of one head's keys, all positions; NULL: not asked for */
  int32_t target, versus; /* versus -1: none */
  int64_t c, v;
  part *parts;
  int64_t n, room;
  double constant, sum, logits; /* of no part; of all; by the model */
} shares;

/* ---- parts ---- */

static att_view at_row(const shares *s, const char *format, int64_t l) {
  char name[64];
  att_view view;
  if (l < 0)
    snprintf(name, sizeof name, "%s", format);
  else
    snprintf(name, sizeof name, "blocks.%" PRId64 ".%s", l, format);
  if (att_capture_get(&view, s->row, name) != ATT_OK) return att_view_none();
  return att_view_select(view, 0, 0); /* the one row */
}

static double difference(const shares *s, const float *logits) {
  return (double)logits[s->target] - (s->versus < 0 ? 0 : (double)logits[s->versus]);
}

/* Adds rows [n,C], named already from s->n on. */
static att_status add_rows(shares *s, const float *x, int64_t n, att_view stream) {
  enum { AT_ONCE = 16 };
  float *logits = memory_get((size_t)(AT_ONCE * s->v), sizeof *logits);
  att_status status = ATT_OK;
  for (int64_t i = 0; i < n && status == ATT_OK; i += AT_ONCE) {
    const int64_t rows = n - i < AT_ONCE ? n - i : AT_ONCE;
    const float *from = x + i * s->c;
    const att_view parts =
        att_view_of((void *)(uintptr_t)from, ATT_F32, 2, (int64_t[]){rows, s->c});
    const att_view out = att_view_of(logits, ATT_F32, 2, (int64_t[]){rows, s->v});
    status = att_part_logits(out, what.model, parts, stream);
    for (int64_t r = 0; r < rows && status == ATT_OK; r++) {
      part *p = &s->parts[s->n++];
      p->share = difference(s, logits + r * s->v);
      s->sum += p->share;
    }
  }
  free(logits);
  return status;
}

static void name_part(shares *s, int64_t ahead, const char *name, part p) {
  if (s->n + ahead >= s->room) {
    s->room = 2 * (s->n + ahead) + 64;
    s->parts = memory_resize(s->parts, (size_t)s->room, sizeof *s->parts);
  }
  snprintf(p.name, sizeof p.name, "%s", name);
  s->parts[s->n + ahead] = p;
}

static att_status add_one(shares *s, const char *name, int64_t l, att_view x, att_view stream) {
  if (!x.data) return ATT_OK;
  char full[48];
  if (l < 0)
    snprintf(full, sizeof full, "%s", name);
  else
    snprintf(full, sizeof full, "L%" PRId64 " %s", l, name);
  name_part(s, 0, full, (part){.layer = l, .head = -1, .source = -1});
  return add_rows(s, x.data, 1, stream);
}

/* What attention's output has beside its heads: the bias of W_O, or, where W_O meets numbers
 * rounded to 8 bits, what that does to their sum. */
static att_status add_bias(shares *s, int64_t l, att_view result, att_view out, att_view stream) {
  float *rest = memory_get((size_t)s->c, sizeof *rest);
  double most = 0, size = 0;
  for (int64_t k = 0; k < s->c; k++) {
    double x = (double)((const float *)out.data)[k];
    size = fmax(size, fabs(x));
    for (int64_t h = 0; h < result.shape[0]; h++)
      x -= (double)((const float *)result.data)[h * s->c + k];
    rest[k] = (float)x;
    most = fmax(most, fabs(x));
  }
  const att_view view = att_view_of(rest, ATT_F32, 1, &s->c);
  const att_model_info *info = att_model_describe(what.model);
  const char *name = info->output_bias ? "attention bias" : "activations rounded to 8 bits";
  const bool there = most > 1e-5 * size; /* the rest is rounding of single precision */
  att_status status = there ? add_one(s, name, l, view, stream) : ATT_OK;
  free(rest);
  return status;
}

/* A block's parts. One that is normed before it is added counts as a whole. */
static att_status add_block(shares *s, int64_t l, att_view stream) {
  const att_view result = at_row(s, "attn.hook_result", l), out = at_row(s, "hook_attn_out", l);
  const att_view attention = at_row(s, "ln1_post.hook_normalized", l);
  const att_view ffn = at_row(s, "ln2_post.hook_normalized", l);
  att_status status = ATT_OK;
  if (attention.data) {
    status = add_one(s, "attention", l, attention, stream);
  } else {
    for (int64_t h = 0; h < result.shape[0]; h++) {
      char name[48];
      snprintf(name, sizeof name, "L%" PRId64 ".H%" PRId64, l, h);
      name_part(s, h, name, (part){.layer = l, .head = h, .source = -1});
    }
    status = add_rows(s, result.data, result.shape[0], stream);
    if (status == ATT_OK) status = add_bias(s, l, result, out, stream);
  }
  if (status != ATT_OK) return status;
  return add_one(s, "feed-forward", l, ffn.data ? ffn : at_row(s, "hook_mlp_out", l), stream);
}

static att_status add_constant(shares *s) {
  float *logits = memory_get((size_t)s->v, sizeof *logits);
  att_status status = att_constant_logits(att_view_of(logits, ATT_F32, 1, &s->v), what.model);
  s->constant = difference(s, logits);
  s->sum += s->constant;
  free(logits);
  return status;
}

static att_status find_parts(shares *s, att_view stream) {
  att_status status = add_one(s, "token embedding", -1, at_row(s, "hook_embed", -1), stream);
  if (status == ATT_OK)
    status = add_one(s, "position embedding", -1, at_row(s, "hook_pos_embed", -1), stream);
  for (int64_t l = 0; l < att_model_describe(what.model)->layers && status == ATT_OK; l++)
    status = add_block(s, l, stream);
  return status == ATT_OK ? add_constant(s) : status;
}

/* A head by its sources: weight times what the source's value adds. */
static att_status find_sources(shares *s, att_view stream) {
  const int64_t n = position + 1;
  char name[64];
  att_view values;
  snprintf(name, sizeof name, "blocks.%" PRId64 ".attn.hook_v", layer);
  att_status status = att_capture_get(&values, s->values, name);
  if (status != ATT_OK) return status;
  snprintf(name, sizeof name, "blocks.%" PRId64 ".attn.hook_pattern", layer);
  att_view weights;
  status = att_capture_get(&weights, s->row, name);
  if (status != ATT_OK) return status;
  const float *a = (const float *)weights.data + head * weights.stride[0];
  float *added = memory_get((size_t)(2 * n * s->c), sizeof *added), *scaled = added + n * s->c;
  const att_view v = att_view_slice(att_view_select(values, 1, 0), 0, 0, n);
  const att_view out = att_view_of(added, ATT_F32, 2, (int64_t[]){n, s->c});
  status = att_head_output(out, what.model, layer, head, v);
  if (status == ATT_OK) status = engine_scaled_rows(what.runtime, scaled, a, added, n, s->c);
  for (int64_t j = 0; j < n; j++) {
    snprintf(name, sizeof name, "%" PRId64, j);
    name_part(s, j, name, (part){.layer = layer, .head = head, .source = j});
  }
  if (status == ATT_OK) status = add_rows(s, scaled, n, stream);
  free(added);
  return status;
}

/* ---- running ---- */

static att_status evaluate(shares *s) {
  att_session_options room;
  att_session_options_init(&room);
  room.context = what.n;
  att_capture_options parts;
  att_capture_options_init(&parts);
  parts.positions = (att_range){position, position + 1};
  att_status status = att_session_create(&s->session, what.model, &room);
  if (status == ATT_OK) status = att_capture_create_part(&s->row, s->session, "*", &parts);
  if (status == ATT_OK && head >= 0) {
    att_capture_options_init(&parts);
    parts.layers = (att_range){layer, layer + 1};
    parts.heads = (att_range){head, head + 1};
    status = att_capture_create_part(&s->values, s->session, "blocks.*.attn.hook_v", &parts);
  }
  return status == ATT_OK ? att_session_eval(s->session, what.ids, what.n) : status;
}

static int choose_tokens(shares *s, const cli *c) {
  const att_view logits = at_row(s, "logits", -1);
  s->versus = -1;
  if (!target_text) {
    likely best;
    int64_t n;
    if (likely_find(&best, &n, 1, what.runtime, logits.data, s->v) != ATT_OK)
      return cli_fail_status(c);
    s->target = best.id;
  }
  int code = target_text ? subject_token(&s->target, &what, c, "--target", target_text) : CLI_OK;
  if (code == CLI_OK && versus_text)
    code = subject_token(&s->versus, &what, c, "--vs", versus_text);
  s->logits = code == CLI_OK ? difference(s, logits.data) : 0;
  return code;
}

static int check(const cli *c) {
  const att_model_info *info = att_model_describe(what.model);
  if (info->kind != ATT_MODEL_DECODER)
    return cli_usage(c, "%s is no decoder: it has no next token to speak for", info->name);
  if ((layer < 0) != (head < 0)) return cli_usage(c, "-L and -H go together");
  if (layer >= info->layers)
    return cli_usage(c, "-L %" PRId64 ": the layers are 0 to %" PRId64, layer, info->layers - 1);
  if (head >= info->heads)
    return cli_usage(c, "-H %" PRId64 ": the heads are 0 to %" PRId64, head, info->heads - 1);
  if (position >= what.n)
    return cli_usage(c, "--position %" PRId64 ": the positions are 0 to %" PRId64, position,
                     what.n - 1);
  if (what.n > info->context)
    return cli_fail(c, "the prompt has %" PRId64 " tokens, the context holds %" PRId64, what.n,
                    info->context);
  if (position < 0) position = what.n - 1;
  return CLI_OK;
}

/* A norm of the heads' sum makes the share of one depend on all. */
static int check_separable(const shares *s, const cli *c) {
  if (head < 0 || !at_row(s, "ln1_post.hook_normalized", layer).data) return CLI_OK;
  return cli_usage(c,
                   "-H %" PRId64
                   ": %s norms the sum of a layer's heads before it is added, so that "
                   "no head has a share of its own; without -L and -H attention counts as a whole",
                   head, att_model_describe(what.model)->name);
}

static int compare(const void *a, const void *b) {
  const part *x = a, *y = b;
  const double p = fabs(x->share), q = fabs(y->share);
  if (p != q) return p < q ? 1 : -1;
  return x < y ? -1 : 1;
}

/* ---- showing ---- */

static void print_json(const shares *s, int64_t shown) {
  json j = subject_json(&what);
  json_int(&j, "position", position);
  json_int(&j, "target", s->target);
  if (s->versus >= 0)
    json_int(&j, "vs", s->versus);
  else
    json_null(&j, "vs");
  json_double(&j, "logits", s->logits);
  json_double(&j, "sum", s->sum);
  json_double(&j, "constant", s->constant);
  json_open(&j, "parts", '[');
  for (int64_t i = 0; i < shown; i++) {
    const part *p = &s->parts[i];
    json_open(&j, NULL, '{');
    json_string(&j, "name", p->name);
    if (p->layer >= 0) json_int(&j, "layer", p->layer);
    if (p->head >= 0) json_int(&j, "head", p->head);
    if (p->source >= 0) json_int(&j, "source", p->source);
    json_double(&j, "share", p->share);
    json_close(&j);
  }
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

/* Why the model's own logits are not the sum, or "". */
static const char *why_apart(const shares *s) {
  const att_model_info *info = att_model_describe(what.model);
  if (fabs(s->sum - s->logits) < 5e-4) return ""; /* not in the decimals that are shown */
  return info->caps_logits ? ", after its soft cap"
         : info->rounded   ? ", of activations rounded to 8 bits"
                           : "";
}

static void print_text(const shares *s, int64_t shown, const term *t) {
  const label target = subject_label(&what, t, s->target, 16);
  const label versus = subject_label(&what, t, s->versus < 0 ? 0 : s->versus, 16);
  const double most = s->n > 0 ? fabs(s->parts[0].share) : 0;
  if (s->versus < 0)
    text_say(t, INK_STRONG, 0, "position %" PRId64 ": the logit of %s", position, target.text);
  else
    text_say(t, INK_STRONG, 0, "position %" PRId64 ": the logit of %s less that of %s", position,
             target.text, versus.text);
  table *rows = table_new(t, head < 0 ? "lrb" : "rlrb");
  table_head(rows, head < 0 ? "part" : "source");
  if (head >= 0) table_head(rows, "");
  table_head(rows, "share");
  table_head(rows, "");
  for (int64_t i = 0; i < shown; i++) {
    table_put(rows, INK_OFF, "%s", s->parts[i].name);
    if (s->parts[i].source >= 0) {
      const label token = subject_label(&what, t, what.ids[s->parts[i].source], 16);
      table_label(rows, INK_OFF, &token);
    }
    table_put(rows, s->parts[i].share < 0 ? INK_FAINT : INK_STRONG, "%+.3f", s->parts[i].share);
    table_bar(rows, most > 0 ? fabs(s->parts[i].share) / most : 0);
  }
  table_print(rows, 0);
  if (shown < s->n) text_say(t, INK_FAINT, 0, "and %" PRId64 " smaller ones", s->n - shown);
  if (head >= 0)
    text_say(t, INK_FAINT, 0, "sum %+.3f: the share of L%" PRId64 ".H%" PRId64, s->sum, layer,
             head);
  else
    text_say(t, INK_FAINT, 0,
             "sum %+.3f with %+.3f that no part gives (biases); the model's own logits say %+.3f%s",
             s->sum, s->constant, s->logits, why_apart(s));
}

static int run(const cli *c, int n, char **operands) {
  shares s = {0};
  int code = subject_open(&what, c, n, operands);
  if (code == CLI_OK) code = check(c);
  if (code == CLI_OK && evaluate(&s) != ATT_OK) code = cli_fail_status(c);
  if (code == CLI_OK) {
    const att_model_info *info = att_model_describe(what.model);
    s.c = info->width;
    s.v = info->vocab;
    code = check_separable(&s, c);
    if (code == CLI_OK) code = choose_tokens(&s, c);
  }
  if (code == CLI_OK) {
    const att_view stream =
        at_row(&s, "hook_resid_post", att_model_describe(what.model)->layers - 1);
    if ((head < 0 ? find_parts(&s, stream) : find_sources(&s, stream)) != ATT_OK)
      code = cli_fail_status(c);
  }
  if (code == CLI_OK) {
    qsort(s.parts, (size_t)s.n, sizeof *s.parts, compare);
    const int64_t shown = top && top < s.n ? top : s.n;
    if (c->json)
      print_json(&s, shown);
    else
      print_text(&s, shown, &c->term);
  }
  free(s.parts);
  att_capture_free(s.row);
  att_capture_free(s.values);
  att_session_free(s.session);
  subject_close(&what);
  return code;
}

const command cmd_dla = {
    .operands = "[PROMPT]",
    .least = 0,
    .most = 1,
    .about = "Direct logit attribution: how much every head, every feed-forward part and the "
             "embedding speak for one token against another, by what they add to the residual "
             "stream themselves. The shares sum to the difference of the logits. What a part does "
             "by way of later ones is not in it.\n\n"
             "  attend dla \"PROMPT\" --target \" Mary\" --vs \" John\"\n"
             "  attend dla \"PROMPT\" -L 4 -H 2  # one head by its source "
             "tokens\n\n"
             "docs/math/lens.md has the formulas.",
    .options = options,
    .run = run,
};
