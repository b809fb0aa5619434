/* Gradients are found by where their tensor lies in memory. Each backward function
 * writes its result in full; adding up what several steps ask for is done here, in
 * plain C. */
#include "tape.h"

#include <stdio.h>
#include <string.h>

#include "nn/backward.h"

enum { STEPS_MOST = 256, GRADIENTS_MOST = 512 };

struct golden_tape {
  int n, n_gradients;
  tape_step steps[STEPS_MOST];
  att_view of[GRADIENTS_MOST], gradient[GRADIENTS_MOST];
};

static struct golden_tape *tape_of(golden_case *c) {
  if (!c->tape) c->tape = golden_alloc(c, 1, sizeof *c->tape);
  return c->tape;
}

void golden_tape(golden_case *c, const tape_step *step) {
  struct golden_tape *tape = tape_of(c);
  if (tape->n < STEPS_MOST)
    tape->steps[tape->n++] = *step;
  else
    golden_fail(c->g, "the tape is too short");
}

att_view golden_gradient(golden_case *c, att_view of) {
  struct golden_tape *tape = tape_of(c);
  for (int i = 0; i < tape->n_gradients; i++)
    if (tape->of[i].data == of.data && att_view_count(&tape->of[i]) == att_view_count(&of))
      return golden_reshaped(tape->gradient[i], of.ndim, of.shape);
  att_view zeros = golden_new(c, ATT_F32, of.ndim, of.shape);
  memset(zeros.data, 0, (size_t)att_view_count(&of) * sizeof(float));
  if (tape->n_gradients == GRADIENTS_MOST) {
    golden_fail(c->g, "too many gradients");
    return zeros;
  }
  tape->of[tape->n_gradients] = of;
  return tape->gradient[tape->n_gradients++] = zeros;
}

/* gradient(of) += part */
static void give(golden_case *c, att_view of, att_view part) {
  if (!of.data) return;
  float *sum = golden_gradient(c, of).data;
  for (int64_t i = 0; i < att_view_count(&part); i++) sum[i] += ((const float *)part.data)[i];
}

static att_view like(golden_case *c, att_view of) {
  return of.data ? golden_new(c, ATT_F32, of.ndim, of.shape) : of;
}

/* ---- steps ---- */

typedef struct way_back {
  golden_case *c;
  att_backward pass;
  int64_t cuts[2];
} way_back;

static way_back begin(golden_case *c, int64_t rows, int64_t floats) {
  const att_runtime *runtime = c->g->runtime;
  return (way_back){
      c,
      {.runtime = runtime,
       .rows = rows,
       .slices = 1,
       .workspace = golden_alloc(c, att_backward_floats(runtime, 1, 64), sizeof(float)),
       .transposed = {.panels = golden_alloc(c, floats, sizeof(float))}},
      {0, rows}};
}

static void linear(golden_case *c, const tape_step *s, att_view dy) {
  int64_t n = s->weight.shape[0], k = s->weight.shape[1];
  way_back b = begin(c, s->x.shape[0], (n + 16) * (k + 16));
  b.pass.cuts = b.cuts;
  att_view dx = like(c, s->x), dw = like(c, s->weight), db = like(c, s->bias);
  att_linear_backward_w(&b.pass, dy.data, n, s->x.data, k, dw.data, db.data);
  att_linear_backward_x(&b.pass, s->weight.data, dy.data, n, k, NULL, dx.data);
  give(c, s->x, dx);
  give(c, s->weight, dw);
  give(c, s->bias, db);
}

static void norm(golden_case *c, const tape_step *s, att_view dy) {
  way_back b = begin(c, s->x.shape[0], 1);
  b.pass.cuts = b.cuts;
  att_norm layer = {ATT_NORM_LAYER, (float)s->eps, s->x.shape[1], s->weight.data, s->bias.data};
  att_view dx = like(c, s->x), terms = like(c, s->x), dw = like(c, s->weight);
  att_view db = like(c, s->bias);
  att_norm_backward(&b.pass, &layer, s->x.data, dy.data, dx.data, terms.data, dw.data, db.data);
  give(c, s->x, dx);
  give(c, s->weight, dw);
  give(c, s->bias, db);
}

static void activation(golden_case *c, const tape_step *s, att_view dy) {
  att_view dx = like(c, s->x);
  att_activation_backward(c->g->runtime, s->kind == TAPE_GELU ? ATT_GELU : ATT_RELU, s->x.data,
                          NULL, dy.data, att_view_count(&s->x), dx.data, NULL);
  give(c, s->x, dx);
}

/* Rows [N*S,E] of [N*(S+extra),E], and the row that was appended after them. */
static void append(golden_case *c, const tape_step *s, att_view dy) {
  int64_t width = s->x.shape[1], keys = s->x.shape[0] / s->batch, total = dy.shape[0] / s->batch;
  att_view dx = like(c, s->x), row = like(c, s->bias);
  if (row.data) memset(row.data, 0, (size_t)width * sizeof(float));
  for (int64_t b = 0; b < s->batch; b++) {
    const float *from = (const float *)dy.data + b * total * width;
    memcpy((float *)dx.data + b * keys * width, from, (size_t)(keys * width) * sizeof *from);
    for (int64_t i = 0; row.data && i < width; i++)
      ((float *)row.data)[i] += from[keys * width + i];
  }
  give(c, s->x, dx);
  give(c, s->bias, row);
}

/* The heads of q, k, v and out are strides over rows; so are those of gradients. */
static void attention(golden_case *c, const tape_step *s, att_view dy) {
  const att_view *in[] = {&s->attention.q, &s->attention.k, &s->attention.v};
  att_sdpa_grads grads;
  att_sdpa_grads_init(&grads);
  att_view *out[] = {&grads.dq, &grads.dk, &grads.dv}, rows[3];
  for (int i = 0; i < 3; i++) {
    int64_t shape[2] = {in[i]->shape[0] * in[i]->shape[2], in[i]->shape[1] * in[i]->shape[3]};
    rows[i] = golden_new(c, ATT_F32, 2, shape);
    *out[i] = *in[i];
    out[i]->data = rows[i].data;
  }
  grads.out = grads.dout = s->attention.out;
  grads.dout.data = dy.data;
  grads.lse = s->attention.lse;
  att_sdpa_args args = s->attention;
  args.weights = att_view_none();
  att_sdpa_backward_plan *plan;
  if (!golden_ok(c->g, att_sdpa_backward_plan_create(&plan, c->g->runtime, &args, &grads),
                 "the plan of attention's backward"))
    return;
  golden_ok(c->g, att_sdpa_backward(plan, &args, &grads), "attention's backward");
  att_sdpa_backward_plan_free(plan);
  for (int i = 0; i < 3; i++) {
    att_view of = rows[i];
    of.data = in[i]->data;
    give(c, of, rows[i]);
  }
}

static void run_back(golden_case *c, att_view out, att_view dout) {
  struct golden_tape *tape = tape_of(c);
  give(c, out, dout);
  for (int i = tape->n - 1; i >= 0; i--) {
    const tape_step *s = &tape->steps[i];
    att_view dy = golden_gradient(c, s->y);
    switch (s->kind) {
    case TAPE_LINEAR: linear(c, s, dy); break;
    case TAPE_NORM: norm(c, s, dy); break;
    case TAPE_ADD: give(c, s->x, dy), give(c, s->other, dy); break;
    case TAPE_GELU:
    case TAPE_RELU: activation(c, s, dy); break;
    case TAPE_APPEND: append(c, s, dy); break;
    case TAPE_ATTENTION: attention(c, s, dy); break;
    }
  }
}

/* ---- comparing ---- */

/* A parameter that was used in thirds has three gradients. */
static att_view parameter_gradient(golden_case *c, att_view parameter, bool thirds) {
  if (!thirds) return golden_gradient(c, parameter);
  att_view whole = golden_new(c, ATT_F32, parameter.ndim, parameter.shape);
  int64_t n = parameter.shape[0] / 3;
  for (int64_t i = 0; i < 3; i++) {
    att_view part = att_view_slice(whole, 0, i * n, n);
    att_view gradient = golden_gradient(c, att_view_slice(parameter, 0, i * n, n));
    golden_ok(c->g, att_view_copy(&part, &gradient), "copying a gradient");
  }
  return whole;
}

static void expect_parameters(golden_case *c) {
  double tolerance = golden_number(c, "tol_f32_grads", 1e-5);
  for (int64_t i = 0; i < att_archive_count(c->archive); i++) {
    const char *name = att_archive_name(c->archive, i);
    char key[128];
    if (strncmp(name, "grad.", 5) != 0) continue;
    snprintf(key, sizeof key, "param.%s", name + 5);
    att_view parameter = golden_view(c, key);
    if (!parameter.data) {
      golden_fail(c->g, "%s without its parameter", name);
      continue;
    }
    bool thirds = strstr(name, "in_proj_") != NULL;
    golden_expect(c, name, parameter_gradient(c, parameter, thirds), golden_view(c, name),
                  tolerance);
  }
}

/* [N,L,E] as rows [N*L,E], whichever axis is first in the file. */
static att_view as_rows(golden_case *c, att_view x) {
  if (golden_number(c, "batch_first", 1) == 0) x = att_view_transpose(x, 0, 1);
  return golden_reshaped(golden_as(c, x, x.dtype), 2,
                         (int64_t[]){x.shape[0] * x.shape[1], x.shape[2]});
}

void golden_back(golden_case *c, att_view out, int64_t batch, int64_t n) {
  att_view dout = golden_view(c, "grad_out");
  if (!dout.data || dout.ndim != 3 || att_view_count(&dout) != batch * n * out.shape[1]) {
    golden_skip(c->g, "a case without grad_out");
    return;
  }
  run_back(c, out, as_rows(c, dout));
  expect_parameters(c);
}

void golden_expect_input(golden_case *c, const char *name, const att_view *rows, int count,
                         int64_t batch, int64_t n) {
  att_view want = golden_view(c, name);
  if (!want.data || c->g->run_skipped) return;
  att_view sum = golden_new(c, ATT_F32, 2, rows[0].shape);
  memset(sum.data, 0, (size_t)att_view_count(&sum) * sizeof(float));
  for (int i = 0; i < count; i++) {
    const float *part = golden_gradient(c, rows[i]).data;
    for (int64_t j = 0; j < att_view_count(&sum); j++) ((float *)sum.data)[j] += part[j];
  }
  if (att_view_count(&want) != batch * n * sum.shape[1]) {
    golden_fail(c->g, "%s has another shape than its input", name);
    return;
  }
  golden_expect(c, name, sum, as_rows(c, want), golden_number(c, "tol_f32_grads", 1e-5));
}
