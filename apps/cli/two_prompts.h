/* two_prompts.h — the prompts A and B of commands that compare two runs: as texts, or as
 * token ids for a model without a tokenizer. */
#ifndef ATTEND_CLI_TWO_PROMPTS_H
#define ATTEND_CLI_TWO_PROMPTS_H

#include "subject.h"

typedef struct two_prompts {
  id_list given[2]; /* --ids-a, --ids-b */
  att_encoding *encoding[2];
  const int32_t *ids[2];
  int64_t n[2]; /* at least 1 */
} two_prompts;

/* Rows for a command's table of options. */
#define TWO_PROMPTS_OPTIONS(p)                                                                     \
  {"ids-a", 0, OPTION_IDS, &(p).given[0], "1,2,3", 0, 0, "token ids in place of A"}, {             \
    "ids-b", 0, OPTION_IDS, &(p).given[1], "1,2,3", 0, 0, "token ids in place of B"                \
  }

/* Both prompts, of a model that is open: operands are A and B, or none with ids. Returns an
 * exit code, after a complaint if it is not 0; two_prompts_close follows in any case. */
int two_prompts_open(two_prompts *p, const subject *s, const cli *c, int n, char **operands);
void two_prompts_close(two_prompts *p);

#endif
