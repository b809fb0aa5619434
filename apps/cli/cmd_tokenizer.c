/* cmd_tokenizer.c — attend tokenizer: learns one from text, or describes one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/chat.h"
#include "attend/status.h"
#include "json_out.h"
#include "progress.h"
#include "subject.h"
#include "table.h"

enum { MOST_FILES = 4096 };

static subject what;
static const char *target, *pattern, *template_path, *format;
static att_train_bpe_options how;
static int64_t vocab_size = 32000, min_count = 2;
static text_list special;

static const option options[] = {
    SUBJECT_MODEL_OPTIONS(what),
    {"output", 'o', OPTION_TEXT, &target, "FILE", 0, 0,
     "train: the tokenizer.json to write; must be given"},
    {"vocab-size", 'v', OPTION_INT, &vocab_size, "N", 256, 1 << 24,
     "train: ids in all, the 256 bytes and special tokens included; default 32000"},
    {"min-count", 0, OPTION_INT, &min_count, "N", 1, 1 << 30,
     "train: a pair that occurs less often is not merged; default 2"},
    {"pattern", 0, OPTION_TEXT, &pattern, "P", 0, 0,
     "train: what a word is: gpt-2 (default), llama3, gpt-4o, tekken, or a regular expression"},
    {"special", 0, OPTION_TEXTS, &special, "NAME", 0, 0,
     "train: a special token, such as <|endoftext|>; may be given several times"},
    {"begin", 0, OPTION_TEXT, &how.begin, "NAME", 0, 0,
     "train: the special token that begins every text; default none"},
    {"template", 0, OPTION_TEXT, &template_path, "FILE", 0, 0,
     "chat: a chat template in place of the tokenizer's own"},
    {"format", 0, OPTION_TEXT, &format, "NAME", 0, 0,
     "chat: writes this format, whatever the template says; a wrong NAME lists them"},
    {0}};

/* ---- train ---- */

static void report_training(const cli *c, int64_t size) {
  if (c->json) {
    json j = json_begin(stdout);
    json_open(&j, NULL, '{');
    json_string(&j, "target", target);
    json_int(&j, "vocab_size", size);
    json_close(&j);
    json_end(&j);
  }
  cli_note(c, "%s is written: %lld tokens", target, (long long)size);
  if (size < vocab_size)
    cli_note(c, "the text has too little to merge for %lld", (long long)vocab_size);
}

/* A name is one word in lower case; a regular expression is anything else. */
static int choose_pattern(const cli *c) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  if (!pattern || strcmp(pattern, "gpt-2") == 0) return CLI_OK;
  how.pattern = att_word_pattern(pattern);
  if (how.pattern) return CLI_OK;
  if (strspn(pattern, letters) == strlen(pattern))
    return cli_usage(c,
                     "--pattern: no pattern is named \"%s\"; gpt-2, llama3, gpt-4o and tekken "
                     "are, and a regular expression may be given",
                     pattern);
  how.pattern = pattern;
  return CLI_OK;
}

static int train(const cli *c, int n, char **files) {
  if (n == 0) return cli_usage(c, "train: which text files?");
  if (!target) return cli_usage(c, "train: where to? Give -o FILE");
  int64_t size = 0, least = 256 + special.n;
  if (vocab_size < least)
    return cli_usage(c, "--vocab-size: at least %lld with %lld special tokens", (long long)least,
                     (long long)special.n);
  const char *begin = how.begin;
  att_train_bpe_options_init(&how);
  int code = choose_pattern(c);
  if (code == CLI_OK) code = cli_runtime(&what.runtime, c);
  if (code != CLI_OK) return code;
  progress bar = progress_begin_stoppable(c, "training");
  how.vocab_size = vocab_size;
  how.min_count = min_count;
  how.special = special.texts;
  how.n_special = special.n;
  how.begin = begin;
  how.progress = progress_show;
  how.payload = &bar;
  att_status status =
      att_tokenizer_train_bpe(&size, what.runtime, target, (const char *const *)files, n, &how);
  progress_end(&bar);
  if (status != ATT_OK) return cli_fail_status(c);
  report_training(c, size);
  return CLI_OK;
}

/* ---- info ---- */

typedef struct facts {
  int64_t size, special, ends;
  int32_t end[8]; /* the first of them */
} facts;

static facts count(void) {
  facts f = {.size = att_tokenizer_size(what.tokenizer)};
  for (int32_t id = 0; id < f.size; id++) {
    f.special += att_tokenizer_is_special(what.tokenizer, id);
    if (!att_tokenizer_is_end(what.tokenizer, id)) continue;
    if (f.ends < 8) f.end[f.ends] = id;
    f.ends++;
  }
  return f;
}

static void row_token(const cli *c, table *rows, const char *name, int32_t id) {
  table_head(rows, name);
  const label l = subject_label(&what, &c->term, id, 32);
  if (id < 0)
    table_put(rows, INK_FAINT, "none");
  else
    table_put(rows, INK_OFF, "%d %s", (int)id, l.text);
}

static void print_info(const cli *c, const facts *f) {
  table *rows = table_new(&c->term, "ll");
  table_head(rows, "kind");
  table_put(rows, INK_OFF, "%s", att_tokenizer_kind(what.tokenizer));
  table_head(rows, "tokens");
  table_put(rows, INK_OFF, "%lld, %lld of them special", (long long)f->size, (long long)f->special);
  row_token(c, rows, "begins a text", att_tokenizer_bos(what.tokenizer));
  for (int64_t i = 0; i < f->ends && i < 8; i++)
    row_token(c, rows, i ? "" : "ends a text", f->end[i]);
  if (f->ends == 0) row_token(c, rows, "ends a text", -1);
  table_print(rows, 0);
}

static void print_info_json(const facts *f) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "kind", att_tokenizer_kind(what.tokenizer));
  json_int(&j, "vocab_size", f->size);
  json_int(&j, "special", f->special);
  int32_t bos = att_tokenizer_bos(what.tokenizer);
  if (bos < 0)
    json_null(&j, "bos");
  else
    json_int(&j, "bos", bos);
  json_ints(&j, "ends", f->end, f->ends < 8 ? f->ends : 8);
  json_close(&j);
  json_end(&j);
}

static int info(const cli *c, int n, char **files) {
  if (n > 1) return cli_usage(c, "info: one tokenizer at a time");
  if (n == 1 && what.tokenizer_path) return cli_usage(c, "the tokenizer is given twice");
  if (n == 1) what.tokenizer_path = files[0];
  int code = subject_open_tokenizer(&what, c);
  if (code != CLI_OK) return code;
  facts f = count();
  if (c->json)
    print_info_json(&f);
  else
    print_info(c, &f);
  return CLI_OK;
}

/* ---- chat ---- */

/* "user:Hello" as a message. */
static int read_message(const cli *c, att_chat_message *out, char *operand) {
  char *colon = strchr(operand, ':');
  if (!colon) return cli_usage(c, "chat: a message is ROLE:TEXT, not \"%s\"", operand);
  *colon = 0;
  *out = (att_chat_message){operand, colon + 1, strlen(colon + 1)};
  return CLI_OK;
}

/* The template that is asked about; a file's is in what.file then. */
static int find_template(const cli *c, const char **text, size_t *bytes) {
  *text = att_tokenizer_chat_template(bytes, what.tokenizer);
  if (!template_path) return CLI_OK;
  what.file_path = template_path;
  int code = subject_read_text(&what, c, 0, NULL);
  *text = what.prompt;
  *bytes = what.prompt_bytes;
  return code;
}

static void print_chat(const cli *c, const char *name, uint64_t fingerprint,
                       const att_chat_prompt *prompt, const att_encoding *e) {
  size_t bytes = 0;
  const char *text = att_chat_text(&bytes, prompt);
  char number[24];
  snprintf(number, sizeof number, "%016llx", (unsigned long long)fingerprint);
  if (!c->json) {
    cli_note(c, "format %s, template %s", name ? name : "not known", fingerprint ? number : "none");
    if (prompt) text_print(stdout, &c->term, text, bytes);
    if (prompt) putchar('\n');
    return;
  }
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "format", name);
  json_string(&j, "fingerprint", fingerprint ? number : NULL);
  if (prompt) json_bytes(&j, "text", text, bytes);
  if (e) json_ints(&j, "ids", e->ids, e->n);
  json_close(&j);
  json_end(&j);
}

static int write_chat(const cli *c, int n, char **operands) {
  att_chat_message messages[MOST_FILES];
  att_chat_prompt *prompt = NULL;
  att_encoding *encoding = NULL;
  const char *text;
  size_t bytes;
  uint64_t fingerprint;
  int code = CLI_OK;
  for (int i = 0; i < n && code == CLI_OK; i++) code = read_message(c, &messages[i], operands[i]);
  if (code == CLI_OK) code = subject_open_tokenizer(&what, c);
  if (code == CLI_OK) code = find_template(c, &text, &bytes);
  if (code != CLI_OK) return code;
  const char *name = att_chat_recognise(&fingerprint, what.runtime, text, bytes);
  if (format) name = format;
  if (n > 0) {
    const char *wanted = template_path ? name : format;
    if (template_path && !name)
      return cli_fail(c, "%s is a template that is not known (fingerprint %016llx)", template_path,
                      (unsigned long long)fingerprint);
    if (att_chat_write(&prompt, what.tokenizer, wanted, messages, n) != ATT_OK ||
        att_chat_encode(&encoding, prompt) != ATT_OK)
      code = cli_fail_status(c);
  }
  if (code == CLI_OK) print_chat(c, name, fingerprint, prompt, encoding);
  att_encoding_free(encoding);
  att_chat_prompt_free(prompt);
  return code;
}

static int run(const cli *c, int n, char **operands) {
  int code;
  if (strcmp(operands[0], "train") == 0)
    code = train(c, n - 1, operands + 1);
  else if (strcmp(operands[0], "info") == 0)
    code = info(c, n - 1, operands + 1);
  else if (strcmp(operands[0], "chat") == 0)
    code = write_chat(c, n - 1, operands + 1);
  else
    code = cli_usage(c, "train, info or chat, not \"%s\"", operands[0]);
  subject_close(&what);
  return code;
}

const command cmd_tokenizer = {
    .operands = "train|info|chat [FILE…|MESSAGE…]",
    .least = 1,
    .most = MOST_FILES,
    .about =
        "train: learns a byte-level BPE vocabulary from text FILEs and writes it as a "
        "tokenizer.json, which Hugging Face's library reads too. The most frequent pair of "
        "neighbours becomes a token, again and again; of equally frequent ones that with the "
        "smaller ids: the same files and options give the same bytes, on any number of threads. "
        "Special tokens in the text end words and are not learned from.\n\n"
        "info: describes a tokenizer (tokenizer.json, a folder, a .gguf; with -m that of a "
        "model). To see it at work: attend tokenize.\n\n"
        "chat: the text in which a model reads a conversation of MESSAGEs, each ROLE:TEXT, by the "
        "tokenizer's chat template; without messages only what that template is.\n\n"
        "    attend tokenizer train book.txt -v 1000 --special '<|endoftext|>' -o tokenizer.json\n"
        "    attend tokenize -z tokenizer.json \"To be, or not to be\"\n"
        "    attend tokenizer chat -m MODEL system:'Be brief.' user:Hello",
    .options = options,
    .run = run,
};
