/* The result of att_encode: parallel arrays, filled from a template. */
#include "text/encoding.h"

/* What the caller gets a pointer to is the first member. */
typedef struct owned {
  att_encoding encoding;
  const att_runtime *runtime;
} owned;

static const att_template_item plain_items[2] = {{-1, 0, 0}, {-1, 1, 1}};
static const att_template plain = {plain_items, 2};

static int64_t item_length(const att_template_item *item, const int64_t ends[2], bool with_added) {
  if (item->id >= 0) return with_added ? 1 : 0;
  return item->source == 0 ? ends[0] : ends[1] - ends[0];
}

static att_status allocate(owned *o, int64_t n) {
  void *memory;
  att_encoding *e = &o->encoding;
  e->n = n;
  ATT_TRY(att_alloc(&memory, o->runtime, n, sizeof *e->ids, "token ids"));
  e->ids = memory;
  ATT_TRY(att_alloc(&memory, o->runtime, n, sizeof *e->begin, "token spans"));
  e->begin = memory;
  ATT_TRY(att_alloc(&memory, o->runtime, n, sizeof *e->end, "token spans"));
  e->end = memory;
  ATT_TRY(att_alloc(&memory, o->runtime, n, sizeof *e->types, "token types"));
  e->types = memory;
  ATT_TRY(att_alloc(&memory, o->runtime, n, sizeof *e->source, "token sources"));
  e->source = memory;
  return ATT_OK;
}

static void put(att_encoding *e, int64_t i, att_token token, int32_t type, int8_t source) {
  e->ids[i] = token.id;
  e->begin[i] = token.begin;
  e->end[i] = token.end;
  e->types[i] = type;
  e->source[i] = source;
}

static void fill(att_encoding *e, const att_token *tokens, const int64_t ends[2],
                 const att_template *around, bool with_added) {
  int64_t n = 0;
  for (int i = 0; i < around->n; i++) {
    const att_template_item *item = &around->items[i];
    int64_t count = item_length(item, ends, with_added), from = item->source == 0 ? 0 : ends[0];
    for (int64_t k = 0; k < count; k++)
      if (item->id >= 0)
        put(e, n++, (att_token){item->id, 0, 0}, item->type, -1);
      else
        put(e, n++, tokens[from + k], item->type, item->source);
  }
}

att_status att_encoding_create(att_encoding **out, const att_runtime *runtime,
                               const att_token *tokens, const int64_t ends[2],
                               const att_template *around, bool with_added) {
  if (around->n == 0) around = &plain;
  int64_t n = 0;
  for (int i = 0; i < around->n; i++) n += item_length(&around->items[i], ends, with_added);
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof(owned), "encoding"));
  owned *o = memory;
  o->runtime = runtime;
  att_status status = allocate(o, n);
  if (status != ATT_OK) {
    att_encoding_free(&o->encoding);
    return status;
  }
  fill(&o->encoding, tokens, ends, around, with_added);
  *out = &o->encoding;
  return ATT_OK;
}

void att_encoding_free(att_encoding *encoding) {
  if (encoding == NULL) return;
  const att_runtime *runtime = ((owned *)encoding)->runtime;
  att_release(runtime, encoding->ids, encoding->n, sizeof *encoding->ids);
  att_release(runtime, encoding->begin, encoding->n, sizeof *encoding->begin);
  att_release(runtime, encoding->end, encoding->n, sizeof *encoding->end);
  att_release(runtime, encoding->types, encoding->n, sizeof *encoding->types);
  att_release(runtime, encoding->source, encoding->n, sizeof *encoding->source);
  att_release(runtime, encoding, 1, sizeof(owned));
}
