/* Writing conversations: the rows of chat_formats.inc at work. */
#include "text/chat.h"

#include <stdio.h>
#include <string.h>

#include "base/line.h"
#include "text/chars.h"
#include "text/encoding.h"
#include "text/job.h"
#include "text/tokenizer.h"

struct att_chat_prompt {
  const att_tokenizer *tokenizer;
  const att_chat_format *format;
  att_list text;
  att_list plain; /* att_piece: what messages say, where nothing is special */
};

/* ---- formats ---- */

static const att_chat_format formats[] = {
#define ATT_CHAT(name, flags, start, system0, system1, instead, user0, user1, answer0, answer1,    \
                 prompt)                                                                           \
  {name, flags, start, {system0, system1}, instead, {user0, user1}, {answer0, answer1}, prompt},
#include "text/chat_formats.inc"
#undef ATT_CHAT
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

/* Templates by their fingerprints; several can write the same. */
static const struct {
  uint64_t fingerprint;
  const char *format;
} templates[] = {
#define ATT_CHAT_TEMPLATE(fingerprint, format) {fingerprint, format},
#include "text/chat_templates.inc"
#undef ATT_CHAT_TEMPLATE
};
enum { N_TEMPLATES = sizeof templates / sizeof *templates };

const att_chat_format *att_chat_format_at(int index) {
  return index >= 0 && index < N_FORMATS ? &formats[index] : NULL;
}

const char *att_chat_format_name(int index) {
  const att_chat_format *format = att_chat_format_at(index);
  return format ? format->name : NULL;
}

const att_chat_format *att_chat_format_find(const char *name) {
  for (int i = 0; i < N_FORMATS; i++)
    if (strcmp(formats[i].name, name) == 0) return &formats[i];
  return NULL;
}

const char *att_chat_recognise(uint64_t *out_fingerprint, att_runtime *runtime,
                               const char *chat_template, size_t bytes) {
  uint64_t fingerprint = 0;
  if (runtime && chat_template &&
      att_chat_fingerprint(&fingerprint, runtime, chat_template, bytes) != ATT_OK)
    fingerprint = 0;
  if (out_fingerprint) *out_fingerprint = fingerprint;
  for (int i = 0; i < N_TEMPLATES && fingerprint != 0; i++)
    if (templates[i].fingerprint == fingerprint) return templates[i].format;
  return NULL;
}

const char *att_tokenizer_chat_template(size_t *out_bytes, const att_tokenizer *tokenizer) {
  if (out_bytes) *out_bytes = tokenizer ? tokenizer->chat_template_bytes : 0;
  return tokenizer ? tokenizer->chat_template : NULL;
}

static att_status refuse_name(const char *name) {
  char quoted[64], known[900] = "";
  size_t used = 0;
  for (int i = 0; i < N_FORMATS && used < sizeof known; i++)
    used +=
        (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", formats[i].name);
  return att_fail(ATT_BAD_ARGUMENT, "no chat format is named %s; there are %s",
                  att_quote(quoted, sizeof quoted, name, strlen(name)), known);
}

/* The format by its name, or that of the tokenizer's own template. */
static att_status choose(const att_chat_format **out, const att_tokenizer *t, const char *name) {
  uint64_t fingerprint = 0;
  if (name) {
    *out = att_chat_format_find(name);
    return *out ? ATT_OK : refuse_name(name);
  }
  if (!t->chat_template)
    return att_fail(ATT_NOT_FOUND, "this tokenizer has no chat template, and no format is named");
  ATT_TRY(att_chat_fingerprint(&fingerprint, t->runtime, t->chat_template, t->chat_template_bytes));
  name = att_chat_recognise(NULL, (att_runtime *)(uintptr_t)t->runtime, t->chat_template,
                            t->chat_template_bytes);
  if (!name)
    return att_fail(ATT_UNSUPPORTED,
                    "this chat template (fingerprint %016llx, %zu bytes) is not among those that "
                    "attend knows; name a format if you know which one it writes",
                    (unsigned long long)fingerprint, t->chat_template_bytes);
  *out = att_chat_format_find(name);
  return ATT_OK;
}

/* ---- writing ---- */

/* Text of the format itself, with the tokenizer's names in it. */
static att_status put(att_chat_prompt *p, const char *text) {
  const att_tokenizer *t = p->tokenizer;
  for (; *text; text++) {
    int32_t id = *text == ATT_CHAT_BOS[0] ? t->bos : t->eos;
    if (*text != ATT_CHAT_BOS[0] && *text != ATT_CHAT_EOS[0])
      ATT_TRY(att_list_append(&p->text, text, 1));
    else if (id >= 0)
      ATT_TRY(
          att_list_append(&p->text, t->vocab.entries[id].piece, t->vocab.entries[id].piece_bytes));
  }
  return ATT_OK;
}

/* White space to Python's str.strip(), which the templates call. */
static bool is_space(uint32_t code) {
  return att_char_is_space(code) || (code >= 0x1C && code <= 0x1F);
}

static void trim_head(const char **text, int64_t *n) {
  uint32_t code;
  for (int length; *n > 0; *text += length, *n -= length) {
    length = att_char_next(&code, *text, *n);
    if (!is_space(code)) return;
  }
}

static void trim_tail(const char *text, int64_t *n) {
  uint32_t code;
  for (int length; *n > 0; *n -= length) {
    length = att_char_last(&code, text, *n);
    if (!is_space(code)) return;
  }
}

/* What an earlier answer says once its thoughts are gone. */
static void hide_thought(const char **text, int64_t *n, bool trim_lines) {
  static const char end[] = "</think>";
  const int64_t length = sizeof end - 1;
  int64_t at = *n - length;
  while (at >= 0 && memcmp(*text + at, end, (size_t)length) != 0) at--;
  if (at < 0) return;
  *text += at + length;
  *n -= at + length;
  for (; trim_lines && *n > 0 && **text == '\n'; ++*text) --*n;
}

/* What a message says: plain text. */
static att_status put_message(att_chat_prompt *p, const att_chat_message *m, bool head, bool tail) {
  const char *text = m->text;
  int64_t n = (int64_t)m->bytes;
  if (head) trim_head(&text, &n);
  if (tail) trim_tail(text, &n);
  att_piece piece = {(uint32_t)p->text.n, (uint32_t)(p->text.n + n)};
  ATT_TRY(att_list_append(&p->text, text, n));
  return att_list_append(&p->plain, &piece, 1);
}

static att_status put_system(att_chat_prompt *p, const att_chat_format *f,
                             const att_chat_message *m) {
  bool trim = (f->flags & ATT_CHAT_TRIM_SYSTEM) != 0;
  ATT_TRY(put(p, f->system[0]));
  ATT_TRY(m ? put_message(p, m, trim, trim) : put(p, f->instead));
  return put(p, f->system[1]);
}

static att_status put_user(att_chat_prompt *p, const att_chat_format *f, const att_chat_message *m,
                           const att_chat_message *joined) {
  bool trim = (f->flags & ATT_CHAT_TRIM_USER) != 0;
  ATT_TRY(put(p, f->user[0]));
  if (joined) ATT_TRY(put_system(p, f, joined));
  ATT_TRY(put_message(p, m, trim && !(joined && (f->flags & ATT_CHAT_TRIM_TAIL)), trim));
  return put(p, f->user[1]);
}

static att_status put_answer(att_chat_prompt *p, const att_chat_format *f,
                             const att_chat_message *m) {
  att_chat_message shown = *m;
  bool trim = (f->flags & ATT_CHAT_TRIM_ASSISTANT) != 0;
  int64_t n = (int64_t)m->bytes;
  if (f->flags & ATT_CHAT_HIDE_THOUGHT)
    hide_thought(&shown.text, &n, (f->flags & ATT_CHAT_TRIM_LINES) != 0);
  shown.bytes = (size_t)n;
  ATT_TRY(put(p, f->assistant[0]));
  ATT_TRY(put_message(p, &shown, trim, trim));
  return put(p, f->assistant[1]);
}

static att_status write(att_chat_prompt *p, const att_chat_format *f, const att_chat_message *m,
                        int64_t n) {
  const att_chat_message *system = strcmp(m[0].role, "system") == 0 ? &m[0] : NULL;
  bool joins = system && (f->flags & (ATT_CHAT_JOIN | ATT_CHAT_JOIN_LAST));
  int64_t first = system ? 1 : 0, joined = f->flags & ATT_CHAT_JOIN ? first : n - 1;
  ATT_TRY(put(p, f->start));
  if (!joins && (system || f->instead)) ATT_TRY(put_system(p, f, system));
  for (int64_t i = first; i < n; i++)
    ATT_TRY((i - first) % 2 == 0 ? put_user(p, f, &m[i], joins && i == joined ? system : NULL)
                                 : put_answer(p, f, &m[i]));
  return put(p, f->prompt);
}

/* ---- the conversation ---- */

static att_status check(const att_chat_format *f, const att_chat_message *m, int64_t n) {
  char quoted[64];
  int64_t first = 0, bytes = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!m[i].role || (!m[i].text && m[i].bytes))
      return att_fail(ATT_BAD_ARGUMENT, "message %lld: %s is NULL", (long long)i,
                      m[i].role ? "text" : "role");
    bytes += m[i].bytes < INT32_MAX ? (int64_t)m[i].bytes : INT32_MAX;
    if (bytes >= INT32_MAX / 2)
      return att_fail(ATT_TOO_LARGE, "a conversation of more than %d bytes", INT32_MAX / 2);
    if (i == 0 && strcmp(m[i].role, "system") == 0) {
      first = 1;
      continue;
    }
    const char *wanted = (i - first) % 2 == 0 ? "user" : "assistant";
    if (strcmp(m[i].role, wanted) != 0)
      return att_fail(ATT_BAD_ARGUMENT,
                      "message %lld is of %s, not of %s: one system message may "
                      "begin, then user and assistant take turns",
                      (long long)i, att_quote(quoted, sizeof quoted, m[i].role, strlen(m[i].role)),
                      wanted);
  }
  if ((n - first) % 2 != 1)
    return att_fail(ATT_BAD_ARGUMENT, "the conversation does not end with a user message");
  if (first == 1 && (f->flags & ATT_CHAT_NO_SYSTEM))
    return att_fail(ATT_UNSUPPORTED, "the chat format %s has no place for a system message",
                    f->name);
  return ATT_OK;
}

att_status att_chat_write(att_chat_prompt **out, const att_tokenizer *tokenizer, const char *format,
                          const att_chat_message *messages, int64_t n) {
  if (!out || !tokenizer || !messages)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    !out         ? "out"
                    : !tokenizer ? "tokenizer"
                                 : "messages");
  const att_chat_format *f;
  if (n < 1) return att_fail(ATT_BAD_ARGUMENT, "%lld messages", (long long)n);
  ATT_TRY(choose(&f, tokenizer, format));
  ATT_TRY(check(f, messages, n));
  att_chat_prompt *prompt;
  ATT_TRY(att_alloc((void **)&prompt, tokenizer->runtime, 1, sizeof *prompt, "a conversation"));
  prompt->tokenizer = tokenizer;
  prompt->format = f;
  att_list_init(&prompt->text, tokenizer->runtime, 1);
  att_list_init(&prompt->plain, tokenizer->runtime, sizeof(att_piece));
  att_status status = write(prompt, f, messages, n);
  if (status == ATT_OK)
    *out = prompt;
  else
    att_chat_prompt_free(prompt);
  return status;
}

void att_chat_prompt_free(att_chat_prompt *prompt) {
  if (!prompt) return;
  att_list_free(&prompt->text);
  att_list_free(&prompt->plain);
  att_release(prompt->tokenizer->runtime, prompt, 1, sizeof *prompt);
}

const char *att_chat_text(size_t *out_bytes, const att_chat_prompt *prompt) {
  if (out_bytes) *out_bytes = prompt ? (size_t)prompt->text.n : 0;
  return prompt ? prompt->text.items : NULL;
}

/* What the format writes behind an answer begins with it. */
int32_t att_chat_end(const att_chat_prompt *prompt) {
  const att_vocab *vocab = prompt ? &prompt->tokenizer->vocab : NULL;
  const char *behind = prompt ? prompt->format->assistant[1] : "";
  int32_t found = behind[0] == ATT_CHAT_EOS[0] ? prompt->tokenizer->eos : -1;
  for (int64_t id = 0; prompt && found < 0 && id < vocab->size; id++) {
    const att_entry *entry = &vocab->entries[id];
    if (entry->piece_bytes > 0 && (entry->flags & ATT_TOKEN_SPECIAL) != 0 &&
        strncmp(behind, entry->piece, entry->piece_bytes) == 0)
      found = (int32_t)id;
  }
  return found;
}

att_status att_chat_encode(att_encoding **out, const att_chat_prompt *prompt) {
  if (!out || !prompt) return att_fail(ATT_BAD_ARGUMENT, "%s is NULL", out ? "prompt" : "out");
  return att_encode_except(out, prompt->tokenizer, prompt->text.items, (size_t)prompt->text.n,
                           prompt->plain.items, prompt->plain.n);
}
