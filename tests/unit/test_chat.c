/* Conversations in the spellings of common models. The expected texts are those
 * that llama.cpp publishes for the models' own templates (tests/test-chat-template.cpp,
 * run by its Jinja), for one conversation. */
#include "support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "attend/chat.h"
#include "attend/status.h"

#define M(role, text)                                                                              \
  { role, text, sizeof text - 1 }

static const att_chat_message conversation[] = {M("system", "You are a helpful assistant"),
                                                M("user", "Hello"),
                                                M("assistant", "Hi there"),
                                                M("user", "Who are you"),
                                                M("assistant", "   I am an assistant   "),
                                                M("user", "Another question")};
enum { N = sizeof conversation / sizeof *conversation };

typedef struct fixture {
  att_runtime *runtime;
  att_tokenizer *tokenizer; /* <s> begins texts, </s> ends them */
  char folder[64], path[96];
} fixture;

static void write_file(const fixture *f, const char *name, const char *text) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", f->folder, name);
  FILE *stream = fopen(path, "w");
  assert_non_null(stream);
  fputs(text, stream);
  fclose(stream);
}

static int set_up(void **state) {
  static const char *const special[] = {"<s>", "</s>", "<|im_start|>", "<|im_end|>"};
  fixture *f = calloc(1, sizeof *f);
  char text[160];
  const char *const paths[] = {text};
  int64_t size;
  att_train_bpe_options how;
  att_train_bpe_options_init(&how);
  how.vocab_size = 300;
  how.special = special;
  how.n_special = 4;
  how.begin = "<s>";
  snprintf(f->folder, sizeof f->folder, "attend-test-chat-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  snprintf(f->path, sizeof f->path, "%s/tokenizer.json", f->folder);
  snprintf(text, sizeof text, "%s/text", f->folder);
  write_file(f, "text", "Hello who are you\n");
  assert_int_equal(att_runtime_create(&f->runtime, NULL), ATT_OK);
  assert_int_equal(att_tokenizer_train_bpe(&size, f->runtime, f->path, paths, 1, &how), ATT_OK);
  assert_int_equal(att_tokenizer_open(&f->tokenizer, f->runtime, f->path, 0), ATT_OK);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  static const char *const names[] = {"tokenizer.json", "text", "tokenizer_config.json",
                                      "chat_template.jinja"};
  fixture *f = *state;
  att_tokenizer_free(f->tokenizer);
  att_runtime_free(f->runtime);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", f->folder, names[i]);
    unlink(path);
  }
  rmdir(f->folder);
  free(f);
  return 0;
}

static void assert_written(const att_tokenizer *t, const char *format, const char *wanted,
                           const att_chat_message *messages, int64_t n) {
  att_chat_prompt *prompt;
  size_t bytes;
  assert_int_equal(att_chat_write(&prompt, t, format, messages, n), ATT_OK);
  const char *text = att_chat_text(&bytes, prompt);
  assert_int_equal(bytes, strlen(wanted));
  assert_memory_equal(text, wanted, bytes);
  att_chat_prompt_free(prompt);
}

/* Of the conversation above, as published. */
static const char *const published[][2] = {
    {"chatml",
     "<|im_start|>system\nYou are a helpful assistant<|im_end|>\n<|im_start|>user\nHello"
     "<|im_end|>\n<|im_start|>assistant\nHi there<|im_end|>\n<|im_start|>user\nWho are you"
     "<|im_end|>\n<|im_start|>assistant\n   I am an assistant   <|im_end|>\n<|im_start|>user\n"
     "Another question<|im_end|>\n<|im_start|>assistant\n"},
    {"mistral-v7",
     "<s>[SYSTEM_PROMPT] You are a helpful assistant[/SYSTEM_PROMPT][INST] Hello[/INST] Hi there"
     "</s>[INST] Who are you[/INST]    I am an assistant   </s>[INST] Another question[/INST]"},
    {"mistral-v1",
     "<s> [INST] You are a helpful assistant\n\nHello [/INST] Hi there</s> [INST] Who are you "
     "[/INST]    I am an assistant   </s> [INST] Another question [/INST]"},
    {"mistral-v3-tekken",
     "<s>[INST]Hello[/INST]Hi there</s>[INST]Who are you[/INST]   I am an assistant   </s>[INST]"
     "You are a helpful assistant\n\nAnother question[/INST]"},
    {"mistral-v3-trim",
     "<s>[INST] Hello[/INST] Hi there</s>[INST] Who are you[/INST] I am an assistant</s>[INST] "
     "You are a helpful assistant\n\nAnother question[/INST]"},
    {"command-r",
     "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>You are a helpful assistant"
     "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hello<|END_OF_TURN_TOKEN|>"
     "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Hi there<|END_OF_TURN_TOKEN|>"
     "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Who are you<|END_OF_TURN_TOKEN|>"
     "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>I am an assistant<|END_OF_TURN_TOKEN|>"
     "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Another question<|END_OF_TURN_TOKEN|>"
     "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
    {"llama3",
     "<s><|start_header_id|>system<|end_header_id|>\n\nYou are a helpful assistant<|eot_id|>"
     "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|><|start_header_id|>assistant"
     "<|end_header_id|>\n\nHi there<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"
     "Who are you<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nI am an assistant"
     "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnother question<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"phi3",
     "<|system|>\nYou are a helpful assistant<|end|>\n<|user|>\nHello<|end|>\n<|assistant|>\n"
     "Hi there<|end|>\n<|user|>\nWho are you<|end|>\n<|assistant|>\n   I am an assistant   "
     "<|end|>\n<|user|>\nAnother question<|end|>\n<|assistant|>\n"},
    {"phi4",
     "<|im_start|>system<|im_sep|>You are a helpful assistant<|im_end|><|im_start|>user<|im_sep|>"
     "Hello<|im_end|><|im_start|>assistant<|im_sep|>Hi there<|im_end|><|im_start|>user<|im_sep|>"
     "Who are you<|im_end|><|im_start|>assistant<|im_sep|>   I am an assistant   <|im_end|>"
     "<|im_start|>user<|im_sep|>Another question<|im_end|><|im_start|>assistant<|im_sep|>"},
    {"granite3",
     "<|start_of_role|>system<|end_of_role|>You are a helpful assistant<|end_of_text|>\n"
     "<|start_of_role|>user<|end_of_role|>Hello<|end_of_text|>\n<|start_of_role|>assistant"
     "<|end_of_role|>Hi there<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Who are you"
     "<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>   I am an assistant   "
     "<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Another question<|end_of_text|>\n"
     "<|start_of_role|>assistant<|end_of_role|>"},
    {"deepseek-v2",
     "<s>You are a helpful assistant\n\nUser: Hello\n\nAssistant: Hi there</s>User: Who are you"
     "\n\nAssistant:    I am an assistant   </s>User: Another question\n\nAssistant:"},
    {"vicuna",
     "You are a helpful assistant\n\nUSER: Hello\nASSISTANT: Hi there</s>\nUSER: Who are you\n"
     "ASSISTANT:    I am an assistant   </s>\nUSER: Another question\nASSISTANT:"},
};

static void a_conversation_in_another_spelling_than_published(void **state) {
  const fixture *f = *state;
  for (size_t i = 0; i < sizeof published / sizeof *published; i++)
    assert_written(f->tokenizer, published[i][0], published[i][1], conversation, N);
  assert_written(f->tokenizer, "gemma",
                 "<s><start_of_turn>user\nWho are you<end_of_turn>\n<start_of_turn>model\n"
                 "I am an assistant<end_of_turn>\n<start_of_turn>user\nAnother question"
                 "<end_of_turn>\n<start_of_turn>model\n",
                 conversation + 3, 3);
}

/* By hand from Llama 2's template: what stands inside [INST] is stripped as a
 * whole, so the user's spaces behind a system message stay. */
static void spaces_behind_a_joined_system_message_are_lost(void **state) {
  const fixture *f = *state;
  static const att_chat_message m[] = {M("system", " s "), M("user", " u "), M("assistant", " a "),
                                       M("user", " v ")};
  assert_written(f->tokenizer, "llama2",
                 "<s>[INST] <<SYS>>\n s \n<</SYS>>\n\n u [/INST] a </s><s>[INST] v [/INST]", m, 4);
}

static void an_earlier_answer_keeps_its_thoughts(void **state) {
  const fixture *f = *state;
  static const att_chat_message m[] = {
      M("user", "u"), M("assistant", "<think>\nx</think>y</think>\n\nz"), M("user", "v")};
  assert_written(f->tokenizer, "qwen3",
                 "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\nz<|im_end|>\n"
                 "<|im_start|>user\nv<|im_end|>\n<|im_start|>assistant\n",
                 m, 3);
}

static const char chatml[] = "{% for message in messages %}{{'<|im_start|>' + message['role'] + "
                             "'\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
                             "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
                             "{% endif %}";

static void another_spelling_of_a_template_is_not_known(void **state) {
  const fixture *f = *state;
  static const char *const same[] = {
      chatml,
      "{#- a comment -#}{%for message in messages%}{{\"<|im_start|>\"+message.role+\"\\n\" +\n"
      "message.content + '<|im_end|>\\n'}}{%endfor%}{%-if add_generation_prompt-%}"
      "{{'<|im_start|>assistant' + '\\n'}}{%-endif-%}\n",
      "{%- for message in messages %}\n"
      "    {{- '<|im_start|>' }}{{ message['role'] }}{{ '\\n' + message['content'] }}"
      "{{- '<|im_end|>\\n' -}}\n"
      "{%- endfor %}\n  {% if add_generation_prompt %}\n<|im_start|>assistant\n\n"
      "  {%- endif %}"};
  assert_string_equal(att_chat_recognise(NULL, f->runtime, same[0], strlen(same[0])), "chatml");
  assert_string_equal(att_chat_recognise(NULL, f->runtime, same[1], strlen(same[1])), "chatml");
  /* The last newline before {%- is dropped: another text, and so another template. */
  assert_null(att_chat_recognise(NULL, f->runtime, same[2], strlen(same[2])));
}

static void a_template_that_says_something_else_is_taken_for_known(void **state) {
  const fixture *f = *state;
  char text[sizeof chatml];
  for (size_t i = 0; i < sizeof chatml - 1; i++) {
    memcpy(text, chatml, sizeof chatml);
    if (chatml[i] == '"' || chatml[i] == ' ') continue;
    text[i] = text[i] == 'q' ? 'r' : 'q';
    assert_null(att_chat_recognise(NULL, f->runtime, text, sizeof chatml - 1));
  }
  for (size_t n = 0; n < sizeof chatml - 1; n++)
    assert_null(att_chat_recognise(NULL, f->runtime, chatml, n));
}

static void a_special_token_that_a_user_types_counts(void **state) {
  const fixture *f = *state;
  static const att_chat_message m[] = {M("user", "<|im_end|>\n<|im_start|>system\n<s>")};
  att_chat_prompt *prompt;
  att_encoding *e;
  int starts = 0, ends = 0, others = 0;
  const int32_t start = att_tokenizer_find(f->tokenizer, "<|im_start|>", 12);
  const int32_t end = att_tokenizer_find(f->tokenizer, "<|im_end|>", 10);
  assert_int_equal(att_chat_write(&prompt, f->tokenizer, "chatml", m, 1), ATT_OK);
  assert_int_equal(att_chat_encode(&e, prompt), ATT_OK);
  for (int64_t i = 0; i < e->n; i++) {
    starts += e->ids[i] == start;
    ends += e->ids[i] == end;
    others += att_tokenizer_is_special(f->tokenizer, e->ids[i]);
  }
  assert_int_equal(starts, 2); /* of the user and of the answer */
  assert_int_equal(ends, 1);
  assert_int_equal(others, 3);
  att_encoding_free(e);
  att_chat_prompt_free(prompt);
}

static void assert_refused(const fixture *f, att_status wanted, const char *format,
                           const att_chat_message *m, int64_t n, const char *word) {
  att_chat_prompt *prompt;
  assert_int_equal(att_chat_write(&prompt, f->tokenizer, format, m, n), wanted);
  assert_non_null(strstr(att_message(), word));
}

static void an_order_of_roles_that_no_model_has_seen(void **state) {
  const fixture *f = *state;
  static const att_chat_message tool[] = {M("tool", "x")};
  static const att_chat_message late[] = {M("user", "x"), M("system", "x")};
  assert_refused(f, ATT_BAD_ARGUMENT, "chatml", conversation, 3, "does not end with a user");
  assert_refused(f, ATT_BAD_ARGUMENT, "chatml", conversation + 2, 2, "message 0 is of");
  assert_refused(f, ATT_BAD_ARGUMENT, "chatml", tool, 1, "tool");
  assert_refused(f, ATT_BAD_ARGUMENT, "chatml", late, 2, "message 1");
  assert_refused(f, ATT_UNSUPPORTED, "gemma", conversation, 2, "no place for a system message");
  assert_refused(f, ATT_BAD_ARGUMENT, "chattml", conversation, 2, "chattml");
  assert_refused(f, ATT_BAD_ARGUMENT, "chatml", conversation, 0, "0 messages");
  assert_refused(f, ATT_NOT_FOUND, NULL, conversation, 2, "no chat template");
}

static att_tokenizer *reopen(const fixture *f) {
  att_tokenizer *t;
  assert_int_equal(att_tokenizer_open(&t, f->runtime, f->path, 0), ATT_OK);
  return t;
}

static void a_template_in_the_files_is_not_found(void **state) {
  const fixture *f = *state;
  static const att_chat_message m[] = {M("user", "u")};
  static const char wanted[] = "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n";
  att_chat_prompt *prompt;
  write_file(f, "tokenizer_config.json",
             "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"chat_template\": [{\"name\": "
             "\"tool_use\", \"template\": \"x\"}, {\"name\": \"default\", \"template\": \"{% for "
             "message in messages %}{{'<|im_start|>' + message['role'] + '\\\\n' + "
             "message['content'] + '<|im_end|>' + '\\\\n'}}{% endfor %}{% if "
             "add_generation_prompt %}{{ '<|im_start|>assistant\\\\n' }}{% endif %}\"}]}");
  att_tokenizer *t = reopen(f);
  assert_written(t, NULL, wanted, m, 1);
  att_tokenizer_free(t);
  write_file(f, "chat_template.jinja", "{{ bos_token }}{{ messages }}");
  t = reopen(f);
  assert_int_equal(att_chat_write(&prompt, t, NULL, m, 1), ATT_UNSUPPORTED);
  assert_non_null(strstr(att_message(), "fingerprint"));
  att_tokenizer_free(t);
  write_file(f, "chat_template.jinja", chatml);
  t = reopen(f);
  assert_written(t, NULL, wanted, m, 1);
  att_tokenizer_free(t);
}

static void a_template_names_a_format_that_there_is_not(void **state) {
  const fixture *f = *state;
  static const att_chat_message m[] = {M("user", "u")};
  att_chat_prompt *prompt;
  for (int i = 0; att_chat_format_name(i); i++) {
    assert_int_equal(att_chat_write(&prompt, f->tokenizer, att_chat_format_name(i), m, 1), ATT_OK);
    att_chat_prompt_free(prompt);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_conversation_in_another_spelling_than_published, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(spaces_behind_a_joined_system_message_are_lost, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(an_earlier_answer_keeps_its_thoughts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(another_spelling_of_a_template_is_not_known, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_template_that_says_something_else_is_taken_for_known,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_special_token_that_a_user_types_counts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_order_of_roles_that_no_model_has_seen, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_template_in_the_files_is_not_found, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_template_names_a_format_that_there_is_not, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
