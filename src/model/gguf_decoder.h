/* What decoders have in common in GGUF: keys of sizes, rotation and windows. */
#ifndef ATT_MODEL_GGUF_DECODER_H
#define ATT_MODEL_GGUF_DECODER_H

#include "model/gguf_family.h"

/* Sizes; the rotation with its scaling; both and an RMS norm and a gated network. */
att_status att_gguf_read_sizes(att_config *config, att_gguf_keys *keys);
att_status att_gguf_read_rope(att_config *config, att_gguf_keys *keys);
att_status att_gguf_decoder_read(att_config *config, att_gguf_keys *keys);

/* "attention.sliding_window" and which layers it is of: by a key, else all but every
 * `period`-th (0: all). config->window is what an absent key means. */
att_status att_gguf_decoder_window(att_config *config, att_gguf_keys *keys, int64_t period);

/* Biases, which no key tells, by the tensors that there are. */
void att_gguf_decoder_biases(att_config *config, att_gguf_keys *keys);

void att_gguf_write_sizes(att_gguf_list *list, const att_config *config);
void att_gguf_write_rope(att_gguf_list *list, const att_rope *rope);
void att_gguf_decoder_write(att_gguf_list *list, const att_config *config);

/* What no decoder's GGUF can say; NULL if nothing. */
const char *att_gguf_rope_lacks(const att_rope *rope);
const char *att_gguf_decoder_lacks(const att_config *config);

#endif
