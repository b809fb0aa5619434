/* tokenizers/bytes.jsonl: raw bytes that are mostly no UTF-8, and the ids that
 * llama2.c's own encoder gives them. A key "NAME_llama2c" belongs to the
 * tokenizer NAME/tok<V>.bin beside the group, V being the size of its vocabulary. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jsonl.h"
#include "models.h"

#define SUFFIX "_llama2c"

/* The tokenizer file in `folder`; its vocabulary, or 0 if there is none. */
static int64_t find_tokenizer(char path[GOLDEN_PATH], const char *folder) {
  DIR *dir = opendir(folder);
  int64_t vocab = 0;
  for (struct dirent *entry; dir && vocab == 0 && (entry = readdir(dir));) {
    char *end;
    if (strncmp(entry->d_name, "tok", 3) != 0) continue;
    vocab = strtoll(entry->d_name + 3, &end, 10);
    if (strcmp(end, ".bin") != 0) vocab = 0;
    if (snprintf(path, GOLDEN_PATH, "%s/%s", folder, entry->d_name) >= GOLDEN_PATH) vocab = 0;
  }
  if (dir) closedir(dir);
  return vocab;
}

static size_t from_hex(char *out, const char *hex) {
  size_t n = strlen(hex) / 2;
  for (size_t i = 0; i < n; i++) {
    char digits[3] = {hex[2 * i], hex[2 * i + 1], 0};
    out[i] = (char)strtol(digits, NULL, 16);
  }
  return n;
}

static void compare(golden_case *c, const att_json_node *row, const char *key, const char *path,
                    int64_t vocab) {
  const char *hex = golden_member_text(row, "bytes_hex");
  int64_t n = 0;
  int32_t *want = golden_ids(c, row, key, &n);
  att_tokenizer *tokenizer;
  if (!hex || !want ||
      !golden_ok(c->g, att_tokenizer_open(&tokenizer, c->g->runtime, path, vocab), "tokenizer"))
    return;
  char *bytes = golden_alloc(c, (int64_t)strlen(hex) + 1, 1);
  att_encode_options plain = {.add_special = false, .parse_special = false};
  att_encoding *got;
  if (golden_ok(c->g, att_encode(&got, tokenizer, bytes, from_hex(bytes, hex), &plain),
                "att_encode")) {
    golden_expect_ids(c, "ids", got->ids, got->n, want, n);
    att_encoding_free(got);
  }
  att_tokenizer_free(tokenizer);
}

static void bytes_row(golden_case *c, const att_json_node *row) {
  const char *hex = golden_member_text(row, "bytes_hex");
  for (const att_json_node *member = row->child; member; member = member->next) {
    size_t n = member->key_bytes;
    if (n <= strlen(SUFFIX) || strcmp(member->key + n - strlen(SUFFIX), SUFFIX) != 0) continue;
    char folder[GOLDEN_PATH], path[GOLDEN_PATH], label[128];
    int group = (int)(strrchr(c->path, '/') - c->path);
    snprintf(folder, sizeof folder, "%.*s/../%.*s", group, c->path, (int)(n - strlen(SUFFIX)),
             member->key);
    snprintf(label, sizeof label, "%s %.60s", member->key, hex ? hex : "");
    if (!golden_begin(c->g, c->path, label)) continue;
    int64_t vocab = find_tokenizer(path, folder);
    if (vocab == 0)
      golden_skip(c->g, "no tok<V>.bin for %s", member->key);
    else
      compare(c, row, member->key, path, vocab);
    golden_end(c->g);
  }
}

void golden_bytes(golden_case *c) { golden_each_line(c, bytes_row); }
