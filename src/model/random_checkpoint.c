/* Random weights. A stream of the generator is named by the weight's name and
 * layer, so that no weight depends on which others there are. */
#include "model/random_checkpoint.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/function64.h"
#include "tensor/random.h"

#define USUAL_DEVIATION 0.02
#define USUAL_THETA 10000

typedef struct random_weights {
  uint64_t seed;
  double deviation, look_back;
  float *numbers; /* of the weight asked for last */
  int64_t count;
} random_weights;

static uint64_t stream_of(const char *name, int64_t layer) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  for (; *name; name++) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
  return (hash ^ (uint64_t)(layer + 1)) * UINT64_C(0x100000001b3);
}

static double deviation_of(const att_checkpoint *checkpoint, att_slot slot) {
  bool ends_block = slot == ATT_SLOT_O_W || slot == ATT_SLOT_DOWN_W;
  const random_weights *file = checkpoint->file;
  if (!ends_block || strcmp(checkpoint->family, "gpt2") != 0) return file->deviation;
  return file->deviation / sqrt(2.0 * (double)checkpoint->config.layers);
}

/* Biases with which head h looks 1 + h positions back: a key's pairs all have the
 * direction (1, 0), a query's are turned against the rotation of that distance. */
static void draw_look_back(float *x, int64_t n, const att_checkpoint *checkpoint, att_slot slot,
                           int64_t layer) {
  const att_config *c = &checkpoint->config;
  const double size = sqrt(((const random_weights *)checkpoint->file)->look_back);
  const int64_t pairs = c->rope.pairs, dim = 2 * pairs, looking = c->heads / (layer ? 4 : 2);
  const bool query = slot == ATT_SLOT_Q_B;
  for (int64_t h = 0; h < n / dim && (!query || h < looking); h++) {
    for (int64_t i = 0; i < pairs; i++) {
      double turn = query ? (double)(h + 1) : 0;
      double angle = turn * att_pow64(c->rope.theta, -(double)i / (double)pairs);
      x[h * dim + i] = (float)(size * att_cos64(angle));
      x[h * dim + i + pairs] = (float)(-size * att_sin64(angle));
    }
  }
}

static void draw(float *x, int64_t n, const att_checkpoint *checkpoint, att_slot slot,
                 int64_t layer) {
  const random_weights *file = checkpoint->file;
  bool norm = slot == ATT_SLOT_NORM1_W || slot == ATT_SLOT_NORM2_W || slot == ATT_SLOT_NORM_W;
  if (att_slots[slot].kind == ATT_KIND_VECTOR) {
    for (int64_t i = 0; i < n; i++) x[i] = norm ? 1 : 0;
    if (file->look_back > 0 && layer < 2 && (slot == ATT_SLOT_Q_B || slot == ATT_SLOT_K_B))
      draw_look_back(x, n, checkpoint, slot, layer);
    return;
  }
  double deviation = deviation_of(checkpoint, slot);
  att_rng rng;
  att_rng_init(&rng, file->seed, stream_of(att_slots[slot].name, layer));
  for (int64_t i = 0; i < n; i++) x[i] = (float)((double)att_rng_normal(&rng) * deviation);
}

static att_status find(att_view *out, const att_checkpoint *checkpoint, att_slot slot,
                       int64_t layer, int64_t rows, int64_t columns) {
  random_weights *file = checkpoint->file;
  int64_t count = rows * columns;
  if (count > file->count) {
    float *numbers;
    ATT_TRY(att_alloc((void **)&numbers, checkpoint->runtime, count, sizeof *numbers, "a weight"));
    att_release(checkpoint->runtime, file->numbers, file->count, sizeof *numbers);
    file->numbers = numbers;
    file->count = count;
  }
  draw(file->numbers, count, checkpoint, slot, layer);
  bool vector = att_slots[slot].kind == ATT_KIND_VECTOR;
  *out = att_view_of(file->numbers, ATT_F32, vector ? 1 : 2, (int64_t[]){rows, columns});
  return ATT_OK;
}

static void close_weights(att_checkpoint *checkpoint) {
  random_weights *file = checkpoint->file;
  att_release(checkpoint->runtime, file->numbers, file->count, sizeof *file->numbers);
  att_release(checkpoint->runtime, file, 1, sizeof *file);
}

static int64_t either(int64_t given, int64_t usual) { return given ? given : usual; }

/* Families that a new model can be of, and what files call them. */
typedef enum new_kind { GPT2, LLAMA, QWEN2, ATTENTION, KINDS } new_kind;
static const char *const names[KINDS] = {"gpt2", "llama", "qwen2", "attention"};
static const char *const families[KINDS] = {"gpt2", "llama", "qwen2", "attend"};

static void fill_config(att_config *c, const att_init_options *o, new_kind kind) {
  bool llama = kind != GPT2, fed = kind != ATTENTION; /* attention: Llama without its ffn */
  att_config_init(c);
  c->layers = either(o->layers, 4);
  c->width = either(o->width, o->heads > 0 ? 32 * o->heads : 128);
  c->heads = either(o->heads, c->width >= 32 ? c->width / 32 : 1); /* never 0 */
  c->kv_heads = either(o->kv_heads, c->heads);
  c->head_dim = c->heads > 0 ? c->width / c->heads : 0;
  int64_t usual = llama ? (8 * c->width / 3 + 31) / 32 * 32 : 4 * c->width;
  c->ffn_width = fed ? either(o->ffn_width, usual) : 0;
  c->vocab = o->vocab;
  c->context = either(o->context, 256);
  c->tied_output = !o->untied;
  c->norm_eps = (double)1e-5f;
  c->norm = llama ? ATT_NORM_RMS : ATT_NORM_LAYER;
  c->position = llama && !o->learned_positions ? ATT_POSITION_ROPE : ATT_POSITION_LEARNED;
  c->rope.pairs = c->head_dim / 2;
  c->rope.theta = o->rope_theta > 0 ? o->rope_theta : USUAL_THETA;
  c->ffn = !fed ? ATT_FFN_NONE : llama ? ATT_FFN_GATED : ATT_FFN_PLAIN;
  c->activation = llama ? ATT_SILU : ATT_GELU_TANH;
  c->out_bias = c->ffn_bias = !llama;
  c->qkv_bias = kind == GPT2 || kind == QWEN2 || o->qkv_bias;
}

static att_status check_options(const att_init_options *o) {
  const int64_t sizes[] = {o->layers,    o->width, o->heads,  o->kv_heads,
                           o->ffn_width, o->vocab, o->context};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (sizes[i] < 0 || sizes[i] > INT32_MAX)
      return att_fail(ATT_BAD_ARGUMENT, "a size of the new model is %lld", (long long)sizes[i]);
  static const char *const names_of[] = {"rope_theta", "the deviation", "look_back"};
  const double numbers[] = {o->rope_theta, o->deviation, o->look_back};
  for (int i = 0; i < 3; i++)
    if (!(numbers[i] >= 0 && numbers[i] <= 1e9))
      return att_fail(ATT_BAD_ARGUMENT, "%s of the new model is %g", names_of[i], numbers[i]);
  return ATT_OK;
}

static att_status check(const att_config *c, bool llama) {
  if (c->width % c->heads)
    return att_fail(ATT_BAD_ARGUMENT, "%lld heads do not divide the width %lld",
                    (long long)c->heads, (long long)c->width);
  if (!llama && c->kv_heads != c->heads)
    return att_fail(ATT_BAD_ARGUMENT, "gpt2 has as many key/value heads as heads, %lld, not %lld",
                    (long long)c->heads, (long long)c->kv_heads);
  if (llama && c->head_dim % 2)
    return att_fail(ATT_BAD_ARGUMENT, "heads of %lld numbers cannot be rotated in pairs",
                    (long long)c->head_dim);
  return att_config_check(c, "the new model");
}

att_status att_random_checkpoint(att_checkpoint *out, att_runtime *runtime, const char *name,
                                 const att_init_options *options) {
  const char *family = options->family ? options->family : "";
  new_kind kind = GPT2;
  while (kind < KINDS && strcmp(family, names[kind]) != 0) kind++;
  if (kind == KINDS)
    return att_fail(ATT_UNSUPPORTED,
                    "family \"%s\"; new models are of gpt2, llama, qwen2 or attention", family);
  att_checkpoint checkpoint = {.format = "random",
                               .family = families[kind],
                               .path = name,
                               .find = find,
                               .close = close_weights,
                               .runtime = runtime};
  ATT_TRY(check_options(options));
  if (kind == ATTENTION && options->ffn_width)
    return att_fail(ATT_BAD_ARGUMENT, "family attention has no feed-forward network, so no width");
  if (kind == LLAMA && options->qkv_bias)
    return att_fail(ATT_BAD_ARGUMENT,
                    "family llama has no biases of queries, keys and values; qwen2 has");
  if ((kind == LLAMA || kind == QWEN2) && options->learned_positions)
    return att_fail(ATT_BAD_ARGUMENT, "family %s has no learned positions", family);
  fill_config(&checkpoint.config, options, kind);
  const att_config *c = &checkpoint.config;
  if (options->look_back > 0 && (!c->qkv_bias || c->position != ATT_POSITION_ROPE))
    return att_fail(ATT_BAD_ARGUMENT,
                    "look_back is made of a rotation and biases of queries and keys: family qwen2, "
                    "or attention with qkv_bias");
  ATT_TRY(check(&checkpoint.config, kind != GPT2));
  random_weights *file;
  ATT_TRY(att_alloc((void **)&file, runtime, 1, sizeof *file, "a checkpoint"));
  file->seed = options->seed;
  file->deviation = options->deviation > 0 ? options->deviation : USUAL_DEVIATION;
  file->look_back = options->look_back;
  checkpoint.file = file;
  *out = checkpoint;
  return ATT_OK;
}
