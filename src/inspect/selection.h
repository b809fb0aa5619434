/* A selection of sites: names or patterns with * and ?, separated by commas. */
#ifndef ATT_INSPECT_SELECTION_H
#define ATT_INSPECT_SELECTION_H

#include "inspect/site.h"

bool att_selection_has(const att_config *config, const char *select, const att_site_place *place);

/* NOT_FOUND for a pattern that matches no site of the model, with the nearest
 * names; BAD_ARGUMENT if nothing is selected at all. */
att_status att_selection_check(const att_config *config, const char *select);

#endif
