/* patch.h — grids of places that carry a difference, for attend patch. */
#ifndef ATTEND_CLI_PATCH_H
#define ATTEND_CLI_PATCH_H

#include "attend/patch.h"
#include "two_prompts.h"

typedef struct patching {
  const subject *what;
  const two_prompts *prompts; /* A, the clean one, and B */
  att_patch_options options;
  bool attribution;        /* by gradients, not by runs */
  double clean, corrupted; /* logit differences at the ends of A and B */
  int64_t layers, heads;   /* heads: rows of a layer, 1 unless the grid is head by position */
  int64_t rows, columns;
  float *scores; /* [rows,columns] */
} patching;

/* Fills the scores by one way back through B (attribution patching). */
att_status patch_attribute(patching *p);

#endif
