/* Multi-head attention of a decoder to what an encoder has read.
 *
 *   q = x Wq from the decoder's rows; K = m Wk, V = m Wv from the encoder's rows m
 *   y = softmax(scale q K^T) V Wo: every query sees every row of the encoder
 *
 * K and V depend on the encoder alone: they are made once a text, into a cache of
 * their own, and read by every step of the decoder. */
#ifndef ATT_NN_CROSS_ATTENTION_H
#define ATT_NN_CROSS_ATTENTION_H

#include "nn/self_attention.h"

typedef struct att_cross_attention {
  att_linear q, k, v, o; /* [H D, C], [G D, C], [G D, C], [C, H D] */
  int64_t heads, kv_heads, head_dim;
  double scale;
} att_cross_attention;

/* Keys and values of `rows` encoder rows `memory` [rows,C] into layer `layer` of a
 * cache that holds nothing yet; k and v are scratch [rows, G D]. */
att_status att_cross_attention_read(const att_cross_attention *cross, const att_runtime *runtime,
                                    att_cache *cache, int64_t layer, const float *memory,
                                    int64_t rows, float *k, float *v, const att_tap *tap);

/* The attention call of a pass; the plan is made for its longest one. */
void att_cross_attention_args(att_sdpa_args *out, const att_cross_attention *cross,
                              const att_attention_pass *pass);

/* y [rows,C] from x [rows,C]. Uses pass->q and pass->z as scratch. */
att_status att_cross_attention_forward(const att_cross_attention *cross,
                                       const att_attention_pass *pass, const float *x, float *y);

#endif
