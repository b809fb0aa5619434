/* subject.c — opens a model and turns a prompt into token ids. */
#include "subject.h"

#include <stdio.h>
#include <string.h>

#include "attend/status.h"

int subject_open_model(subject *s, const cli *c) {
  int code = cli_runtime(&s->runtime, c);
  if (code != CLI_OK) return code;
  att_open_options options;
  att_open_options_init(&options);
  options.tokenizer_path = s->tokenizer_path;
  if (att_model_open(&s->model, s->runtime, s->model_path, &options) != ATT_OK)
    return cli_fail_status(c);
  s->tokenizer = att_model_tokenizer(s->model);
  return CLI_OK;
}

static int check_operands(subject *s, const cli *c, int n, char **operands) {
  if (s->given_ids.n > 0 && n > 0) return cli_usage(c, "--ids and a PROMPT exclude each other");
  if (s->given_ids.n > 0) return CLI_OK;
  if (n == 0 && s->model_path)
    return cli_usage(c, "needs a PROMPT (\"\" for none) or --ids (attend help %s)", c->command);
  s->prompt = n > 0 ? operands[0] : SUBJECT_EXAMPLE;
  return CLI_OK;
}

int subject_open(subject *s, const cli *c, int n, char **operands) {
  int code = check_operands(s, c, n, operands);
  if (code == CLI_OK) code = subject_open_model(s, c);
  if (code != CLI_OK) return code;
  if (!s->prompt) {
    s->ids = s->given_ids.ids;
    s->n = s->given_ids.n;
    return CLI_OK;
  }
  if (!s->tokenizer)
    return cli_fail(c, "%s has no tokenizer: give one with -z, or tokens with --ids",
                    att_model_describe(s->model)->name);
  if (att_encode(&s->encoding, s->tokenizer, s->prompt, strlen(s->prompt), NULL) != ATT_OK)
    return cli_fail_status(c);
  s->ids = s->encoding->ids;
  s->n = s->encoding->n;
  if (s->n == 0) return cli_fail(c, "the prompt has no tokens and this model adds none");
  return CLI_OK;
}

void subject_close(subject *s) {
  att_encoding_free(s->encoding);
  att_model_close(s->model);
  att_runtime_free(s->runtime);
}

label subject_label(const subject *s, const term *t, int32_t id, int most) {
  const char *bytes;
  size_t n;
  if (s->tokenizer && att_tokenizer_bytes(&bytes, &n, s->tokenizer, id) == ATT_OK) {
    if (!att_tokenizer_is_special(s->tokenizer, id)) return label_of(t, bytes, n, most);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, bytes);
    return label_name(t, name, most);
  }
  char number[16];
  snprintf(number, sizeof number, "#%d", (int)id);
  return label_name(t, number, most);
}
