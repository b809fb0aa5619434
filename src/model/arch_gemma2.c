/* Gemma 2: norms before and after each part, capped scores and logits, a sliding
 * window in every other layer, the first one included. */
#include "attend/sdpa.h"
#include "model/gemma.h"

enum { LAYERS_OF_27B = 46, PERIOD = 2 };

static att_status read(att_config *c, att_settings *s) {
  att_layer_set list;
  bool listed;
  ATT_TRY(att_gemma_read(
      c, s,
      &(att_decoder_defaults){
          .kv_heads = 4, .head_dim = 256, .context = 8192, .norm_eps = 1e-6, .tied_output = true}));
  ATT_TRY(att_gemma_read_scores(c, s, 256, 50, 30));
  c->norm_place = ATT_NORM_AROUND;
  ATT_TRY(att_decoder_window(&c->window, s, 4096));
  int64_t again = c->window; /* said twice in early files */
  ATT_TRY(att_setting_size(&again, s, "sliding_window_size", ATT_NULLABLE));
  if (again != c->window)
    return att_fail(ATT_CORRUPT, "%s: sliding_window_size contradicts sliding_window", s->where);
  ATT_TRY(att_setting_layer_types(&list, &listed, s, c->layers));
  if (c->window) att_gemma_slide(c, PERIOD);
  if (c->window && listed) c->windowed = list;
  return ATT_OK;
}

static void write(att_config_writer *w, const att_config *c) {
  att_gemma_write(w, c);
  att_gemma_write_scores(w, c);
}

static att_status read_gguf(att_config *c, att_gguf_keys *k) {
  ATT_TRY(att_gemma_read_gguf(c, k, LAYERS_OF_27B));
  c->norm_place = ATT_NORM_AROUND;
  c->softcap = 50;
  c->final_softcap = 30;
  c->window = 4096;
  ATT_TRY(att_gguf_key_number(&c->softcap, k, "attn_logit_softcapping", false));
  ATT_TRY(att_gguf_key_number(&c->final_softcap, k, "final_logit_softcapping", false));
  return att_gguf_decoder_window(c, k, PERIOD);
}

static double query_factor(const att_config *c) { return att_gemma_query_factor(c, LAYERS_OF_27B); }

static const char *gguf_lacks(const att_config *c) {
  if (c->softcap == ATT_SOFTCAP_NONE || c->final_softcap == ATT_SOFTCAP_NONE)
    return "no cap of scores or logits";
  return att_gguf_decoder_lacks(c);
}

static const att_gguf_family gguf = {.name = "gemma2",
                                     .activation = ATT_GELU_TANH,
                                     .others = {ATT_GGUF_NAMES_AROUND},
                                     .query_factor = query_factor,
                                     .read = read_gguf,
                                     .write = att_gguf_decoder_write,
                                     .lacks = gguf_lacks};

const att_arch att_arch_gemma2 = {
    .name = "gemma2",
    .class_name = "Gemma2ForCausalLM",
    .prefix = "model.",
    .ignored = att_decoder_ignored,
    .names = {ATT_NAMES_MODEL, ATT_NAMES_ATTENTION, ATT_NAMES_GATED, ATT_NAMES_GEMMA_AROUND},
    .read = read,
    .write = write,
    .lacks = att_gemma_lacks,
    .gguf = &gguf,
};
