/* cmd_tokenize.c — attend tokenize: a text as tokens, or tokens as a text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/status.h"
#include "bench.h"
#include "json_out.h"
#include "memory.h"
#include "subject.h"
#include "table.h"

enum { TOKEN_ROOM = 32 };

static subject what;
static bool bare, parse_special, decode, count;

static const option options[] = {
    SUBJECT_MODEL_OPTIONS(what),
    {"no-special", 0, OPTION_FLAG, &bare, "", 0, 0, "add no BOS or other special tokens"},
    {"parse-special", 0, OPTION_FLAG, &parse_special, "", 0, 0,
     "a special token's name in TEXT, such as <s>, becomes that token"},
    {"decode", 'd', OPTION_FLAG, &decode, "", 0, 0,
     "TEXT is token ids separated by commas: prints what they stand for"},
    {"file", 'f', OPTION_TEXT, &what.file_path, "FILE", 0, 0,
     "reads TEXT from FILE, - for standard input; a newline at its end does not count"},
    {"count", 0, OPTION_FLAG, &count, "", 0, 0,
     "prints only how many tokens and bytes there are, and how long it took"},
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

static void print_count(const cli *c, const att_encoding *e, double seconds) {
  const double rate = seconds > 0 ? (double)what.prompt_bytes / seconds : 0;
  if (!c->json) {
    printf("%lld tokens, %zu bytes\n", (long long)e->n, what.prompt_bytes);
    cli_note(c, "%.3g s, %.1f MB/s", seconds, rate * 1e-6);
    return;
  }
  json j = json_begin(stdout);
  json_open(&j, NULL, '{');
  json_int(&j, "tokens", e->n);
  json_int(&j, "bytes", (int64_t)what.prompt_bytes);
  json_double(&j, "seconds", seconds);
  json_close(&j);
  json_end(&j);
}

static int encode(const cli *c) {
  const att_encode_options how = {.add_special = !bare, .parse_special = parse_special};
  att_encoding *e = NULL;
  const double start = bench_now();
  if (att_encode(&e, what.tokenizer, what.prompt, what.prompt_bytes, &how) != ATT_OK)
    return cli_fail_status(c);
  if (count)
    print_count(c, e, bench_now() - start);
  else if (c->json)
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

static int run(const cli *c, int n, char **operands) {
  id_list list = {0};
  int code = subject_read_text(&what, c, n, operands);
  if (code == CLI_OK && !what.prompt) code = cli_usage(c, "needs a TEXT or --file");
  if (code == CLI_OK && decode && what.file_path)
    code = cli_usage(c, "--decode takes token ids as TEXT, not a --file");
  if (code == CLI_OK && decode && options_read_ids(&list, what.prompt) != 0)
    code = cli_usage(c, "--decode: token ids are numbers separated by commas, not %s", what.prompt);
  if (code == CLI_OK) code = subject_open_tokenizer(&what, c);
  if (code == CLI_OK) code = decode ? print_decoded(c, &list) : encode(c);
  free(list.ids);
  subject_close(&what);
  return code;
}

const command cmd_tokenize = {
    .operands = "TEXT",
    .least = 0,
    .most = 1,
    .about = "Prints the tokens of TEXT: number, the text they stand for, the bytes of TEXT that "
             "each covers, and their own bytes. Without -m and -z: the default model's tokens.\n\n"
             "With -z alone the file may be a tokenizer.json or a folder that holds one; a "
             "llama2.c tokenizer.bin needs its model (-m), which says how many entries count.",
    .options = options,
    .run = run,
};
