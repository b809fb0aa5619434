/* What is selected: sites, as names or patterns with * and ? separated by commas, and ranges of
 * heads, positions and keys. */
#ifndef ATT_INSPECT_SELECTION_H
#define ATT_INSPECT_SELECTION_H

#include "attend/capture.h"
#include "inspect/site.h"

bool att_selection_has(const att_config *config, const char *select, const att_site_place *place);

/* NOT_FOUND for a pattern that matches no site of the model, with the nearest
 * names; BAD_ARGUMENT if nothing is selected at all. */
att_status att_selection_check(const att_config *config, const char *select);

/* BAD_ARGUMENT for a range, {0, 0} apart, that is empty or not within 0 … count-1. */
att_status att_range_check(att_range range, const char *what, int64_t count);

/* True for what lies in a range; {0, 0} has everything. */
bool att_range_has(att_range range, int64_t i);

#endif
