/* ByteLevel: a space in front of each piece that has none, if asked for, then
 * GPT-2's pattern, unless the file brings its own. The byte alphabet itself is
 * left to the vocabulary (byte_alphabet.h): the model sees bytes. */
#include "text/hf.h"
#include "text/split_front.h"

static att_status prefix_space(att_job *job, const void *settings) {
  (void)settings;
  static const att_front front = {" ", 1, " ", 1, ATT_FRONT_ALWAYS};
  return att_split_front(job, &front);
}

att_status att_hf_pretokenizer_byte_level(att_hf *hf, const att_json_node *node) {
  bool add_space, use_regex;
  ATT_TRY(att_hf_bool(&add_space, hf, node, "add_prefix_space", true));
  ATT_TRY(att_hf_bool(&use_regex, hf, node, "use_regex", true));
  if (add_space) ATT_TRY(att_hf_add_pretokenizer(hf, prefix_space, NULL));
  if (use_regex) ATT_TRY(att_hf_split_gpt2(hf));
  hf->byte_level = true;
  return ATT_OK;
}
