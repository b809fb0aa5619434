/* What a chat template says, whatever way it is spelled, as one number.
 *
 * The template is taken apart as Jinja would (with trim_blocks and lstrip_blocks,
 * as everybody runs chat templates) into plain text, outputs {{ … }} and
 * statements {% … %}; each goes into the hash in one spelling: comments and
 * spaces are gone, strings have one kind of quotes, m['role'] is m.role, and an
 * output "a" + x is text a, then x. Nothing is evaluated. */
#include "text/chat.h"

#include <string.h>

typedef struct token {
  char kind; /* 'n' name or number, 's' string, or the character itself */
  int64_t first, n;
} token;

typedef struct reader {
  const char *text;
  size_t n, at;
  uint64_t hash;
  att_list tokens;  /* token: of the tag being read */
  att_list bytes;   /* of its names and decoded strings */
  att_list literal; /* text that is not hashed yet */
} reader;

static void mix(reader *r, const void *bytes, size_t n) {
  for (size_t i = 0; i < n; i++)
    r->hash = (r->hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
}

static void mix_char(reader *r, char c) { mix(r, &c, 1); }

/* Texts side by side are one text. */
static void end_literal(reader *r) {
  if (r->literal.n == 0) return;
  mix_char(r, 'T');
  mix(r, r->literal.items, (size_t)r->literal.n);
  mix_char(r, '\0');
  r->literal.n = 0;
}

/* ---- tags ---- */

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (unsigned char)c >= 0x80;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static att_status add(reader *r, char kind, int64_t first) {
  token t = {kind, first, r->bytes.n - first};
  return att_list_append(&r->tokens, &t, 1);
}

static att_status read_name(reader *r) {
  size_t begin = r->at;
  int64_t first = r->bytes.n;
  while (r->at < r->n && is_name(r->text[r->at])) r->at++;
  ATT_TRY(att_list_append(&r->bytes, r->text + begin, (int64_t)(r->at - begin)));
  return add(r, 'n', first);
}

/* A string; *ok is false if it has no end. */
static att_status read_string(reader *r, bool *ok) {
  static const char escapes[] = "n\nt\tr\r";
  char quote = r->text[r->at++];
  int64_t first = r->bytes.n;
  while (r->at < r->n && r->text[r->at] != quote) {
    char c = r->text[r->at++];
    if (c == '\\' && r->at < r->n) {
      c = r->text[r->at++];
      for (int i = 0; escapes[i]; i += 2)
        if (c == escapes[i]) {
          c = escapes[i + 1];
          break;
        }
    }
    ATT_TRY(att_list_append(&r->bytes, &c, 1));
  }
  *ok = r->at < r->n;
  r->at++;
  return add(r, 's', first);
}

/* The tokens up to "}}" or "%}", which is taken too; *strip tells of "-" before it. */
static att_status read_tag(reader *r, char end, bool *strip, bool *ok) {
  int braces = 0;
  r->tokens.n = r->bytes.n = 0;
  *ok = true;
  while (*ok && r->at < r->n) {
    char c = r->text[r->at], next = r->at + 1 < r->n ? r->text[r->at + 1] : '\0';
    char after = r->at + 2 < r->n ? r->text[r->at + 2] : '\0';
    *strip = c == '-' && next == end && after == '}';
    if (*strip || (c == end && next == '}' && (end == '%' || braces == 0))) {
      r->at += *strip ? 3 : 2;
      return ATT_OK;
    }
    if (c == '"' || c == '\'') {
      ATT_TRY(read_string(r, ok));
    } else if (is_name(c)) {
      ATT_TRY(read_name(r));
    } else {
      braces += (c == '{') - (c == '}');
      if (!is_space(c)) ATT_TRY(add(r, c, r->bytes.n));
      r->at++;
    }
  }
  *ok = false;
  return ATT_OK;
}

/* A token's bytes; before any were read there is no memory to point into. */
static const char *bytes_of(const reader *r, const token *t) {
  return r->bytes.items ? (const char *)r->bytes.items + t->first : "";
}

/* True at "['name']" behind something that has members. */
static bool is_member(const reader *r, int64_t i) {
  const token *t = r->tokens.items;
  if (i < 1 || i + 2 >= r->tokens.n || t[i].kind != '[' || t[i + 1].kind != 's') return false;
  if (t[i + 2].kind != ']' || t[i + 1].n == 0 || !strchr("n])", t[i - 1].kind)) return false;
  const char *name = bytes_of(r, &t[i + 1]);
  for (int64_t k = 0; k < t[i + 1].n; k++)
    if (!is_name(name[k])) return false;
  return true;
}

static void mix_tokens(reader *r, int64_t begin, int64_t end) {
  const token *t = r->tokens.items;
  for (int64_t i = begin; i < end; i++) {
    bool member = is_member(r, i) && i + 2 < end;
    if (member) {
      mix(r, ".\0", 2); /* as the token "." */
      i++;
    }
    mix_char(r, member ? 'n' : t[i].kind);
    mix(r, bytes_of(r, &t[i]), (size_t)t[i].n);
    mix_char(r, '\0');
    if (member) i++;
  }
}

/* True if all operators of an output outside brackets are "+", "." and "|". */
static bool is_sum(const reader *r) {
  static const char *const words[] = {"if", "and", "or", "not", "in", "is"};
  const token *t = r->tokens.items;
  for (int64_t i = 0, depth = 0; i < r->tokens.n; i++) {
    depth += strchr("([{", t[i].kind) != NULL;
    depth -= strchr(")]}", t[i].kind) != NULL;
    if (depth == 0 && strchr("~-*/%<>=!", t[i].kind)) return false;
    for (size_t w = 0; w < sizeof words / sizeof *words && depth == 0; w++)
      if (t[i].kind == 'n' && t[i].n == (int64_t)strlen(words[w]) &&
          memcmp(bytes_of(r, &t[i]), words[w], (size_t)t[i].n) == 0)
        return false;
  }
  return true;
}

static att_status put_term(reader *r, int64_t begin, int64_t end) {
  const token *t = r->tokens.items;
  if (end == begin + 1 && t[begin].kind == 's')
    return att_list_append(&r->literal, bytes_of(r, &t[begin]), t[begin].n);
  end_literal(r);
  mix_char(r, 'O');
  mix_tokens(r, begin, end);
  return ATT_OK;
}

static att_status put_output(reader *r) {
  const token *t = r->tokens.items;
  int64_t begin = 0, depth = 0;
  if (!is_sum(r)) return put_term(r, 0, r->tokens.n);
  for (int64_t i = 0; i <= r->tokens.n; i++) {
    if (i < r->tokens.n) {
      depth += strchr("([{", t[i].kind) != NULL;
      depth -= strchr(")]}", t[i].kind) != NULL;
      if (depth > 0 || t[i].kind != '+') continue;
    }
    ATT_TRY(put_term(r, begin, i));
    begin = i + 1;
  }
  return ATT_OK;
}

/* ---- what lies between tags ---- */

static const char *find_tag(const reader *r) {
  for (size_t i = r->at; i + 1 < r->n; i++)
    if (r->text[i] == '{' && strchr("{%#", r->text[i + 1])) return r->text + i;
  return NULL;
}

/* Text up to a tag (NULL: to the end), without what Jinja drops. */
static att_status put_text(reader *r, const char *tag, bool after_block, bool stripped) {
  const char *begin = r->text + r->at, *end = tag ? tag : r->text + r->n;
  const char *line = end;
  if (stripped)
    while (begin < end && is_space(*begin)) begin++;
  else if (after_block && begin < end && *begin == '\n')
    begin++;
  if (!tag && end > begin && end[-1] == '\n') end--; /* the template's last newline */
  if (tag && tag + 2 < r->text + r->n && tag[2] == '-') {
    while (end > begin && is_space(end[-1])) end--;
  } else if (tag && tag[1] != '{') {
    while (line > r->text && (line[-1] == ' ' || line[-1] == '\t')) line--;
    if (line >= begin && (line == r->text || line[-1] == '\n')) end = line;
  }
  return att_list_append(&r->literal, begin, end - begin);
}

static bool skip_comment(reader *r, bool *strip) {
  for (; r->at + 1 < r->n; r->at++) {
    if (r->text[r->at] != '#' || r->text[r->at + 1] != '}') continue;
    *strip = r->text[r->at - 1] == '-';
    r->at += 2;
    return true;
  }
  return false;
}

static att_status read_template(reader *r, bool *ok) {
  bool after_block = false, strip = false;
  *ok = true;
  for (const char *tag; (tag = find_tag(r)) != NULL;) {
    ATT_TRY(put_text(r, tag, after_block, strip));
    char kind = tag[1];
    r->at = (size_t)(tag - r->text) + 2;
    if (r->at < r->n && (r->text[r->at] == '-' || r->text[r->at] == '+')) r->at++;
    after_block = kind != '{';
    if (kind == '#') {
      if (!(*ok = skip_comment(r, &strip))) return ATT_OK;
      continue;
    }
    ATT_TRY(read_tag(r, kind == '{' ? '}' : '%', &strip, ok));
    if (!*ok) return ATT_OK;
    if (kind == '{') {
      ATT_TRY(put_output(r));
    } else {
      end_literal(r);
      mix_char(r, 'S');
      mix_tokens(r, 0, r->tokens.n);
    }
  }
  ATT_TRY(put_text(r, NULL, after_block, strip));
  end_literal(r);
  return ATT_OK;
}

att_status att_chat_fingerprint(uint64_t *out, const att_runtime *runtime, const char *text,
                                size_t bytes) {
  reader r = {.text = text, .n = bytes, .hash = 0xCBF29CE484222325u};
  bool ok = false;
  att_list_init(&r.tokens, runtime, sizeof(token));
  att_list_init(&r.bytes, runtime, 1);
  att_list_init(&r.literal, runtime, 1);
  att_status status = read_template(&r, &ok);
  att_list_free(&r.tokens);
  att_list_free(&r.bytes);
  att_list_free(&r.literal);
  if (status == ATT_OK) *out = ok ? r.hash : 0;
  return status;
}
