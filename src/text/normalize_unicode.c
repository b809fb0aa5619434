/* NFD, NFKD, NFC, NFKC: decompose every character, put marks in canonical
 * order, and for the two C forms compose again. Each character carries how many
 * characters of the old text it takes the place of (1 - change, see text.h). */
#include <stdlib.h>

#include "text/hf.h"
#include "text/normalize.h"

typedef struct part {
  uint32_t code, order; /* place before the sorting */
  int16_t class, change;
} part;

typedef struct form {
  bool compatible, compose;
} form;

/* Below this code point all characters are their own normal form. */
static uint32_t stable_below(const form *f) { return f->compose && !f->compatible ? 0x300 : 0x80; }

static bool is_normal(const att_text *text, uint32_t below) {
  uint32_t code;
  for (int64_t at = 0, length; at < text->n; at += length) {
    length = att_char_next(&code, text->bytes + at, text->n - at);
    bool bad = length == 1 && code == ATT_REPLACEMENT;
    if (code >= below && !bad) return false;
  }
  return true;
}

static att_status decompose(att_list *parts, const att_text *text, bool compatible) {
  uint32_t code, codes[ATT_DECOMPOSE_MAX];
  for (int64_t at = 0; at < text->n;) {
    int length = att_char_next(&code, text->bytes + at, text->n - at);
    int n = 1;
    codes[0] = code;
    if (length == 1 && code == ATT_REPLACEMENT) /* a bad byte keeps its value */
      codes[0] = ATT_BAD_BYTE + (unsigned char)text->bytes[at];
    else
      n = att_char_decompose(codes, code, compatible);
    ATT_TRY(att_list_reserve(parts, n));
    part *p = (part *)parts->items + parts->n;
    for (int i = 0; i < n; i++)
      p[i] = (part){.code = codes[i],
                    .class = codes[i] < ATT_BAD_BYTE ? (int16_t)att_char_class(codes[i]) : 0,
                    .change = i > 0};
    parts->n += n;
    at += length;
  }
  return ATT_OK;
}

static int by_class(const void *a, const void *b) {
  const part *x = a, *y = b;
  if (x->class != y->class) return x->class < y->class ? -1 : 1;
  return x->order < y->order ? -1 : 1;
}

/* Sorts each run of marks by class; marks of equal class keep their order. */
static void sort_marks(part *parts, int64_t n) {
  for (int64_t begin = 0, end; begin < n; begin = end) {
    bool sorted = true;
    for (end = begin + 1; parts[begin].class > 0 && end < n && parts[end].class > 0; end++) {
      parts[end].order = (uint32_t)(end - begin);
      sorted = sorted && parts[end - 1].class <= parts[end].class;
    }
    if (!sorted) qsort(parts + begin, (size_t)(end - begin), sizeof *parts, by_class);
  }
}

/* Composes in place: a character joins the last starter unless something with
 * its class or a higher one stands between. */
static int64_t compose(part *parts, int64_t n) {
  int64_t kept = 0, starter = -1;
  int last = -1; /* class of what was kept behind the starter; -1: nothing */
  for (int64_t i = 0; i < n; i++) {
    part p = parts[i];
    bool reaches = starter >= 0 && last < p.class;
    uint32_t joined = reaches && p.code < ATT_BAD_BYTE && parts[starter].code < ATT_BAD_BYTE
                          ? att_char_compose(parts[starter].code, p.code)
                          : 0;
    if (joined != 0) {
      parts[starter].code = joined;
      parts[starter].change = (int16_t)(parts[starter].change + p.change - 1);
      continue;
    }
    if (p.class == 0) {
      starter = kept;
      last = -1;
    } else {
      last = p.class;
    }
    parts[kept++] = p;
  }
  return kept;
}

static att_status write(att_job *job, const part *parts, int64_t n) {
  att_rewrite r;
  ATT_TRY(att_rewrite_begin(&r, &job->text));
  for (int64_t i = 0; i < n; i++) {
    if (parts[i].code < ATT_BAD_BYTE) {
      ATT_TRY(att_rewrite_change(&r, parts[i].code, parts[i].change));
    } else {
      char byte = (char)(parts[i].code - ATT_BAD_BYTE);
      ATT_TRY(att_rewrite_put(&r, &byte, 1));
      att_rewrite_skip(&r);
    }
  }
  att_rewrite_end(&r);
  return ATT_OK;
}

static att_status run(att_job *job, const void *settings) {
  const form *f = settings;
  if (is_normal(&job->text, stable_below(f))) return ATT_OK;
  att_list *parts = att_job_scratch(job, 0, sizeof(part));
  ATT_TRY(decompose(parts, &job->text, f->compatible));
  sort_marks(parts->items, parts->n);
  if (f->compose) parts->n = compose(parts->items, parts->n);
  return write(job, parts->items, parts->n);
}

static const form nfd = {false, false}, nfkd = {true, false}, nfc = {false, true},
                  nfkc = {true, true};

att_status att_normalize_nfd(att_job *job, const void *settings) {
  (void)settings;
  return run(job, &nfd);
}

att_status att_hf_normalizer_nfd(att_hf *hf, const att_json_node *node) {
  (void)node;
  return att_hf_add_normalizer(hf, run, &nfd);
}

att_status att_hf_normalizer_nfkd(att_hf *hf, const att_json_node *node) {
  (void)node;
  return att_hf_add_normalizer(hf, run, &nfkd);
}

att_status att_hf_normalizer_nfc(att_hf *hf, const att_json_node *node) {
  (void)node;
  return att_hf_add_normalizer(hf, run, &nfc);
}

att_status att_hf_normalizer_nfkc(att_hf *hf, const att_json_node *node) {
  (void)node;
  return att_hf_add_normalizer(hf, run, &nfkc);
}
