/* pair_judge.c — see the header. */
#include "pair_judge.h"

#include <stdlib.h>
#include <string.h>

#include "attend/score.h"
#include "attend/status.h"
#include "memory.h"

static att_encoding *encode(const att_tokenizer *tokenizer, const char *prefix, const char *text) {
  att_encoding *e = NULL;
  size_t n = strlen(prefix), m = strlen(text);
  char *whole = memory_get(n + m + 1, 1);
  memcpy(whole, prefix, n);
  memcpy(whole + n, text, m);
  if (att_encode(&e, tokenizer, whole, n + m, NULL) != ATT_OK) e = NULL;
  free(whole);
  return e;
}

/* The sum over tokens from … of one text, the ones before being read. */
static att_status score(double *sum, double *logs, att_session *session, const att_encoding *e,
                        int64_t from) {
  /* The last shared token is read again: its logits predict the first other one. */
  att_status status = att_session_truncate(session, from - 1);
  if (status == ATT_OK) status = att_session_eval(session, e->ids + from - 1, 1);
  if (status == ATT_OK) status = att_session_score(logs, session, e->ids + from, e->n - from);
  *sum = 0;
  for (int64_t i = from; i < e->n && status == ATT_OK; i++) *sum += logs[i - from];
  return status;
}

static int fail_pair(const cli *c, const pair *p, const char *why) {
  return cli_fail(c, "line %lld: %s", (long long)p->line, why);
}

static int compare(const cli *c, verdict *v, att_session *session, double *logs, const pair *p,
                   const att_encoding *a, const att_encoding *b) {
  int64_t shared = 0, most = a->n < b->n ? a->n : b->n, longest = a->n > b->n ? a->n : b->n;
  while (shared < most && a->ids[shared] == b->ids[shared]) shared++;
  if (shared == 0) return fail_pair(c, p, "nothing stands before the first token: give a prefix");
  if (shared == most) return fail_pair(c, p, "one text is the beginning of the other");
  if (longest > att_session_context(session))
    return fail_pair(c, p, "a text is longer than the model's context");
  att_status status = att_session_truncate(session, 0);
  if (status == ATT_OK && shared > PAIR_ROWS) /* in pieces that logits have room for */
    for (int64_t i = 0; i < shared - 1 && status == ATT_OK; i += PAIR_ROWS)
      status = att_session_eval(session, a->ids + i,
                                shared - 1 - i < PAIR_ROWS ? shared - 1 - i : PAIR_ROWS);
  else if (status == ATT_OK && shared > 1)
    status = att_session_eval(session, a->ids, shared - 1);
  if (status == ATT_OK) status = score(&v->a, logs, session, a, shared);
  if (status == ATT_OK) status = score(&v->b, logs, session, b, shared);
  return status == ATT_OK ? CLI_OK : cli_fail_status(c);
}

int pair_judge(verdict *v, const cli *c, const att_tokenizer *tokenizer, att_session *session,
               double *logs, const pair *p) {
  att_encoding *a = encode(tokenizer, p->fields[PAIR_PREFIX], p->fields[PAIR_A]);
  att_encoding *b = a ? encode(tokenizer, p->fields[PAIR_PREFIX], p->fields[PAIR_B]) : NULL;
  v->bytes_a = (int64_t)strlen(p->fields[PAIR_A]);
  v->bytes_b = (int64_t)strlen(p->fields[PAIR_B]);
  int code = a && b ? compare(c, v, session, logs, p, a, b) : cli_fail_status(c);
  att_encoding_free(a);
  att_encoding_free(b);
  return code;
}
