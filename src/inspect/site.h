/* The sites of one model: which exist, what they are called, how they are
 * shaped. */
#ifndef ATT_INSPECT_SITE_H
#define ATT_INSPECT_SITE_H

#include "attend/sites.h"
#include "model/config.h"

#define ATT_SITE_NAME_BYTES 64
#define ATT_SITE_MAX_NDIM 3

/* A row of sites.inc. */
typedef struct att_site_info {
  const char *name;  /* with {l} if it exists once a layer */
  const char *shape; /* letters, "T H D" */
} att_site_info;
extern const att_site_info att_sites[];

bool att_site_is_per_layer(att_site site);

/* True for sites over pairs of positions: scores and weights, [H,T,S]. */
bool att_site_is_pairs(att_site site);

/* True for cross attention's keys and values: a row for each of the encoder's. */
bool att_site_is_of_text(att_site site);

/* A site in one stack of a model. */
typedef struct att_site_place {
  att_site site;
  bool in_encoder; /* of an encoder-decoder */
  int64_t layer;   /* 0 for a site that does not exist once a layer */
} att_site_place;

/* True if a model of this configuration has the site, in any layer. */
bool att_site_exists(const att_config *config, att_site site, bool in_encoder);

/* The sizes after the positions: of "T H D" {H, D}. Gives their number; for
 * pairs there is none. */
int att_site_row(int64_t out[ATT_SITE_MAX_NDIM], const att_config *config, att_site site);

/* True if the pattern (match.h) is a name of the site there, also one of
 * attend/site_aliases.inc. */
bool att_site_answers(const att_config *config, const att_site_place *place, const char *pattern,
                      size_t bytes);

/* Calls `visit` with each name that the model has, in order, until it answers
 * false. */
typedef bool att_site_visit(const char *name, const att_site_place *place, void *context);
void att_site_each(const att_config *config, att_site_visit *visit, void *context);

#endif
