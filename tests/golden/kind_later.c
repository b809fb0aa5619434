/* Kinds that this version of the library has no function for yet. They are
 * counted under what they are, so that nothing passes for done. */
#include <stdio.h>
#include <string.h>

#include "golden.h"

void golden_later(golden_case *c) {
  char reason[128];
  const char *slash = strrchr(c->path, '/');
  const char *op = c->archive ? golden_text(c, "op", NULL) : NULL;
  snprintf(reason, sizeof reason, "%s: not part of this version yet",
           op      ? op
           : slash ? slash + 1
                   : c->path);
  golden_skip_run(c->g, c->path, "", reason);
}
