/* How far float32 attention is from the exact result: long rows (up to 100,000
 * keys) with the maximum anywhere, and numbers that break a careless softmax. */
#include "attention_case.h"
#include "oracle_check.h"

static att_runtime *runtimes[3];

static int set_up(void **state) {
  (void)state;
  runtimes[0] = case_runtime(NULL, 2);
  runtimes[1] = case_runtime("plain", 1);
  runtimes[2] = case_runtime("portable", 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  for (int n = 0; n < 3; n++) att_runtime_free(runtimes[n]);
  return 0;
}

/* ---- long rows ------------------------------------------------------------ */

enum { rows = 2, width = 32 };

typedef struct long_case {
  att_case c;
  int64_t keys, low, high; /* keys low … high-1 are live */
} long_case;

static void long_make(long_case *l, int64_t keys, uint64_t seed) {
  case_sizes(&l->c, seed, 0, ATT_F32);
  l->c.b = l->c.g = l->c.h = l->c.n_sequences = 1;
  l->c.t = rows, l->c.s = 1, l->c.d = l->c.dv = width;
  case_build(&l->c);
  const int64_t shape[4] = {1, 1, keys, width};
  l->c.args.k = case_view(&l->c, ATT_F32, 4, shape, false, 0);
  l->c.args.v = case_view(&l->c, ATT_F32, 4, shape, false, 0);
  att_view *inputs[] = {&l->c.args.q, &l->c.args.k, &l->c.args.v};
  for (int n = 0; n < 3; n++) /* deviation 1, no outliers */
    for (int64_t e = 0; e < att_view_count(inputs[n]); e++)
      ((float *)inputs[n]->data)[e] = (float)(sqrt(12) * (case_uniform(&l->c) - 0.5));
  l->keys = l->high = keys;
  l->low = 0;
}

/* Makes key `at` the largest by `peak` in every row by a feature of its own: the
 * last, since a chain that begins with a large term rounds all others to it. */
static void set_peak(long_case *l, int64_t at, double peak) {
  float *q = l->c.args.q.data, *k = l->c.args.k.data;
  for (int64_t i = 0; i < rows; i++) q[i * width + width - 1] = 1;
  for (int64_t j = 0; j < l->keys; j++)
    k[j * width + width - 1] = j == at ? (float)(peak * sqrt(width)) : 0;
}

/* A NaN is the worst of all, which fmax would forget. */
static void keep_worst(double *worst, double error) {
  if (!(error <= *worst)) *worst = error;
}

/* Errors of one row: of out, relative to the weighted size of the values, and of
 * lse, absolute. */
static void measure(const long_case *l, int64_t row, double *out_error, double *lse_error) {
  const float *q = (float *)l->c.args.q.data + row * width, *k = l->c.args.k.data;
  const float *v = l->c.args.v.data, *out = (float *)l->c.args.out.data + row * width;
  double *s = malloc((size_t)l->keys * sizeof *s), max = -INFINITY, sum = 0;
  double mixed[width] = {0}, size[width] = {0};
  for (int64_t j = l->low; j < l->high; j++) {
    double dot = 0;
    for (int d = 0; d < width; d++) dot += (double)q[d] * (double)k[j * width + d];
    s[j] = dot / sqrt(width);
    max = fmax(max, s[j]);
  }
  for (int64_t j = l->low; j < l->high; j++) {
    double w = exp(s[j] - max);
    sum += w;
    for (int c = 0; c < width; c++) {
      mixed[c] += w * (double)v[j * width + c];
      size[c] += w * fabs((double)v[j * width + c]);
    }
  }
  free(s);
  for (int c = 0; c < width; c++)
    keep_worst(out_error, fabs((double)out[c] - mixed[c] / sum) / (size[c] / sum));
  keep_worst(lse_error, fabs((double)((float *)l->c.args.lse.data)[row] - max - log(sum)));
}

/* The longest chain is a span, 512 roundings: where one key outweighs the others,
 * a random walk of sqrt(512) * 0.29 ulp = 8e-7. The bound is five of those; one
 * chain over 100,000 keys would go three times beyond it. */
static void expect_accurate(long_case *l, const char *what) {
  double out_error = 0, lse_error = 0;
  for (int r = 0; r < (l->keys < 50000 ? 3 : 1); r++) { /* the definition takes its time */
    assert_ok(att_sdpa_once(runtimes[r], &l->c.args));
    for (int64_t i = 0; i < rows; i++) measure(l, i, &out_error, &lse_error);
  }
  if (getenv("ATT_SHOW"))
    print_message("%lld keys, %s: out %.2g, lse %.2g\n", (long long)l->keys, what, out_error,
                  lse_error);
  if (!(out_error <= 4e-6 && lse_error <= 4e-6))
    fail_msg("%lld keys, %s: error of out %g, of lse %g", (long long)l->keys, what, out_error,
             lse_error);
}

static const int64_t lengths[] = {513, 10000, 100000};

/* Emulated processors are spared the longest. */
static int n_lengths(void) { return getenv("ATT_TEST_EMULATED") ? 2 : 3; }

static void long_rows_lose_digits(void **state) {
  (void)state;
  for (int n = 0; n < n_lengths(); n++) {
    long_case l;
    long_make(&l, lengths[n], 1);
    expect_accurate(&l, "random scores");
    case_free(&l.c);
  }
}

/* Early maximum: all later blocks are rescaled by it; late one: everything
 * before is rescaled once more. */
static void place_of_the_maximum_costs_digits(void **state) {
  (void)state;
  for (int n = 0; n < n_lengths(); n++) {
    const int64_t places[] = {0, lengths[n] / 2, lengths[n] - 1};
    for (int place = 0; place < 3; place++) {
      long_case l;
      long_make(&l, lengths[n], 2);
      set_peak(&l, places[place], 8);
      expect_accurate(&l, "maximum somewhere");
      case_free(&l.c);
    }
  }
}

static void hidden_spans_cost_digits(void **state) {
  (void)state;
  for (int n = 0; n < n_lengths(); n++) {
    const int64_t ranges[][2] = {{512, lengths[n]},            /* all but the first span */
                                 {lengths[n] - 1, lengths[n]}, /* one key */
                                 {lengths[n] / 128 * 128, lengths[n]} /* the last block */};
    for (int range = 0; range < 3; range++) {
      long_case l;
      long_make(&l, lengths[n], 3);
      l.low = ranges[range][0], l.high = ranges[range][1];
      int64_t shape[1] = {lengths[n]};
      att_view live = case_view(&l.c, ATT_BOOL, 1, shape, false, 0);
      memset((uint8_t *)live.data + l.low, 1, (size_t)(l.high - l.low));
      case_rule(&l.c, (att_mask_rule){.kind = ATT_MASK_DENSE, .query_side = live});
      set_peak(&l, l.high - 1, 3);
      expect_accurate(&l, "hidden spans");
      case_free(&l.c);
    }
  }
}

/* ---- difficult numbers ---------------------------------------------------- */

static double sign(att_case *c) { return case_chance(c, 50) ? 1 : -1; }

/* One kind of numbers each: {queries and keys, values, bias}. */
static double query_of(att_case *c, int kind) {
  switch (kind) {
  case 0: return 60 * sign(c);                                 /* scores of thousands */
  case 1: return 1e-22 * case_value(c);                        /* products are denormal */
  case 2: return sign(c) * pow(10, 36 * case_uniform(c) - 18); /* any magnitude */
  case 3: return 1e18;                                         /* products near overflow */
  default: return case_value(c);
  }
}

static double value_of(att_case *c, int kind) {
  switch (kind) {
  case 4: return 1e36 * sign(c);        /* cancelling giants */
  case 5: return 1e-40 * case_value(c); /* denormals */
  case 6: return sign(c) * pow(10, 60 * case_uniform(c) - 30);
  default: return case_value(c);
  }
}

static double bias_of(att_case *c, int kind) {
  switch (kind) {
  case 7: return -1e4 * case_uniform(c);
  case 8: return case_chance(c, 50) ? -3.4e38 : 3e38; /* differences overflow */
  case 9: return case_chance(c, 90) ? -1e30 : 0;
  default: return 0;
  }
}

/* Against the oracle with its own bound for these very numbers. */
static void difficult_numbers_break_the_softmax(void **state) {
  (void)state;
  for (int kind = 0; kind < 10; kind++)
    for (uint64_t seed = 1; seed <= 3 * test_calls(2); seed++) {
      att_case c;
      char label[64];
      case_sizes(&c, seed * 16 + (uint64_t)kind, CASE_RESULTS | CASE_BLOCK_SIZES, ATT_F32);
      c.d = kind == 3 ? 2 : c.d;
      case_build(&c);
      const int64_t shape[1] = {c.s};
      c.args.bias = case_input(&c, ATT_F32, 1, shape);
      att_view *inputs[] = {&c.args.q, &c.args.k, &c.args.v, &c.args.bias};
      for (int n = 0; n < 4; n++)
        for (int64_t e = 0; e < att_view_count(inputs[n]); e++)
          case_store(case_element(inputs[n], e), ATT_F32,
                     n < 2   ? query_of(&c, kind)
                     : n < 3 ? value_of(&c, kind)
                             : bias_of(&c, kind));
      snprintf(label, sizeof label, "numbers of kind %d, seed %llu", kind,
               (unsigned long long)seed);
      assert_ok(att_sdpa_once(runtimes[seed % 3], &c.args));
      oracle_check(&c.args, label);
      case_free(&c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_rows_lose_digits),
      cmocka_unit_test(place_of_the_maximum_costs_digits),
      cmocka_unit_test(hidden_spans_cost_digits),
      cmocka_unit_test(difficult_numbers_break_the_softmax),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
