/* attend for JavaScript: flat functions over the public headers, whose structs
 * JavaScript cannot see. wasm/attend.mjs is the other side and gives them the
 * shape that people use. One runtime with one thread; sizes are 32-bit, as
 * addresses are. Functions that can fail return NULL or a status other than 0,
 * and attend_message says why. */
#include <stdlib.h>

#include "attend/attend.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

static att_runtime *runtime;

/* Memory of the module, for the host's arrays. */
void *EXPORT(attend_allocate)(int32_t bytes) { return malloc(bytes > 0 ? (size_t)bytes : 1); }
void EXPORT(attend_release)(void *memory) { free(memory); }

const char *EXPORT(attend_message)(void) { return att_message(); }
const char *EXPORT(attend_version)(void) { return att_version(); }
const char *EXPORT(attend_target)(void) { return att_runtime_target(runtime); }
const char *EXPORT(attend_class)(void) { return att_runtime_class(runtime); }

/* Once, before anything else; target NULL for the best. */
int32_t EXPORT(attend_start)(const char *target) {
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.threads = 1;
  options.target = target;
  return (int32_t)att_runtime_create(&runtime, &options);
}

/* ---- attention ------------------------------------------------------------ */

/* A call on adjacent f32 tensors; absent ones are NULL. attend.mjs writes the
 * fields in this order, four bytes each, doubles last. */
typedef struct sdpa_call {
  float *q, *k, *v, *out; /* [B,H,T,D] [B,G,S,D] [B,G,S,Dv] [B,H,T,Dv] */
  float *lse, *weights;   /* [B,H,T] [B,H,T,S] */
  float *bias;            /* bias_shape */
  uint8_t *visible;       /* visible_shape: 0 hides */
  float *slopes, *sinks;  /* [H] */
  int32_t b, h, g, t, s, d, dv;
  int32_t bias_shape[4], visible_shape[4];
  int32_t causal;                   /* 0 no, 1 from the top left, 2 from the bottom right */
  int32_t windowed, left, right, _; /* keys to both sides, -1 for any number */
  double scale, softcap;            /* infinity: default, none */
} sdpa_call;

static att_view view(void *data, att_dtype dtype, int32_t b, int32_t h, int32_t t, int32_t d) {
  const int64_t shape[4] = {b, h, t, d};
  return data ? att_view_of(data, dtype, 4, shape) : (att_view){0};
}

static att_view view_of(void *data, att_dtype dtype, const int32_t n[4]) {
  return view(data, dtype, n[0], n[1], n[2], n[3]);
}

static att_view row(float *data, int32_t n) {
  const int64_t shape[1] = {n};
  return data ? att_view_of(data, ATT_F32, 1, shape) : (att_view){0};
}

static att_status add_mask(att_mask *mask, const sdpa_call *c) {
  mask->align = c->causal == 2 ? ATT_ALIGN_BOTTOM_RIGHT : ATT_ALIGN_TOP_LEFT;
  att_status status = ATT_OK;
  if (c->causal) status = att_mask_add(mask, (att_mask_rule){.kind = ATT_MASK_CAUSAL});
  if (status == ATT_OK && c->windowed)
    status = att_mask_add(
        mask, (att_mask_rule){.kind = ATT_MASK_WINDOW, .left = c->left, .right = c->right});
  if (status == ATT_OK && c->visible)
    status = att_mask_add(
        mask, (att_mask_rule){.kind = ATT_MASK_DENSE,
                              .query_side = view_of(c->visible, ATT_BOOL, c->visible_shape)});
  return status;
}

int32_t EXPORT(attend_sdpa)(const sdpa_call *c) {
  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.q = view(c->q, ATT_F32, c->b, c->h, c->t, c->d);
  args.k = view(c->k, ATT_F32, c->b, c->g, c->s, c->d);
  args.v = view(c->v, ATT_F32, c->b, c->g, c->s, c->dv);
  args.out = view(c->out, ATT_F32, c->b, c->h, c->t, c->dv);
  args.lse = view(c->lse, ATT_F32, c->b, c->h, c->t, 1);
  args.lse.ndim = c->lse ? 3 : 0;
  args.weights = view(c->weights, ATT_F32, c->b, c->h, c->t, c->s);
  args.bias = view_of(c->bias, ATT_F32, c->bias_shape);
  args.alibi_slopes = row(c->slopes, c->h);
  args.sinks = row(c->sinks, c->h);
  args.scale = c->scale;
  args.softcap = c->softcap;
  att_status status = add_mask(&args.mask, c);
  return (int32_t)(status == ATT_OK ? att_sdpa_once(runtime, &args) : status);
}

/* ---- models --------------------------------------------------------------- */

/* A path that the host's file functions know; NULL for the built-in model. */
att_model *EXPORT(attend_model_open)(const char *path, const char *tokenizer) {
  att_open_options options;
  att_open_options_init(&options);
  options.tokenizer_path = tokenizer;
  att_model *model;
  return att_model_open(&model, runtime, path, &options) == ATT_OK ? model : NULL;
}
void EXPORT(attend_model_close)(att_model *model) { att_model_close(model); }

/* name, family, format, dtype; layers, width, heads, kv_heads, head_dim,
 * ffn_width, vocab, context, parameters. */
const char *EXPORT(attend_model_text)(const att_model *model, int32_t which) {
  const att_model_info *i = att_model_describe(model);
  const char *const texts[] = {i->name, i->family, i->format, i->dtype};
  return which >= 0 && which < 4 ? texts[which] : NULL;
}
double EXPORT(attend_model_number)(const att_model *model, int32_t which) {
  const att_model_info *i = att_model_describe(model);
  const int64_t numbers[] = {i->layers,    i->width, i->heads,   i->kv_heads,  i->head_dim,
                             i->ffn_width, i->vocab, i->context, i->parameters};
  return which >= 0 && which < 9 ? (double)numbers[which] : -1;
}
int32_t EXPORT(attend_model_is_end)(const att_model *model, int32_t id) {
  return att_model_is_end(model, id);
}

/* Ids of a text, *n of them; the host frees the encoding. */
att_encoding *EXPORT(attend_encode)(const att_model *model, const char *text, int32_t bytes) {
  att_encoding *encoding;
  att_status status = att_encode(&encoding, att_model_tokenizer(model), text, (size_t)bytes, NULL);
  return status == ATT_OK ? encoding : NULL;
}
int32_t EXPORT(attend_encoding_size)(const att_encoding *e) { return (int32_t)e->n; }
const int32_t *EXPORT(attend_encoding_ids)(const att_encoding *e) { return e->ids; }
void EXPORT(attend_encoding_free)(att_encoding *e) { att_encoding_free(e); }

att_decoder *EXPORT(attend_decoder_create)(const att_model *model) {
  att_decoder *decoder;
  att_status status = att_decoder_create(&decoder, att_model_tokenizer(model), NULL);
  return status == ATT_OK ? decoder : NULL;
}
void EXPORT(attend_decoder_free)(att_decoder *decoder) { att_decoder_free(decoder); }

/* The text of ids; its length at *bytes. */
const char *EXPORT(attend_decode)(size_t *bytes, att_decoder *decoder, const int32_t *ids,
                                  int32_t n) {
  const char *text;
  return att_decoder_decode(&text, bytes, decoder, ids, n) == ATT_OK ? text : NULL;
}

/* ---- sessions ------------------------------------------------------------- */

/* context 0: the model's own. */
att_session *EXPORT(attend_session_create)(const att_model *model, int32_t context) {
  att_session_options options;
  att_session_options_init(&options);
  options.context = context;
  att_session *session;
  return att_session_create(&session, model, &options) == ATT_OK ? session : NULL;
}
void EXPORT(attend_session_free)(att_session *session) { att_session_free(session); }
int32_t EXPORT(attend_session_eval)(att_session *session, const int32_t *ids, int32_t n) {
  return (int32_t)att_session_eval(session, ids, n);
}
const float *EXPORT(attend_session_logits)(const att_session *session) {
  return att_session_logits(session).data;
}
int32_t EXPORT(attend_session_length)(const att_session *session) {
  return (int32_t)att_session_length(session);
}
int32_t EXPORT(attend_session_truncate)(att_session *session, int32_t length) {
  return (int32_t)att_session_truncate(session, length);
}
