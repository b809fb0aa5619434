/* explain_block.c — the block around a head, for one position.
 *
 *   H = X + attention(norm1(X)),  Y = H + feed-forward(norm2(H))
 *   H = norm1(X + attention(X)),  Y = norm2(H + feed-forward(H))   of some models
 *
 * Each line: what it is, its length ‖x‖ (from the library: the root of x · x)
 * and its first numbers. Sites that the model does not have are left out.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine.h"
#include "explain.h"
#include "memory.h"
#include "number.h"
#include "table.h"

enum { MOST_SHOWN = 6, DIGITS = 3, COLUMNS = 8 };

static const struct {
  const char *site, *sign, *about;
  const char *after; /* the same where norms stand behind the sums; NULL: nothing new */
} places[] = {
    {"hook_resid_pre", "X", "residual stream comes in", "residual stream comes in"},
    {"ln1.hook_normalized", "", "after the first norm", NULL},
    {"attn.hook_z", "", "all heads side by side", "all heads side by side"},
    {"hook_attn_out", "+", "… through W_O: attention", "… through W_O: attention"},
    {"hook_resid_mid", "H", "X + attention", "norm of X + attention"},
    {"ln_cross.hook_normalized", "", "after the norm before it", NULL},
    {"hook_cross_attn_out", "+", "attention to the prompt", "attention to the prompt"},
    {"hook_resid_mid_cross", "H", "H + attention to the prompt", "norm of H + attention"},
    {"ln2.hook_normalized", "", "after the second norm", NULL},
    {"mlp.hook_pre", "", "feed-forward, hidden", "feed-forward, hidden"},
    {"mlp.hook_post", "", "… after its activation", "… after its activation"},
    {"hook_mlp_out", "+", "feed-forward", "feed-forward"},
    {"hook_resid_post", "Y", "H + feed-forward goes out", "norm of H + feed-forward goes out"},
};
enum { N_PLACES = sizeof places / sizeof places[0] };

/* What a place is called in this model; NULL if it says nothing new there. */
static const char *about_place(const explained *e, int i) {
  bool last = i == N_PLACES - 1;
  if (att_model_describe(e->what->model)->norms_after_sums) return places[i].after;
  if (last && !explain_site(e, "hook_resid_mid").data) return "X + attention goes out";
  return places[i].about;
}

/* The site's numbers at the query's position, flat, in new memory; NULL if the
 * model has no such site. */
static float *numbers_at(const explained *e, const char *site, int64_t *n) {
  att_view view = explain_site(e, site);
  if (!view.data) return NULL;
  view = att_view_select(view, 0, e->query);
  *n = att_view_count(&view);
  float *data = memory_get((size_t)*n, sizeof *data);
  att_view target = att_view_of(data, ATT_F32, view.ndim, view.shape);
  att_view_copy(&target, &view);
  return data;
}

static float length_of(const explained *e, const float *x, int64_t n) {
  float square = NAN;
  engine_scores(e->what->runtime, &square, x, x, 1, 1, n, 1.0);
  return sqrtf(square);
}

void explain_block_text(const cli *c, const explained *e) {
  const term *t = &c->term;
  char title[80];
  snprintf(title, sizeof title, "The block around it, at position %lld: X → H → Y",
           (long long)e->query);
  printf("\n%s8  ", t->inks[INK_STRONG]);
  text_wrap_from(stdout, t, title, 3, t->width);
  printf("%s", t->inks[INK_OFF]);
  /* Beside about 50 columns of words. */
  int shown = t->width < 60 ? 1 : (t->width - 50) / COLUMNS;
  if (shown > MOST_SHOWN) shown = MOST_SHOWN;
  table *rows = table_new(t, "llrr");
  table_head(rows, "");
  table_head(rows, "");
  table_head(rows, "‖·‖");
  table_head(rows, "first numbers");
  for (int i = 0; i < N_PLACES; i++) {
    int64_t n;
    const char *about = about_place(e, i);
    float *x = about ? numbers_at(e, places[i].site, &n) : NULL;
    if (!x) continue;
    const float length = length_of(e, x, n);
    char text[MOST_SHOWN * (NUMBER_BYTES + 2)] = "";
    size_t used = 0;
    for (int64_t d = 0; d < n && d < shown; d++) {
      char number[NUMBER_BYTES];
      number_write(number, (number_format){DIGITS, COLUMNS - 1}, x[d]);
      used += (size_t)snprintf(text + used, sizeof text - used, " %s", number);
    }
    table_put(rows, INK_STRONG, "%s", places[i].sign);
    table_put(rows, INK_OFF, "%s", about);
    table_number(rows, INK_STRONG, (number_format){DIGITS, 0}, length);
    table_put(rows, INK_OFF, "%s", text);
    free(x);
  }
  table_print(rows, 4);
}

void explain_block_json(json *j, const explained *e) {
  json_open(j, "block", '[');
  for (int i = 0; i < N_PLACES; i++) {
    int64_t n;
    float *x = numbers_at(e, places[i].site, &n);
    if (!x) continue;
    json_open(j, NULL, '{');
    json_string(j, "site", places[i].site);
    json_float(j, "norm", length_of(e, x, n));
    json_view(j, "values", att_view_of(x, ATT_F32, 1, &n));
    json_close(j);
    free(x);
  }
  json_close(j);
}
