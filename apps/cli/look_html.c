/* look_html.c — a page that holds its data and asks nobody for anything.
 *
 * look_page.html is the page; here its data become JSON inside it. No text of the user's
 * is ever markup: JSON cannot end its element, since < is spelled \u003c, and the page
 * makes text nodes of it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "json_out.h"
#include "look_export.h"

static void put_labels(json *j, const char *key, const look *l, const int32_t *ids, int64_t n) {
  const term plain = term_plain(80, true);
  json_open(j, key, '[');
  for (int64_t i = 0; i < n; i++) {
    const label token = subject_label(l->what, &plain, ids[i], LABEL_COLUMNS);
    json_string(j, NULL, token.text);
  }
  json_close(j);
}

/* The scale of colours on light and dark pages, so that the page's are those of files. */
static void put_colors(json *j, const look *l) {
  enum { STEPS = 256 };
  static const char *const themes[2] = {"dark", "light"}, *const sides[2] = {"positive",
                                                                             "negative"};
  json_open(j, "colors", '{');
  for (int theme = 0; theme < 2; theme++) {
    term t = term_plain(80, true);
    t.light = theme;
    const heat h = {.term = &t, .is_signed = l->options.stage != STAGE_WEIGHTS, .limit = 1};
    json_open(j, themes[theme], '{');
    for (int side = 0; side < 2; side++) {
      json_open(j, sides[side], '[');
      for (int i = 0; i < STEPS; i++) {
        char color[LOOK_COLOR];
        look_color(color, &h, (side ? -1.0f : 1.0f) * (float)i / (STEPS - 1));
        json_string(j, NULL, color);
      }
      json_close(j);
    }
    json_close(j);
  }
  json_close(j);
}

/* null is a hidden key; JSON has no word for what is no number. */
static void put_number(json *j, float x) {
  if (isnan(x))
    json_string(j, NULL, "NaN");
  else
    json_float(j, NULL, x);
}

static void put_head(json *j, const look *l, int64_t layer, int64_t head) {
  const look_map m = look_map_of(l, layer, head);
  json_open(j, NULL, '{');
  json_int(j, "layer", layer);
  json_int(j, "head", head);
  json_open(j, "values", '[');
  for (int64_t i = 0; i < m.rows; i++) {
    json_open(j, NULL, '[');
    for (int64_t k = 0; k < m.n; k++) put_number(j, look_bin(&m, i, k, 1, 1));
    json_close(j);
  }
  json_close(j);
  json_close(j);
}

static void put_data(FILE *out, const look *l) {
  static const char *const stages[] = {"raw scores", "scaled scores", "scores", "weights"};
  const look_choice k = look_choice_of(l);
  json j = json_begin(out);
  json_open(&j, NULL, '{');
  json_string(&j, "model", subject_name(l->what));
  json_string(&j, "class", !l->what->model ? "dump" : att_runtime_class(l->what->runtime));
  edit_json(&j, &l->read.edited);
  char name[LOOK_NAME];
  look_name(name, l, 0, 0);
  json_string(&j, "stage",
              l->rolled          ? name
              : l->options.words ? "weights of words, sum over keys, mean over queries"
                                 : stages[l->options.stage]);
  json_bool(&j, "across", l->read.across);
  json_int(&j, "first_query", l->read.first_query);
  if (!l->what->texts) { /* else there are no ids */
    json_ints(&j, "query_ids", l->read.query_ids, l->read.n_queries);
    json_ints(&j, "key_ids", l->read.key_ids, l->read.n_keys);
  }
  put_labels(&j, "query_tokens", l, l->read.query_ids, l->read.n_queries);
  put_labels(&j, "key_tokens", l, l->read.key_ids, l->read.n_keys);
  put_colors(&j, l);
  json_open(&j, "heads", '[');
  for (int64_t layer = k.layer; layer < k.layer_end; layer++)
    for (int64_t head = k.head; head < k.head_end; head++) put_head(&j, l, layer, head);
  json_close(&j);
  json_close(&j);
  json_end(&j);
}

void look_write_html(FILE *out, const look *l) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *memory = open_memstream(&text, &bytes);
  fputs(look_page_before, out);
  if (memory) put_data(memory, l);
  if (memory) fclose(memory);
  for (size_t i = 0; i < bytes; i++)
    if (text[i] == '<')
      fputs("\\u003c", out);
    else
      fputc(text[i], out);
  fputs(look_page_behind, out);
  free(text);
}
