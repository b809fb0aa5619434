/* Gathers "tokenizer.ggml.*" into the arrays that src/text loads from. */
#include "model/gguf_tokens.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/gguf_keys.h"
#include "text/load_gguf.h"

#define KEY(name) "tokenizer.ggml." name

typedef struct gathering {
  const att_gguf *file;
  const att_runtime *runtime;
  att_stored_tokenizer stored;
  att_stored_text *tokens, *merges; /* owned, as are these: */
  float *scores;
  int32_t *types;
} gathering;

/* The array of that type under a key, NULL if absent. */
static att_status array(const att_gguf_value **out, const gathering *g, const char *key,
                        att_gguf_type type) {
  const att_gguf_value *v = att_gguf_find(g->file, key);
  *out = v;
  if (!v || (v->is_array && v->type == type)) return ATT_OK;
  return att_fail(ATT_CORRUPT, "%s: key \"%s\" is %s%s, not an array of %s", att_gguf_name(g->file),
                  key, v->is_array ? "an array of " : "", att_gguf_type_name(v->type),
                  att_gguf_type_name(type));
}

/* As many elements as there are tokens. */
static att_status one_per_token(const gathering *g, const att_gguf_value *v, const char *key) {
  if (!v || v->count == g->stored.n_tokens) return ATT_OK;
  return att_fail(ATT_CORRUPT, "%s: key \"%s\" has %lld elements for %lld tokens",
                  att_gguf_name(g->file), key, (long long)v->count, (long long)g->stored.n_tokens);
}

static att_status texts(att_stored_text **out, int64_t *n, const gathering *g, const char *key) {
  const att_gguf_value *v;
  ATT_TRY(array(&v, g, key, ATT_GGUF_STRING));
  if (!v) return ATT_OK;
  ATT_TRY(att_alloc((void **)out, g->runtime, v->count, sizeof **out, "a vocabulary"));
  *n = v->count;
  const unsigned char *at = v->data;
  for (int64_t i = 0; i < v->count; i++) {
    att_gguf_text text = att_gguf_next_text(&at);
    (*out)[i] = (att_stored_text){text.bytes, text.n};
  }
  return ATT_OK;
}

/* The map is no place for floats: nothing there is aligned. */
static att_status numbers(gathering *g) {
  const att_gguf_value *scores, *types;
  ATT_TRY(array(&scores, g, KEY("scores"), ATT_GGUF_F32));
  ATT_TRY(array(&types, g, KEY("token_type"), ATT_GGUF_I32));
  ATT_TRY(one_per_token(g, scores, KEY("scores")));
  ATT_TRY(one_per_token(g, types, KEY("token_type")));
  int64_t n = g->stored.n_tokens;
  if (scores) {
    ATT_TRY(att_alloc((void **)&g->scores, g->runtime, n, sizeof *g->scores, "scores"));
    memcpy(g->scores, scores->data, (size_t)n * sizeof *g->scores);
  }
  if (types) {
    ATT_TRY(att_alloc((void **)&g->types, g->runtime, n, sizeof *g->types, "token types"));
    memcpy(g->types, types->data, (size_t)n * sizeof *g->types);
  }
  return ATT_OK;
}

static att_status id(int64_t *out, const gathering *g, const char *key) {
  const att_gguf_value *v = att_gguf_find(g->file, key);
  *out = -1;
  if (!v) return ATT_OK;
  if (!v->is_array && att_gguf_integer(out, v, 0) && *out >= 0) return ATT_OK;
  return att_fail(ATT_CORRUPT, "%s: key \"%s\" is not the id of a token", att_gguf_name(g->file),
                  key);
}

static att_status yes_or_no(int *out, const gathering *g, const char *key) {
  const att_gguf_value *v = att_gguf_find(g->file, key);
  bool truth;
  *out = -1;
  if (!v) return ATT_OK;
  if (v->is_array || !att_gguf_bool(&truth, v, 0))
    return att_fail(ATT_CORRUPT, "%s: key \"%s\" is not a bool", att_gguf_name(g->file), key);
  *out = truth;
  return ATT_OK;
}

/* Bytes as they are, for Unigram's map of characters. */
static att_status charsmap(gathering *g) {
  const att_gguf_value *v = att_gguf_find(g->file, KEY("precompiled_charsmap"));
  if (!v) return ATT_OK;
  if (!v->is_array || (v->type != ATT_GGUF_U8 && v->type != ATT_GGUF_I8))
    return att_fail(ATT_CORRUPT,
                    "%s: key \"" KEY("precompiled_charsmap") "\" is not an array of bytes",
                    att_gguf_name(g->file));
  g->stored.charsmap = (att_stored_text){(const char *)v->data, (size_t)v->count};
  return ATT_OK;
}

static att_status gather(gathering *g) {
  att_stored_tokenizer *s = &g->stored;
  att_gguf_text model = {"", 0}, pre = {"", 0}, chat = {NULL, 0};
  if (!att_gguf_find(g->file, KEY("model")))
    return att_fail(ATT_NOT_FOUND, "%s: holds no tokenizer: key \"" KEY("model") "\" is missing",
                    att_gguf_name(g->file));
  ATT_TRY(att_gguf_text_of(&model, g->file, KEY("model"), true));
  if (att_gguf_text_is(model, "none"))
    return att_fail(ATT_NOT_FOUND, "%s: holds no tokenizer: key \"" KEY("model") "\" is none",
                    att_gguf_name(g->file));
  ATT_TRY(att_gguf_text_of(&pre, g->file, KEY("pre"), false));
  ATT_TRY(att_gguf_text_of(&chat, g->file, "tokenizer.chat_template", false));
  s->name = att_gguf_name(g->file);
  s->model = (att_stored_text){model.bytes, model.n};
  s->pre = (att_stored_text){pre.bytes, pre.n};
  s->chat_template = (att_stored_text){chat.bytes, chat.n};
  ATT_TRY(texts(&g->tokens, &s->n_tokens, g, KEY("tokens")));
  ATT_TRY(texts(&g->merges, &s->n_merges, g, KEY("merges")));
  ATT_TRY(numbers(g));
  ATT_TRY(charsmap(g));
  s->tokens = g->tokens;
  s->merges = g->merges;
  s->scores = g->scores;
  s->types = g->types;
  ATT_TRY(id(&s->bos, g, KEY("bos_token_id")));
  ATT_TRY(id(&s->eos, g, KEY("eos_token_id")));
  ATT_TRY(id(&s->eot, g, KEY("eot_token_id")));
  ATT_TRY(id(&s->eom, g, KEY("eom_token_id")));
  ATT_TRY(id(&s->unknown, g, KEY("unknown_token_id")));
  ATT_TRY(id(&s->cls, g, KEY("cls_token_id")));
  ATT_TRY(id(&s->sep, g, KEY("seperator_token_id"))); /* the format's own spelling */
  ATT_TRY(yes_or_no(&s->add_bos, g, KEY("add_bos_token")));
  ATT_TRY(yes_or_no(&s->add_eos, g, KEY("add_eos_token")));
  return yes_or_no(&s->add_space, g, KEY("add_space_prefix"));
}

att_status att_gguf_tokenizer(att_tokenizer **out, att_runtime *runtime, const att_gguf *file) {
  gathering g = {.file = file, .runtime = runtime};
  att_status status = gather(&g);
  if (status == ATT_OK) status = att_load_gguf(out, runtime, &g.stored);
  att_release(runtime, g.tokens, g.stored.n_tokens, sizeof *g.tokens);
  att_release(runtime, g.merges, g.stored.n_merges, sizeof *g.merges);
  att_release(runtime, g.scores, g.stored.n_tokens, sizeof *g.scores);
  att_release(runtime, g.types, g.stored.n_tokens, sizeof *g.types);
  return status;
}

/* ---- opening by path ---- */

static att_status has_mark(bool *out, const char *path) {
  att_file file;
  *out = false;
  if (!att_path_is_file(path)) return ATT_OK;
  ATT_TRY(att_file_map(&file, path));
  *out = file.bytes >= 4 && memcmp(file.data, "GGUF", 4) == 0;
  att_file_unmap(&file);
  return ATT_OK;
}

/* Here, because a .gguf is a file of the level below whose keys src/text must not
 * know; all other paths are its own. */
att_status att_tokenizer_open(att_tokenizer **out, att_runtime *runtime, const char *path,
                              int64_t vocab_size) {
  bool is_gguf;
  att_gguf *file;
  if (out == NULL || runtime == NULL || path == NULL)
    return att_fail(ATT_BAD_ARGUMENT, "%s is NULL",
                    out == NULL       ? "out"
                    : runtime == NULL ? "runtime"
                                      : "path");
  ATT_TRY(has_mark(&is_gguf, path));
  if (!is_gguf) return att_tokenizer_open_path(out, runtime, path, vocab_size);
  ATT_TRY(att_gguf_open(&file, runtime, path));
  att_status status = att_gguf_tokenizer(out, runtime, file);
  att_gguf_close(file);
  return status;
}
