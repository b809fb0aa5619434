/* Kernels of training against their definitions, every target, bit for bit. */
#include "kcheck.h"

static const int64_t lengths[] = {1, 2, 15, 16, 17, 31, 33, 100, 128, 1000};
enum { n_lengths = sizeof lengths / sizeof lengths[0], OUTPUTS = 3 };

typedef void call(const att_kernels *k, float **out, const guarded *in, int64_t n);

static void rms(const att_kernels *k, float **out, const guarded *in, int64_t n) {
  k->rms_norm_backward(out[0], out[1], in[0].data, in[1].data, in[2].data, n, 1e-5f);
}
static void layer(const att_kernels *k, float **out, const guarded *in, int64_t n) {
  k->layer_norm_backward(out[0], out[1], in[0].data, in[1].data, in[2].data, n, 1e-5f);
}
static void layer_without_weight(const att_kernels *k, float **out, const guarded *in, int64_t n) {
  k->layer_norm_backward(out[0], out[1], in[0].data, in[1].data, NULL, n, 0);
}
static void gelu_erf(const att_kernels *k, float **out, const guarded *in, int64_t n) {
  k->gelu_erf_backward(out[0], in[0].data, in[1].data, n);
}
static void gelu_tanh_in_place(const att_kernels *k, float **out, const guarded *in, int64_t n) {
  memcpy(out[0], in[0].data, (size_t)n * sizeof(float));
  k->gelu_tanh_backward(out[0], out[0], in[1].data, n);
}
static void silu_in_place(const att_kernels *k, float **out, const guarded *in, int64_t n) {
  for (int i = 0; i < 2; i++) memcpy(out[i], in[i + 1].data, (size_t)n * sizeof(float));
  k->silu_mul_backward(out[0], out[1], in[0].data, out[0], out[1], n);
}
static void cross_entropy(const att_kernels *k, float **out, const guarded *in, int64_t n) {
  k->cross_entropy(out[0], out[1], in[1].data, n, n / 3, 0.7f);
}
static void loss_alone(const att_kernels *k, float **out, const guarded *in, int64_t n) {
  k->cross_entropy(out[0], NULL, in[1].data, n, n - 1, 0);
}
static void adamw(const att_kernels *k, float **out, const guarded *in, int64_t n) {
  for (int i = 0; i < 3; i++) memcpy(out[i], in[i].data, (size_t)n * sizeof(float));
  for (int64_t i = 0; i < n; i++) out[2][i] *= out[2][i]; /* a mean square */
  att_adamw step = {.w = out[0],
                    .m = out[1],
                    .v = out[2],
                    .g = in[1].data,
                    .n = n,
                    .clip = 0.3f,
                    .beta1 = 0.9f,
                    .rest1 = 0.1f,
                    .beta2 = 0.95f,
                    .rest2 = 0.05f,
                    .correction1 = 10,
                    .correction2 = 20,
                    .eps = 1e-8f,
                    .rate = 1e-3f,
                    .keep = 0.9999f};
  k->adamw(&step);
}

static const struct {
  const char *name;
  call *run;
} calls[] = {{"rms_norm_backward", rms},
             {"layer_norm_backward", layer},
             {"layer_norm_backward without weight", layer_without_weight},
             {"gelu_erf_backward", gelu_erf},
             {"gelu_tanh_backward in place", gelu_tanh_in_place},
             {"silu_mul_backward in place", silu_in_place},
             {"cross_entropy", cross_entropy},
             {"cross_entropy, loss alone", loss_alone},
             {"adamw", adamw}};

static void compare(const candidate *c, int which, const guarded *in, int64_t n, bool edges) {
  guarded out[2][OUTPUTS];
  for (int side = 0; side < 2; side++) {
    float *data[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++) {
      out[side][i] = guarded_floats(n);
      data[i] = out[side][i].data;
      memset(data[i], 0, (size_t)n * sizeof(float));
    }
    calls[which].run(side ? &c->plain : &c->table, data, in, n);
  }
  for (int i = 0; i < OUTPUTS; i++) {
    kcheck_same(c, calls[which].name, out[0][i], out[1][i], "output %d, n = %lld, edges %d\n", i,
                (long long)n, edges);
    guarded_free(&out[0][i]), guarded_free(&out[1][i]);
  }
}

static void training_kernels_differ_in_a_bit(void **state) {
  (void)state;
  candidate all[8];
  int n = kcheck_candidates(all, 8);
  att_rng rng;
  att_rng_init(&rng, 5, 1);
  for (int round = 0; round < 2 * n_lengths; round++) {
    int64_t length = lengths[round % n_lengths];
    bool edges = round >= n_lengths;
    guarded in[3];
    for (int i = 0; i < 3; i++) {
      in[i] = guarded_floats(length);
      kcheck_fill(&in[i], &rng, edges);
    }
    for (int i = 0; i < n; i++)
      for (size_t which = 0; which < sizeof calls / sizeof *calls; which++)
        compare(&all[i], (int)which, in, length, edges);
    for (int i = 0; i < 3; i++) guarded_free(&in[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(training_kernels_differ_in_a_bit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
