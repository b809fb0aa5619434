/* two_prompts.c — see the header. */
#include "two_prompts.h"

#include <inttypes.h>
#include <string.h>

static int encode(two_prompts *p, int i, const subject *s, const cli *c, const char *text) {
  if (!s->tokenizer)
    return cli_fail(c, "%s has no tokenizer: give one with -z, or tokens with --ids-a and --ids-b",
                    att_model_describe(s->model)->name);
  if (att_encode(&p->encoding[i], s->tokenizer, text, strlen(text), NULL) != ATT_OK)
    return cli_fail_status(c);
  p->ids[i] = p->encoding[i]->ids;
  p->n[i] = p->encoding[i]->n;
  if (p->n[i] == 0) return cli_fail(c, "a prompt has no tokens and this model adds none");
  return CLI_OK;
}

int two_prompts_open(two_prompts *p, const subject *s, const cli *c, int n, char **operands) {
  const bool given = p->given[0].n > 0 && p->given[1].n > 0;
  if (given ? n > 0 : n < 2 || p->given[0].n > 0 || p->given[1].n > 0)
    return cli_usage(c, "needs two prompts, A and B, or --ids-a and --ids-b");
  int code = CLI_OK;
  for (int i = 0; i < 2 && code == CLI_OK; i++) {
    p->ids[i] = p->given[i].ids;
    p->n[i] = p->given[i].n;
    if (!given) code = encode(p, i, s, c, operands[i]);
    const int64_t most = att_model_describe(s->model)->context;
    if (code == CLI_OK && p->n[i] > most)
      code = cli_fail(c, "%c has %" PRId64 " tokens, the context holds %" PRId64, "AB"[i],
                      p -> n[i], most);
  }
  return code;
}

void two_prompts_close(two_prompts *p) {
  for (int i = 0; i < 2; i++) att_encoding_free(p->encoding[i]);
}
