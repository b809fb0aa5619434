/* trace_gradients.c — names that end in _grad: the way back of one loss, kept by the
 * library (attend/gradients.h), as tensors of a trace. */
#include "trace_gradients.h"

#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "memory.h"

static const char GRAD[] = "_grad";

/* ---- names ---- */

static bool is_gradient(const char *name, size_t bytes) {
  const size_t ending = sizeof GRAD - 1;
  return bytes >= ending && !memcmp(name + bytes - ending, GRAD, ending);
}

bool trace_names_gradients(const char *select) {
  for (size_t n; *select; select += n + (select[n] != 0)) {
    n = strcspn(select, ", ");
    if (is_gradient(select, n)) return true;
  }
  return false;
}

void trace_split(char **values, char **gradients, const char *select) {
  const size_t room = strlen(select) + 2;
  *values = memory_get(room, 1);
  *gradients = memory_get(room, 1);
  (*values)[0] = (*gradients)[0] = 0;
  for (size_t n; *select; select += n + (select[n] != 0)) {
    n = strcspn(select, ", ");
    char *to = is_gradient(select, n) ? *gradients : *values;
    if (n && *to) strcat(to, ",");
    strncat(to, select, n);
  }
}

/* "blocks.3.attn.hook_q_grad" of "blocks.{l}.attn.hook_q" */
static bool is_of_site(const char *name, const char *site) {
  const char *hole = strstr(site, "{l}");
  const size_t before = hole ? (size_t)(hole - site) : strlen(site);
  if (strncmp(name, site, before)) return false;
  name += before;
  if (hole) name += strspn(name, "0123456789");
  const char *rest = hole ? hole + 3 : "";
  return !strncmp(name, rest, strlen(rest)) && !strcmp(name + strlen(rest), GRAD);
}

const char *trace_gradient_axes(const char *name) {
  static const struct {
    const char *name, *axes;
  } sites[] = {
#define ATT_SITE(id, value, text, shape, about) {text, shape},
#include "attend/sites.inc"
#undef ATT_SITE
  };
  for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
    if (is_of_site(name, sites[i].name)) return sites[i].axes;
  return "";
}

/* ---- the way back ---- */

static att_status open_learner(trace_gradients *g, const subject *what) {
  att_learn_options options;
  att_learn_options_init(&options);
  options.batch = options.slices = 1;
  options.length = what->n;
  options.gradients_only = true;
  return att_learner_open(&g->learner, what->runtime, what->model_path, &options);
}

int trace_gradients_open(trace_gradients *g, const cli *c, const subject *what, const char *select,
                         int64_t budget) {
  if (open_learner(g, what) != ATT_OK) return cli_fail_status(c);
  if (att_gradients_create(&g->kept, g->learner, select, budget) != ATT_OK)
    return cli_fail_status(c);
  return CLI_OK;
}

/* Each token is to foretell the next one; or the last one the target, and nothing else. */
int trace_gradients_run(trace_gradients *g, const cli *c, const subject *what, const char *target) {
  int32_t last = -1;
  if (target) {
    int code = subject_token(&last, what, c, "--target", target);
    if (code != CLI_OK) return code;
  } else if (what->n < 2) {
    return cli_usage(c, "one token has no next one to be told: give --target");
  }
  int32_t *targets = memory_get((size_t)what->n, sizeof *targets);
  for (int64_t i = 0; i < what->n; i++)
    targets[i] = i == what->n - 1 ? last : target ? -1 : what->ids[i + 1];
  const att_batch batch = {what->ids, targets, NULL};
  att_step_result result;
  att_status status = att_learner_gradients(g->learner, &batch, &result);
  free(targets);
  if (status != ATT_OK) return cli_fail_status(c);
  g->loss = result.loss;
  g->ran = true;
  return CLI_OK;
}

void trace_gradients_close(trace_gradients *g) {
  att_gradients_free(g->kept);
  att_learner_free(g->learner);
  *g = (trace_gradients){0};
}
