/* The names of pre-tokenizers and what they stand for. */
#include <string.h>

#include "attend/tokenizer.h"
#include "text/load_gguf.h"

static const att_stored_pre rows[] = {
#define ATT_PRE(name, flags, ...) {name, flags, {__VA_ARGS__}},
#include "text/gguf_pretokenizers.inc"
#undef ATT_PRE
};
enum { N_ROWS = sizeof rows / sizeof *rows };

const att_stored_pre *att_stored_pre_at(int index) {
  return index >= 0 && index < N_ROWS ? &rows[index] : NULL;
}

const att_stored_pre *att_stored_pre_find(att_stored_text name) {
  for (int i = 0; i < N_ROWS; i++)
    if (name.n == strlen(rows[i].name) && memcmp(name.bytes, rows[i].name, name.n) == 0)
      return &rows[i];
  return NULL;
}

/* One pattern says all of it, so that a name is as good as writing it out. */
static bool is_plain(const att_stored_pre *row) {
  return row->patterns[1] == NULL && (row->flags & ATT_PRE_NFC) == 0;
}

const char *att_word_pattern(const char *name) {
  const att_stored_pre *row =
      name ? att_stored_pre_find((att_stored_text){name, strlen(name)}) : NULL;
  return row && is_plain(row) ? row->patterns[0] : NULL;
}
