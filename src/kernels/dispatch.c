/* Chooses a kernel table: the plain definition of a target's class first, then
 * whatever the target does faster on top. A target other than a plain one has
 * to pass the self-test on this very processor before it is used. */
#include "kernels/kernels.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/runtime.h"
#include "kernels/target/targets.h"

typedef struct target {
  const char *name;
  uint32_t bits;
  void (*fill)(att_kernels *table);
  void (*fill_plain)(att_kernels *table); /* the definition of the class */
  bool is_default;
} target;

/* The class's plain table, with hardware fma where the target implies it. */
static void fill_class_fma(att_kernels *table) {
#if defined(__x86_64__)
  if (att_cpu_bits() & ATT_CPU_FMA) {
    att_target_plain_fma(table);
    return;
  }
#endif
  att_target_plain(table);
}

static void fill_class_muladd(att_kernels *table) { att_target_portable(table); }

static const target targets[] = {
#define ATT_TARGET(symbol, name, bits, numerics, is_default)                                       \
  {name, bits, att_target_##symbol, fill_class_##numerics, is_default},
#include "kernels/targets.inc"
#undef ATT_TARGET
};
enum { n_targets = sizeof targets / sizeof targets[0] };

static bool usable(const target *t) { return (att_cpu_bits() & t->bits) == t->bits; }

/* True for the first row of each name. */
static bool is_first(int i) {
  for (int j = 0; j < i; j++)
    if (strcmp(targets[j].name, targets[i].name) == 0) return false;
  return true;
}

static bool name_is_usable(const char *name) {
  for (int i = 0; i < n_targets; i++)
    if (strcmp(targets[i].name, name) == 0 && usable(&targets[i])) return true;
  return false;
}

const char *att_target_name(int i, int *is_usable) {
  for (int t = 0; t < n_targets; t++) {
    if (!is_first(t) || i-- > 0) continue;
    if (is_usable) *is_usable = name_is_usable(targets[t].name);
    return targets[t].name;
  }
  return NULL;
}

static att_status fail_unknown(const char *wanted) {
  char list[128] = "";
  for (int i = 0; i < n_targets; i++) {
    if (!is_first(i) || !name_is_usable(targets[i].name)) continue;
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", targets[i].name);
  }
  bool known = false;
  for (int i = 0; i < n_targets; i++) known |= strcmp(targets[i].name, wanted) == 0;
  return att_fail(ATT_UNSUPPORTED, "kernel target \"%.32s\" %s; usable here: %s", wanted,
                  known ? "needs instructions that this processor lacks" : "is not in this build",
                  list);
}

att_status att_kernels_select(att_kernels *out, const struct att_runtime *runtime,
                              const char *wanted) {
  for (int i = 0; i < n_targets; i++) {
    const target *t = &targets[i];
    if (!usable(t) || !(wanted ? strcmp(t->name, wanted) == 0 : t->is_default)) continue;
    att_kernels plain, table;
    t->fill_plain(&plain);
    table = plain;
    t->fill(&table);
    table.target = t->name;
    const char *wrong = table.tiled ? att_kernels_self_test(&table, &plain) : NULL;
    if (!wrong) {
      *out = table;
      return ATT_OK;
    }
    if (wanted)
      return att_fail(ATT_UNSUPPORTED, "kernel target %s fails its self-test here (%s)", t->name,
                      wrong);
    att_log(runtime, ATT_LOG_WARNING, "kernel target %s fails its self-test (%s) and is not used",
            t->name, wrong);
  }
  return fail_unknown(wanted ? wanted : "(default)");
}
