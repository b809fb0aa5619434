/* mT5: the second version of T5, gated and untied, in many languages. */
#include "model/t5.h"

static att_status read(att_config *c, att_settings *s) {
  return att_t5_read(c, s, "gated-gelu", false);
}

const att_arch att_arch_mt5 = {
    .name = "mt5",
    .class_name = "MT5ForConditionalGeneration",
    .prefix = "transformer.",
    .ignored = att_t5_ignored,
    .names = ATT_T5_NAMES,
    .read = read,
    .write = att_t5_write,
    .lacks = att_t5_lacks,
    .tied_is_scaled = true,
    .gguf = &att_gguf_t5,
};
