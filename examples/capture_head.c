/* capture_head.c — looks at one head of a model: who reads whom.
 *
 *     capture_head [PROMPT [MODEL]]     the default built-in model unless one is named
 *
 * A capture keeps what passes by under the field's names; here the attention
 * weights of layer 1, of which head 0 is printed, a row for each query.
 */
#include <stdio.h>
#include <string.h>

#include "attend/attend.h"

#define SITE "blocks.1.attn.hook_pattern"

static void print_head(const att_view *weights, const char *prompt, const att_encoding *tokens) {
  for (int64_t i = 0; i < tokens->n; i++) {
    const char *from = tokens->source[i] < 0 ? "" : prompt + tokens->begin[i];
    int bytes = tokens->source[i] < 0 ? 0 : (int)(tokens->end[i] - tokens->begin[i]);
    printf("%12.*s", bytes, from);
    for (int64_t j = 0; j <= i; j++)
      printf(
          " %.2f",
          (double)((const float *)weights->data)[i * weights->stride[1] + j * weights->stride[2]]);
    puts("");
  }
}

int main(int argc, char **argv) {
  const char *prompt = argc > 1 ? argv[1] : "river bank", *path = argc > 2 ? argv[2] : NULL;
  att_runtime *runtime = NULL;
  att_model *model = NULL;
  att_session *session = NULL;
  att_capture *capture = NULL;
  att_encoding *tokens = NULL;
  att_view weights;

  att_status status = att_runtime_create(&runtime, NULL);
  if (status == ATT_OK) status = att_model_open(&model, runtime, path, NULL);
  if (status == ATT_OK)
    status = att_encode(&tokens, att_model_tokenizer(model), prompt, strlen(prompt), NULL);
  if (status == ATT_OK) status = att_session_create(&session, model, NULL);
  if (status == ATT_OK) status = att_capture_create(&capture, session, SITE, tokens->n, 0);
  if (status == ATT_OK) status = att_session_eval(session, tokens->ids, tokens->n);
  if (status == ATT_OK) status = att_capture_get(&weights, capture, SITE);
  if (status == ATT_OK)
    print_head(&weights, prompt, tokens);
  else
    fprintf(stderr, "%s\n", att_message());

  att_capture_free(capture);
  att_session_free(session);
  att_encoding_free(tokens);
  att_model_close(model);
  att_runtime_free(runtime);
  return status == ATT_OK ? 0 : 1;
}
