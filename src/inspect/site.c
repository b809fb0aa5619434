/* Sites of a model by the table of sites.inc. */
#include "inspect/site.h"

#include <stdio.h>
#include <string.h>

#include "base/match.h"
#include "model/layer_name.h"

const att_site_info att_sites[] = {
#define ATT_SITE(name, value, text, shape, doc) [value] = {text, shape},
#include "attend/sites.inc"
#undef ATT_SITE
};

static const struct alias {
  att_site site;
  const char *name;
} aliases[] = {
#define ATT_SITE_ALIAS(name, text) {ATT_SITE_##name, text},
#include "attend/site_aliases.inc"
#undef ATT_SITE_ALIAS
};

bool att_site_is_per_layer(att_site site) { return strstr(att_sites[site].name, "{l}") != NULL; }

bool att_site_is_pairs(att_site site) { return !strcmp(att_sites[site].shape, "H T S"); }

bool att_site_is_of_text(att_site site) { return att_sites[site].shape[0] == 'S'; }

bool att_site_exists(const att_config *config, att_site site, bool in_encoder) {
  unsigned parts = att_config_parts(config);
  switch (site) {
  case ATT_SITE_POS_EMBED: return parts & ATT_PART_POSITIONS;
  case ATT_SITE_TYPE_EMBED: return parts & ATT_PART_TYPES;
  case ATT_SITE_RESID_MID: return (parts & ATT_PART_ANY_FFN) && !config->parallel;
  case ATT_SITE_LN2:
  case ATT_SITE_MLP_OUT: return parts & ATT_PART_ANY_FFN;
  case ATT_SITE_MLP_PRE:
  case ATT_SITE_MLP_POST: return parts & ATT_PART_FFN;
  case ATT_SITE_LN1_POST: return parts & ATT_PART_NORM_AFTER;
  case ATT_SITE_LN2_POST: return (parts & ATT_PART_NORM_AFTER) && (parts & ATT_PART_ANY_FFN);
  case ATT_SITE_SINK: return parts & ATT_PART_SINKS;
  case ATT_SITE_BIAS: return parts & ATT_PART_RELATIVE;
  case ATT_SITE_ROUTER: return parts & ATT_PART_EXPERTS;
  case ATT_SITE_LN_FINAL: return (parts & ATT_PART_NORM_LAST) || !config->bidirectional;
  case ATT_SITE_LOGITS: return !in_encoder && (config->fill_head || !config->bidirectional);
  case ATT_SITE_CROSS_Q:
  case ATT_SITE_CROSS_K:
  case ATT_SITE_CROSS_V:
  case ATT_SITE_CROSS_RAW_SCORES:
  case ATT_SITE_CROSS_SCALED_SCORES:
  case ATT_SITE_CROSS_SCORES:
  case ATT_SITE_CROSS_PATTERN:
  case ATT_SITE_CROSS_Z:
  case ATT_SITE_CROSS_OUT:
  case ATT_SITE_CROSS_LN:
  case ATT_SITE_CROSS_MID: return config->encoder_layers && !in_encoder;
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
  case 'E': return config->experts;
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

/* The name in a stack: "blocks.0.…" of a model with one is "encoder.0.…" or
 * "decoder.0.…" of one with two. */
static bool write_name(char name[ATT_SITE_NAME_BYTES], const att_config *config,
                       const att_site_place *place, const char *text) {
  char plain[ATT_SITE_NAME_BYTES];
  const char *stack = place->in_encoder ? "encoder" : "decoder";
  const char *tail = plain;
  if (!att_layer_name_write(plain, sizeof plain, text, place->layer)) return false;
  if (!config->encoder_layers || place->site == ATT_SITE_LOGITS) stack = "";
  if (*stack && att_site_is_per_layer(place->site)) tail += strlen("blocks.");
  int n = snprintf(name, ATT_SITE_NAME_BYTES, "%s%s%s", stack, *stack ? "." : "", tail);
  return n < ATT_SITE_NAME_BYTES;
}

bool att_site_answers(const att_config *config, const att_site_place *place, const char *pattern,
                      size_t bytes) {
  char name[ATT_SITE_NAME_BYTES];
  const char *text = att_sites[place->site].name;
  if (write_name(name, config, place, text) && att_glob(pattern, bytes, name)) return true;
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
    if (aliases[i].site == place->site && write_name(name, config, place, aliases[i].name) &&
        att_glob(pattern, bytes, name))
      return true;
  return false;
}

/* The sites of one stack; false once `visit` wants no more. */
static bool each_of_stack(const att_config *config, bool in_encoder, att_site_visit *visit,
                          void *context) {
  char name[ATT_SITE_NAME_BYTES];
  int64_t layers = in_encoder ? config->encoder_layers : config->layers;
  for (int64_t layer = -1; layer < layers; layer++)
    for (att_site site = 0; site < ATT_SITE_COUNT; site++) {
      bool here = att_site_is_per_layer(site) == (layer >= 0);
      if (!here || !att_site_exists(config, site, in_encoder)) continue;
      att_site_place place = {site, in_encoder, layer >= 0 ? layer : 0};
      if (write_name(name, config, &place, att_sites[site].name) && !visit(name, &place, context))
        return false;
    }
  return true;
}

void att_site_each(const att_config *config, att_site_visit *visit, void *context) {
  if (config->encoder_layers && !each_of_stack(config, true, visit, context)) return;
  each_of_stack(config, false, visit, context);
}
