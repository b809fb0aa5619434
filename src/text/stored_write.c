/* A stored tokenizer as Hugging Face's tokenizer.json. */
#include <string.h>

#include "text/stored_write.h"

typedef struct output {
  FILE *stream;
  const att_stored_tokenizer *s;
  bool byte_level, words;
  const att_stored_pre *pre; /* of a byte-level one */
} output;

void att_stored_put_characters(FILE *f, att_stored_text text) {
  for (size_t i = 0; i < text.n; i++) {
    unsigned char c = (unsigned char)text.bytes[i];
    if (c == '"' || c == '\\')
      fprintf(f, "\\%c", c);
    else if (c < 0x20)
      fprintf(f, "\\u%04x", c);
    else
      putc(c, f);
  }
}

void att_stored_put_string(FILE *f, att_stored_text text) {
  putc('"', f);
  att_stored_put_characters(f, text);
  putc('"', f);
}

static void put_pattern(FILE *f, const char *pattern) {
  fputs("{\"type\": \"Split\", \"pattern\": {\"Regex\": ", f);
  att_stored_put_string(f, (att_stored_text){pattern, strlen(pattern)});
  fputs("}, \"behavior\": \"Isolated\", \"invert\": false},\n    ", f);
}

static int32_t type_of(const att_stored_tokenizer *s, int64_t id) {
  return s->types ? s->types[id] : ATT_STORED_NORMAL;
}

/* As tokenizer.json spells it. */
static void put_piece(const output *o, int64_t id) {
  if (o->words)
    att_stored_put_bert_piece(o->stream, o->s->tokens[id]);
  else
    att_stored_put_string(o->stream, o->s->tokens[id]);
}

static void put_added(const output *o) {
  const char *comma = "";
  fputs("  \"added_tokens\": [", o->stream);
  for (int64_t id = 0; id < o->s->n_tokens; id++) {
    int32_t type = type_of(o->s, id);
    if (type != ATT_STORED_UNKNOWN && type != ATT_STORED_CONTROL && type != ATT_STORED_USER)
      continue;
    fprintf(o->stream, "%s\n    {\"id\": %lld, \"content\": ", comma, (long long)id);
    put_piece(o, id);
    fprintf(o->stream,
            ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
            "\"normalized\": false, \"special\": %s}",
            type == ATT_STORED_USER ? "false" : "true");
    comma = ",";
  }
  fputs("\n  ],\n", o->stream);
}

static void put_llama_steps(const output *o) {
  fputs("  \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [", o->stream);
  if (o->s->add_space)
    fputs("\n    {\"type\": \"Prepend\", \"prepend\": \"\xE2\x96\x81\"},", o->stream);
  fputs("\n    {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, "
        "\"content\": \"\xE2\x96\x81\"}\n  ]},\n  \"pre_tokenizer\": null,\n"
        "  \"decoder\": {\"type\": \"Sequence\", \"decoders\": [\n    {\"type\": \"Replace\", "
        "\"pattern\": {\"String\": \"\xE2\x96\x81\"}, \"content\": \" \"},\n"
        "    {\"type\": \"ByteFallback\"},\n    {\"type\": \"Fuse\"}",
        o->stream);
  if (o->s->add_space)
    fputs(",\n    {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}", o->stream);
  fputs("\n  ]},\n", o->stream);
}

static void put_gpt2_steps(const output *o) {
  fputs(o->pre->flags & ATT_PRE_NFC ? "  \"normalizer\": {\"type\": \"NFC\"},\n"
                                    : "  \"normalizer\": null,\n",
        o->stream);
  fputs("  \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [\n    ", o->stream);
  for (int i = 0; o->pre->patterns[i]; i++) put_pattern(o->stream, o->pre->patterns[i]);
  fputs("{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
        "\"use_regex\": false}\n  ]},\n  \"decoder\": {\"type\": \"ByteLevel\", "
        "\"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true},\n",
        o->stream);
}

static void put_special(const output *o, int64_t id, int type) {
  fputs("{\"SpecialToken\": {\"id\": ", o->stream);
  put_piece(o, id);
  fprintf(o->stream, ", \"type_id\": %d}}", type);
}

static void put_definition(const output *o, int64_t id, const char *before) {
  fputs(before, o->stream);
  put_piece(o, id);
  fputs(": {\"id\": ", o->stream);
  put_piece(o, id);
  fprintf(o->stream, ", \"ids\": [%lld], \"tokens\": [", (long long)id);
  put_piece(o, id);
  fputs("]}", o->stream);
}

static void put_template(const output *o) {
  const att_stored_tokenizer *s = o->s;
  bool bos = s->add_bos > 0, eos = s->add_eos > 0;
  if (!bos && !eos) {
    fputs("  \"post_processor\": null,\n", o->stream);
    return;
  }
  fputs("  \"post_processor\": {\"type\": \"TemplateProcessing\",\n", o->stream);
  for (int pair = 0; pair < 2; pair++) {
    fprintf(o->stream, "    \"%s\": [", pair ? "pair" : "single");
    for (int text = 0; text <= pair; text++) {
      bool begins = bos && !(text && o->words); /* one [CLS] for both texts */
      if (text) fputs(", ", o->stream);
      if (begins) put_special(o, s->bos, text);
      fprintf(o->stream, "%s{\"Sequence\": {\"id\": \"%c\", \"type_id\": %d}}%s",
              begins ? ", " : "", 'A' + text, text, eos ? ", " : "");
      if (eos) put_special(o, s->eos, text);
    }
    fputs("],\n", o->stream);
  }
  fputs("    \"special_tokens\": {", o->stream);
  if (bos) put_definition(o, s->bos, "");
  if (eos && s->eos != s->bos) put_definition(o, s->eos, bos ? ", " : "");
  fputs("}},\n", o->stream);
}

static void put_merges(const output *o) {
  const att_stored_tokenizer *s = o->s;
  for (int64_t i = 0; i < s->n_merges; i++) {
    const char *space = memchr(s->merges[i].bytes, ' ', s->merges[i].n);
    size_t cut = (size_t)(space - s->merges[i].bytes);
    fputs(i ? ",\n      [" : "\n      [", o->stream);
    att_stored_put_string(o->stream, (att_stored_text){s->merges[i].bytes, cut});
    fputs(", ", o->stream);
    att_stored_put_string(o->stream, (att_stored_text){space + 1, s->merges[i].n - cut - 1});
    putc(']', o->stream);
  }
}

static void put_model(const output *o) {
  const att_stored_tokenizer *s = o->s;
  bool whole = o->byte_level && (o->pre->flags & ATT_PRE_WHOLE) != 0;
  fputs("  \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": ", o->stream);
  if (s->unknown >= 0)
    att_stored_put_string(o->stream, s->tokens[s->unknown]);
  else
    fputs("null", o->stream);
  fprintf(o->stream,
          ",\n    \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null,\n"
          "    \"fuse_unk\": %s, \"byte_fallback\": %s, \"ignore_merges\": %s,\n    \"vocab\": {",
          o->byte_level ? "false" : "true", o->byte_level ? "false" : "true",
          whole ? "true" : "false");
  const char *comma = "";
  for (int64_t id = 0; id < s->n_tokens; id++) {
    if (type_of(s, id) == ATT_STORED_UNUSED) continue;
    fprintf(o->stream, "%s\n      ", comma);
    att_stored_put_string(o->stream, s->tokens[id]);
    fprintf(o->stream, ": %lld", (long long)id);
    comma = ",";
  }
  fputs("\n    },\n    \"merges\": [", o->stream);
  put_merges(o);
  fputs("\n    ]\n  }", o->stream);
}

void att_stored_write_json(FILE *stream, const att_stored_tokenizer *stored) {
  bool words = att_stored_is(stored, "bert"), unigram = att_stored_is(stored, "t5");
  output o = {stream, stored, att_stored_is(stored, "gpt2"), words,
              att_stored_pre_find(stored->pre)};
  fputs("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n", stream);
  put_added(&o);
  if (words)
    att_stored_put_bert_steps(stream, stored);
  else if (unigram)
    att_stored_put_t5_steps(stream, stored);
  else if (o.byte_level)
    put_gpt2_steps(&o);
  else
    put_llama_steps(&o);
  put_template(&o);
  if (words)
    att_stored_put_wordpiece(stream, stored);
  else if (unigram)
    att_stored_put_unigram(stream, stored);
  else
    put_model(&o);
  fputs("\n}\n", stream);
}
