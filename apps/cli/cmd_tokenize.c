/* cmd_tokenize.c — attend tokenize: a text as tokens, or tokens as a text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "json_out.h"
#include "memory.h"
#include "subject.h"
#include "table.h"

enum { TOKEN_ROOM = 32 };

static subject what;
static bool bare, parse_special, decode;

static const option options[] = {
    SUBJECT_MODEL_OPTIONS(what),
    {"no-special", 0, OPTION_FLAG, &bare, "", 0, 0, "add no BOS or other special tokens"},
    {"parse-special", 0, OPTION_FLAG, &parse_special, "", 0, 0,
     "a special token's name in TEXT, such as <s>, becomes that token"},
    {"decode", 'd', OPTION_FLAG, &decode, "", 0, 0,
     "TEXT is token ids separated by commas: prints what they stand for"},
    {0}};

static void show_bytes(char *out, size_t room, const char *bytes, size_t n) {
  size_t used = 0;
  for (size_t i = 0; i < n && used + 4 < room; i++)
    used += (size_t)snprintf(out + used, room - used, i ? " %02X" : "%02X",
                             (unsigned)(unsigned char)bytes[i]);
  out[used] = 0;
}

/* Bytes of a token; none if the tokenizer does not know the id. */
static const char *bytes_of(int32_t id, size_t *n) {
  const char *bytes = "";
  *n = 0;
  if (att_tokenizer_bytes(&bytes, n, what.tokenizer, id) != ATT_OK) *n = 0;
  return bytes;
}

static void print_table(const cli *c, const att_encoding *e) {
  table *rows = table_new(&c->term, "rrlll");
  const char *const heads[] = {"", "id", "token", "span", "bytes"};
  for (int i = 0; i < 5; i++) table_head(rows, heads[i]);
  for (int64_t i = 0; i < e->n; i++) {
    char hex[64];
    size_t n;
    const char *bytes = bytes_of(e->ids[i], &n);
    const label token = subject_label(&what, &c->term, e->ids[i], TOKEN_ROOM);
    bool special = att_tokenizer_is_special(what.tokenizer, e->ids[i]);
    show_bytes(hex, sizeof hex, bytes, n);
    table_put(rows, INK_FAINT, "%lld", (long long)i);
    table_put(rows, INK_OFF, "%d", (int)e->ids[i]);
    table_label(rows, special ? INK_FAINT : INK_STRONG, &token);
    if (e->begin[i] == e->end[i])
      table_head(rows, "added");
    else
      table_put(rows, INK_OFF, "%lld–%lld", (long long)e->begin[i], (long long)e->end[i]);
    table_put(rows, INK_FAINT, "%s", special ? "special" : hex);
  }
  table_print(rows, 0);
}

static void print_json(const att_encoding *e) {
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_ints(&j, "ids", e->ids, e->n);
  json_open(&j, "pieces", '[');
  for (int64_t i = 0; i < e->n; i++) {
    size_t n;
    const char *bytes = bytes_of(e->ids[i], &n);
    json_bytes(&j, NULL, bytes, n);
  }
  json_close(&j);
  json_open(&j, "spans", '[');
  for (int64_t i = 0; i < e->n; i++) {
    json_open(&j, NULL, '[');
    json_int(&j, NULL, e->begin[i]);
    json_int(&j, NULL, e->end[i]);
    json_close(&j);
  }
  json_close(&j);
  json_string(&j, "kind", att_tokenizer_kind(what.tokenizer));
  json_close(&j);
  json_end(&j);
}

static int encode(const cli *c, const char *text) {
  const att_encode_options how = {.add_special = !bare, .parse_special = parse_special};
  att_encoding *e = NULL;
  if (att_encode(&e, what.tokenizer, text, strlen(text), &how) != ATT_OK) return cli_fail_status(c);
  if (c->json)
    print_json(e);
  else
    print_table(c, e);
  att_encoding_free(e);
  return CLI_OK;
}

static int print_decoded(const cli *c, const id_list *list) {
  const att_decoder_options how = {.skip_special = bare};
  att_decoder *decoder = NULL;
  const char *text;
  size_t bytes;
  att_status status = att_decoder_create(&decoder, what.tokenizer, &how);
  if (status == ATT_OK) status = att_decoder_decode(&text, &bytes, decoder, list->ids, list->n);
  int code = status == ATT_OK ? CLI_OK : cli_fail_status(c);
  if (status == ATT_OK && c->json) {
    json j = json_begin(stdout);
    json_open(&j, NULL, '{');
    json_ints(&j, "ids", list->ids, list->n);
    json_bytes(&j, "text", text, bytes);
    json_close(&j);
    json_end(&j);
  } else if (status == ATT_OK && c->term.tty) {
    text_print(stdout, &c->term, text, bytes);
    putchar('\n');
  } else if (status == ATT_OK) {
    fwrite(text, 1, bytes, stdout);
  }
  att_decoder_free(decoder);
  return code;
}

/* The tokenizer alone, if a file of one is all that is given. */
static int open_tokenizer(const cli *c, att_tokenizer **own) {
  if (what.model_path || !what.tokenizer_path) {
    int code = subject_open_model(&what, c);
    if (code == CLI_OK && !what.tokenizer)
      return cli_fail(c, "%s has no tokenizer: give one with -z",
                      att_model_describe(what.model)->name);
    return code;
  }
  int code = cli_runtime(&what.runtime, c);
  if (code != CLI_OK) return code;
  if (att_tokenizer_open(own, what.runtime, what.tokenizer_path, 0) != ATT_OK)
    return cli_fail_status(c);
  what.tokenizer = *own;
  return CLI_OK;
}

static int run(const cli *c, int n, char **operands) {
  (void)n;
  att_tokenizer *own = NULL;
  id_list list = {0};
  if (decode && options_read_ids(&list, operands[0]) != 0)
    return cli_usage(c, "--decode: token ids are numbers separated by commas, not %s", operands[0]);
  int code = open_tokenizer(c, &own);
  if (code == CLI_OK) code = decode ? print_decoded(c, &list) : encode(c, operands[0]);
  free(list.ids);
  att_tokenizer_free(own);
  subject_close(&what);
  return code;
}

const command cmd_tokenize = {
    .operands = "TEXT",
    .least = 1,
    .most = 1,
    .about = "Prints the tokens of TEXT: number, the text they stand for, the bytes of TEXT that "
             "each covers, and their own bytes. Without -m and -z: the built-in model's words.\n\n"
             "With -z alone the file may be a tokenizer.json or a folder that holds one; a "
             "llama2.c tokenizer.bin needs its model (-m), which says how many entries count.",
    .options = options,
    .run = run,
};
