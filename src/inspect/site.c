/* Sites of a model by the table of sites.inc. */
#include "inspect/site.h"

#include <string.h>

#include "model/layer_name.h"

const att_site_info att_sites[] = {
#define ATT_SITE(name, value, text, shape, doc) [value] = {text, shape},
#include "attend/sites.inc"
#undef ATT_SITE
};

bool att_site_is_per_layer(att_site site) { return strstr(att_sites[site].name, "{l}") != NULL; }

bool att_site_is_pairs(att_site site) { return !strcmp(att_sites[site].shape, "H T S"); }

bool att_site_exists(const att_config *config, att_site site) {
  switch (site) {
  case ATT_SITE_POS_EMBED: return config->position == ATT_POSITION_LEARNED;
  case ATT_SITE_RESID_MID:
  case ATT_SITE_LN2:
  case ATT_SITE_MLP_PRE:
  case ATT_SITE_MLP_POST:
  case ATT_SITE_MLP_OUT: return config->ffn != ATT_FFN_NONE;
  default: return true;
  }
}

static int64_t size_of(const att_config *config, char letter) {
  switch (letter) {
  case 'H': return config->heads;
  case 'G': return config->kv_heads;
  case 'D': return config->head_dim;
  case 'C': return config->width;
  case 'F': return config->ffn_width;
  case 'V': return config->vocab;
  default: return 0;
  }
}

int att_site_row(int64_t out[ATT_SITE_MAX_NDIM], const att_config *config, att_site site) {
  int n = 0;
  if (att_site_is_pairs(site)) return 0;
  for (const char *letter = att_sites[site].shape + 1; *letter; letter++)
    if (*letter != ' ') out[n++] = size_of(config, *letter);
  return n;
}

void att_site_each(const att_config *config, att_site_visit *visit, void *context) {
  char name[ATT_SITE_NAME_BYTES];
  for (int64_t layer = -1; layer < config->layers; layer++)
    for (att_site site = 0; site < ATT_SITE_COUNT; site++) {
      bool here = att_site_is_per_layer(site) == (layer >= 0);
      if (!here || !att_site_exists(config, site)) continue;
      if (!att_layer_name_write(name, sizeof name, att_sites[site].name, layer)) continue;
      if (!visit(name, site, layer >= 0 ? layer : 0, context)) return;
    }
}
