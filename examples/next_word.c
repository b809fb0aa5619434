/* What comes next? Opens hand, the built-in model that is set by hand, reads a text and
 * prints the likeliest next word, and which words the last one looked at in one head.
 *
 *     cc next_word.c $(pkg-config --cflags --libs attend-model)
 *     ./a.out "the cat sat . the"
 */
#include <attend/attend.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
  att_runtime *runtime;
  att_model *model;
  att_session *session;
  att_capture *capture;
  att_encoding *text;
} reader;

#define TRY(call)                                                                                  \
  do {                                                                                             \
    att_status status = (call);                                                                    \
    if (status != ATT_OK) return status;                                                           \
  } while (0)

static att_status read_text(reader *r, const char *text) {
  TRY(att_runtime_create(&r->runtime, NULL));
  TRY(att_model_open_builtin(&r->model, r->runtime, "hand"));
  TRY(att_session_create(&r->session, r->model, NULL));
  TRY(att_capture_create(&r->capture, r->session, "blocks.1.attn.hook_pattern", 0, 0));
  TRY(att_encode(&r->text, att_model_tokenizer(r->model), text, strlen(text), NULL));
  return att_session_eval(r->session, r->text->ids, r->text->n);
}

static void print_word(const reader *r, int32_t id) {
  const char *bytes;
  size_t n;
  if (att_tokenizer_bytes(&bytes, &n, att_model_tokenizer(r->model), id) == ATT_OK)
    printf(" %.*s", (int)n, bytes);
}

static att_status print_next(const reader *r) {
  att_view logits = att_session_logits(r->session);
  const float *logit = logits.data;
  int32_t best = 0;
  for (int32_t id = 1; id < logits.shape[0]; id++)
    if (logit[id] > logit[best]) best = id;
  printf("next:");
  print_word(r, best);

  att_view pattern; /* [H,T,T]: the last row of head 0 */
  TRY(att_capture_get(&pattern, r->capture, "blocks.1.attn.hook_pattern"));
  att_view row = att_view_select(att_view_select(pattern, 0, 0), 0, r->text->n - 1);
  for (int64_t j = 0; j < r->text->n; j++) {
    float weight = ((const float *)row.data)[j * row.stride[0]];
    if (weight < 0.05f) continue;
    printf(", looked at");
    print_word(r, r->text->ids[j]);
    printf(" (%lld) with %.2f", (long long)j, (double)weight);
  }
  printf("\n");
  return ATT_OK;
}

int main(int count, char **arguments) {
  reader r = {0};
  att_status status = read_text(&r, count > 1 ? arguments[1] : "the cat sat . the");
  if (status == ATT_OK) status = print_next(&r);
  if (status != ATT_OK) fprintf(stderr, "%s: %s\n", att_status_name(status), att_message());
  att_encoding_free(r.text);
  att_capture_free(r.capture);
  att_session_free(r.session);
  att_model_close(r.model);
  att_runtime_free(r.runtime);
  return status != ATT_OK;
}
