/* Looking at the way back: names of gradients, and who sees them. */
#include <stdio.h>

#include "model/layer_name.h"
#include "train/learner.h"

void att_gradient_name(char out[ATT_GRADIENT_NAME], att_site site, int64_t layer) {
  static const char *const names[] = {
#define ATT_SITE(name, value, text, shape, doc) text,
#include "attend/sites.inc"
#undef ATT_SITE
  };
  char name[ATT_PARAMETER_NAME];
  (void)att_layer_name_write(name, sizeof name, names[site], layer);
  snprintf(out, ATT_GRADIENT_NAME, "%s_grad", name);
}

void att_learner_attach(att_learner *learner, att_tap *tap) {
  tap->next = learner->taps;
  learner->taps = tap;
}

void att_learner_detach(att_learner *learner, const att_tap *tap) {
  att_tap **at = &learner->taps;
  while (*at && *at != tap) at = &(*at)->next;
  if (*at) *at = tap->next;
}

static void show(void *payload, att_site site, int64_t layer, const att_view *value) {
  const att_learner *learner = payload;
  char name[ATT_GRADIENT_NAME];
  att_gradient_name(name, site, layer);
  learner->see(name, value, learner->see_payload);
}

void att_learner_observe(att_learner *learner, att_gradient_fn *see, void *payload) {
  if (!learner) return;
  att_learner_detach(learner, &learner->tap);
  learner->see = see;
  learner->see_payload = payload;
  learner->tap = (att_tap){.sites = ATT_TAP_ALL, .value = show, .payload = learner};
  if (see) att_learner_attach(learner, &learner->tap);
}
