/* subject.c — opens a model and turns a prompt into token ids. */
#include "subject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "memory.h"
#include "progress.h"

static att_status open_model(subject *s, const att_open_options *options) {
  if (s->builtin && !s->model_path)
    return att_model_open_builtin(&s->model, s->runtime, s->builtin);
  return att_model_open(&s->model, s->runtime, s->model_path, options);
}

int subject_open_model(subject *s, const cli *c) {
  int code = cli_runtime(&s->runtime, c);
  if (code != CLI_OK) return code;
  att_open_options options;
  att_open_options_init(&options);
  options.tokenizer_path = s->tokenizer_path;
  options.f32_weights = s->f32_weights;
  progress bar = progress_begin(c, "loading");
  options.progress = progress_show;
  options.payload = &bar;
  att_status status = open_model(s, &options);
  /* Token ids, sizes and costs need no tokenizer; who does will miss it later. */
  if (status == ATT_NOT_FOUND && !s->tokenizer_path) {
    options.without_tokenizer = true;
    status = open_model(s, &options);
  }
  progress_end(&bar);
  if (status != ATT_OK) return cli_fail_status(c);
  s->tokenizer = att_model_tokenizer(s->model);
  return CLI_OK;
}

int subject_open_tokenizer(subject *s, const cli *c) {
  if (s->model_path || !s->tokenizer_path) {
    int code = subject_open_model(s, c);
    if (code == CLI_OK && !s->tokenizer)
      return cli_fail(c, "%s has no tokenizer: give one with -z",
                      att_model_describe(s->model)->name);
    return code;
  }
  int code = cli_runtime(&s->runtime, c);
  if (code != CLI_OK) return code;
  if (att_tokenizer_open(&s->own_tokenizer, s->runtime, s->tokenizer_path, 0) != ATT_OK)
    return cli_fail_status(c);
  s->tokenizer = s->own_tokenizer;
  return CLI_OK;
}

/* All bytes of a file, whatever they are. */
static int read_prompt(subject *s, const cli *c) {
  enum { PIECE = 1 << 16, LARGEST = 1 << 28 };
  bool standard = !strcmp(s->file_path, "-");
  errno = 0;
  FILE *file = standard ? stdin : fopen(s->file_path, "rb");
  if (!file) return cli_fail(c, "%s: %s", s->file_path, strerror(errno));
  size_t got = 1;
  while (got > 0 && s->prompt_bytes < LARGEST) {
    s->file = memory_resize(s->file, s->prompt_bytes + PIECE, 1);
    got = fread(s->file + s->prompt_bytes, 1, PIECE, file);
    s->prompt_bytes += got;
  }
  bool failed = ferror(file);
  if (!standard) fclose(file);
  if (failed) return cli_fail(c, "%s: %s", s->file_path, strerror(errno));
  if (s->prompt_bytes >= LARGEST)
    return cli_fail(c, "%s: more than %d bytes", s->file_path, LARGEST);
  if (s->prompt_bytes > 0 && s->file[s->prompt_bytes - 1] == '\n') s->prompt_bytes--;
  s->prompt = s->file;
  return CLI_OK;
}

int subject_read_text(subject *s, const cli *c, int n, char **operands) {
  if (s->file_path && n > 0) return cli_usage(c, "a text and --file exclude each other");
  if (s->file_path) return read_prompt(s, c);
  s->prompt = n > 0 ? operands[0] : NULL;
  s->prompt_bytes = n > 0 ? strlen(operands[0]) : 0;
  return CLI_OK;
}

/* What to look at when there is no prompt: built-in models at what they were made for. */
static const char *example_of(const char *model) {
  static const struct {
    const char *model, *prompt;
  } examples[] = {{"story", "Maya lent Ravi her notebook. Ravi lent Maya"},
                  {"hand", "Ada Lovelace met Alan Turing . Ada"}};
  if (!model) model = att_model_builtin_name(0);
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
    if (strcmp(model, examples[i].model) == 0) return examples[i].prompt;
  return NULL;
}

static int find_prompt(subject *s, const cli *c, int n, char **operands) {
  if ((s->given_ids.n > 0) + (s->file_path != NULL) + (n > 0) > 1)
    return cli_usage(c, "PROMPT, --ids and --file exclude each other");
  if (s->given_ids.n > 0) return CLI_OK;
  if (s->file_path) return read_prompt(s, c);
  const char *example = example_of(s->model_path);
  if (n == 0 && !example)
    return cli_usage(c, "needs a PROMPT (\"\" for none), --ids or --file (attend help %s)",
                     c->command);
  s->prompt = n > 0 ? operands[0] : example;
  s->prompt_bytes = strlen(s->prompt);
  return CLI_OK;
}

int subject_open(subject *s, const cli *c, int n, char **operands) {
  int code = find_prompt(s, c, n, operands);
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
  if (att_encode(&s->encoding, s->tokenizer, s->prompt, s->prompt_bytes, NULL) != ATT_OK)
    return cli_fail_status(c);
  s->ids = s->encoding->ids;
  s->n = s->encoding->n;
  if (s->n == 0) return cli_fail(c, "the prompt has no tokens and this model adds none");
  return CLI_OK;
}

void subject_close(subject *s) {
  att_encoding_free(s->encoding);
  free(s->file);
  att_tokenizer_free(s->own_tokenizer);
  att_model_close(s->model);
  att_runtime_free(s->runtime);
}

/* True of the piece <0x2C>, which stands for a byte that no other piece spells. */
static bool is_fallback(const subject *s, int32_t id) {
  const char *piece;
  size_t n;
  return att_tokenizer_piece(&piece, &n, s->tokenizer, id) == ATT_OK && n == 6 &&
         !memcmp(piece, "<0x", 3) && piece[5] == '>';
}

bool subject_find_token(int32_t *out, const subject *s, const char *blank, const char *text) {
  const size_t begin = strlen(blank), n = strlen(text);
  int32_t fallback = -1;
  for (int32_t id = 0; id < att_tokenizer_size(s->tokenizer); id++) {
    const char *bytes;
    size_t size;
    if (att_tokenizer_is_special(s->tokenizer, id)) continue;
    if (att_tokenizer_bytes(&bytes, &size, s->tokenizer, id) != ATT_OK) continue;
    if (size != begin + n || memcmp(bytes, blank, begin) || memcmp(bytes + begin, text, n))
      continue;
    if (size == 1 && is_fallback(s, id)) {
      fallback = id;
      continue;
    }
    *out = id;
    return true;
  }
  if (fallback >= 0) *out = fallback;
  return fallback >= 0;
}

int subject_token(int32_t *out, const subject *s, const cli *c, const char *given_as,
                  const char *text) {
  if (!s->tokenizer) return cli_usage(c, "%s needs a model with a tokenizer", given_as);
  if (subject_find_token(out, s, "", text) || subject_find_token(out, s, " ", text)) return CLI_OK;
  return cli_usage(c, "%s \"%s\" is not one token, nor is it with a blank before it", given_as,
                   text);
}

const char *subject_name(const subject *s) {
  return s->model ? att_model_describe(s->model)->name : s->name;
}

label subject_label(const subject *s, const term *t, int32_t id, int most) {
  const char *bytes;
  size_t n;
  if (s->texts) return label_of(t, s->texts[id], strlen(s->texts[id]), most);
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

void subject_json_ids(json *j, const subject *s, const char *whose, const int32_t *ids, int64_t n) {
  char key[32];
  snprintf(key, sizeof key, "%s_%s", whose, s->texts ? "texts" : "tokens");
  if (!s->texts) {
    json_ints(j, key, ids, n);
    return;
  }
  json_open(j, key, '[');
  for (int64_t i = 0; i < n; i++) json_bytes(j, NULL, s->texts[ids[i]], strlen(s->texts[ids[i]]));
  json_close(j);
}

json subject_json(const subject *s) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_string(&j, "model", subject_name(s));
  if (s->model) json_string(&j, "class", att_runtime_class(s->runtime));
  subject_json_ids(&j, s, "prompt", s->ids, s->n);
  return j;
}

void subject_json_token(json *j, const subject *s, int32_t id) {
  const char *bytes;
  size_t n;
  json_int(j, "id", id);
  if (s->tokenizer && att_tokenizer_bytes(&bytes, &n, s->tokenizer, id) == ATT_OK)
    json_bytes(j, "text", bytes, n);
}
