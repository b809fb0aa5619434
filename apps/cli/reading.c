/* reading.c — opens the session that a view looks at. */
#include "reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend/encoder.h"
#include "attend/generate.h"
#include "memory.h"

enum { MOST_ANSWER = 16 };
static const int64_t CAPTURE_BUDGET = (int64_t)1 << 32;

enum { OWN, ENCODER, DECODER, CROSS };

static bool is_decoder(const reading *r) {
  return strcmp(r->stack, "encoder") != 0 &&
         att_model_describe(r->what->model)->kind != ATT_MODEL_ENCODER;
}

/* ---- the answer of a decoder beside an encoder ---- */

static void add_answer(reading *r, const int32_t *ids, int64_t n) {
  r->answer = memory_get((size_t)n + 1, sizeof *r->answer);
  r->answer[0] = att_model_describe(r->what->model)->start_token;
  if (n > 0) memcpy(r->answer + 1, ids, (size_t)n * sizeof *ids);
  r->n_answer = n + 1;
}

static bool keep_token(int32_t id, void *payload) {
  reading *r = payload;
  r->answer[r->n_answer++] = id;
  return true;
}

/* The likeliest token after the other. */
static att_status write_answer(reading *r) {
  const subject *what = r->what;
  att_session_options room;
  att_session_options_init(&room);
  room.encoder_tokens = what->n;
  room.context = MOST_ANSWER + 1;
  att_sampler_options likeliest;
  att_sampler_options_init(&likeliest);
  likeliest.temperature = 0;
  att_generate_options how;
  att_generate_options_init(&how);
  how.max_new = MOST_ANSWER;
  how.on_token = keep_token;
  how.payload = r;
  att_generate_result result;
  att_session *session = NULL;
  att_sampler *sampler = NULL;
  const att_text text = {.tokens = what->ids, .n = what->n};
  const int64_t vocab = att_model_describe(what->model)->vocab;
  r->answer = memory_get(MOST_ANSWER + 1, sizeof *r->answer);
  r->answer[r->n_answer++] = att_model_describe(what->model)->start_token;
  att_status status = att_session_create(&session, what->model, &room);
  if (status == ATT_OK) status = att_sampler_create(&sampler, what->runtime, &likeliest, vocab);
  if (status == ATT_OK) status = att_session_encode(session, &text, 1);
  if (status == ATT_OK) status = att_generate(&result, session, sampler, r->answer, 1, &how);
  att_sampler_free(sampler);
  att_session_free(session);
  return status;
}

static int find_answer(reading *r, const cli *c, const reading_options *o) {
  if (o->answer && o->answer_ids.n > 0)
    return cli_usage(c, "--answer and --answer-ids exclude each other");
  if (o->answer_ids.n > 0) {
    add_answer(r, o->answer_ids.ids, o->answer_ids.n);
    return CLI_OK;
  }
  if (!o->answer) return write_answer(r) == ATT_OK ? CLI_OK : cli_fail_status(c);
  if (!r->what->tokenizer)
    return cli_fail(c, "%s has no tokenizer: give one with -z, or the answer with --answer-ids",
                    att_model_describe(r->what->model)->name);
  att_encoding *encoding;
  const att_encode_options plain = {.add_special = false, .parse_special = false};
  if (att_encode(&encoding, r->what->tokenizer, o->answer, strlen(o->answer), &plain) != ATT_OK)
    return cli_fail_status(c);
  add_answer(r, encoding->ids, encoding->n);
  att_encoding_free(encoding);
  return CLI_OK;
}

/* ---- what reads what ---- */

static int choose_of_two(reading *r, const cli *c, const reading_options *o) {
  const att_model_info *info = att_model_describe(r->what->model);
  r->stack = "encoder";
  r->layers = info->encoder_layers;
  if (o->attention == ENCODER) return CLI_OK;
  int code = find_answer(r, c, o);
  r->stack = "decoder";
  r->layers = info->layers;
  r->query_ids = r->answer;
  r->n_queries = r->n_answer;
  if (o->attention == DECODER) {
    r->causal = true;
    r->key_ids = r->answer;
    r->n_keys = r->n_answer;
    return code;
  }
  r->part = "cross_attn";
  r->across = true;
  return code;
}

int reading_choose(reading *r, const cli *c, const subject *what, const reading_options *options) {
  const att_model_info *info = att_model_describe(what->model);
  *r = (reading){.what = what,
                 .edits = &options->edits,
                 .stack = "blocks",
                 .part = "attn",
                 .causal = info->kind == ATT_MODEL_DECODER,
                 .layers = info->layers,
                 .heads = info->heads,
                 .query_ids = what->ids,
                 .key_ids = what->ids,
                 .n_queries = what->n,
                 .n_keys = what->n};
  if (info->kind == ATT_MODEL_ENCODER_DECODER) {
    r->causal = false;
    return choose_of_two(r, c, options);
  }
  if (options->attention != OWN || options->answer || options->answer_ids.n > 0)
    return cli_usage(c,
                     "--stack and --answer are for a model with encoder and decoder; %s "
                     "has one attention",
                     info->name);
  if (what->n > info->context)
    return cli_fail(c, "the prompt has %lld tokens, the context holds %lld", (long long)what->n,
                    (long long)info->context);
  return CLI_OK;
}

void reading_of_dump(reading *r, const subject *what, const dump *saved) {
  *r = (reading){.what = what,
                 .stack = "blocks",
                 .part = "attn",
                 .causal = saved->causal,
                 .layers = saved->layers,
                 .heads = saved->heads,
                 .key_ids = saved->ids,
                 .n_queries = saved->queries,
                 .n_keys = saved->keys,
                 .first_query = saved->keys - saved->queries,
                 .query_ids = saved->ids + saved->keys - saved->queries,
                 .saved = saved};
}

/* ---- reading ---- */

/* "a,b" as "stack.a,stack.b". */
static void with_stack(char *out, size_t bytes, const reading *r, const char *sites) {
  size_t used = 0;
  while (*sites && used < bytes) {
    size_t length = strcspn(sites, ",");
    used += (size_t)snprintf(out + used, bytes - used, "%s%s.%.*s", used ? "," : "", r->stack,
                             (int)length, sites);
    sites += length + (sites[length] != 0);
  }
}

/* What is read, once everything that watches is there. */
static att_status read_to(reading *r, int64_t end) {
  const att_text text = {.tokens = r->what->ids, .n = r->what->n};
  att_status status = ATT_OK;
  if (end > 0 && att_model_describe(r->what->model)->kind != ATT_MODEL_DECODER)
    status = att_session_encode(r->session, &text, 1);
  if (status == ATT_OK && end > 0 && is_decoder(r))
    status = att_session_eval(r->session, r->query_ids, end);
  return status;
}

static att_status start(reading *r, const char *select, const att_capture_options *parts) {
  const att_model_kind kind = att_model_describe(r->what->model)->kind;
  att_session_options room;
  att_session_options_init(&room);
  bool two = kind == ATT_MODEL_ENCODER_DECODER;
  room.encoder_tokens = r->what->n;
  room.context = r->more + (!two ? r->what->n : r->n_answer > 0 ? r->n_answer : 1);
  att_status status = att_session_create(&r->session, r->what->model, &room);
  if (status == ATT_OK && *select)
    status = att_capture_create_part(&r->capture, r->session, select, parts);
  return status;
}

int reading_start(reading *r, const cli *c, const char *sites, int64_t end) {
  char select[256];
  att_capture_options all;
  att_capture_options_init(&all);
  all.budget_bytes = CAPTURE_BUDGET;
  with_stack(select, sizeof select, r, sites);
  return reading_start_part(r, c, select, &all, end);
}

int reading_start_part(reading *r, const cli *c, const char *select,
                       const att_capture_options *parts, int64_t end) {
  if (start(r, select, parts) != ATT_OK) return cli_fail_status(c);
  int code = r->edits ? edit_attach(&r->edited, c, r->what->runtime, r->session, r->edits) : CLI_OK;
  if (code != CLI_OK) return code;
  return read_to(r, end) == ATT_OK ? CLI_OK : cli_fail_status(c);
}

att_status reading_finish(reading *r) {
  if (!is_decoder(r)) return ATT_OK;
  const int64_t read = att_session_length(r->session);
  if (read == r->n_queries) return ATT_OK;
  return att_session_eval(r->session, r->query_ids + read, r->n_queries - read);
}

void reading_close(reading *r) {
  free(r->answer);
  edit_detach(&r->edited);
  att_capture_free(r->capture);
  att_session_free(r->session);
}

att_view reading_site(const reading *r, int64_t layer, const char *site) {
  char name[96];
  att_view view;
  if (r->saved)
    return strcmp(site, "attn.hook_pattern") ? att_view_none() : r->saved->patterns[layer];
  snprintf(name, sizeof name, "%s.%lld.%s", r->stack, (long long)layer, site);
  return att_capture_get(&view, r->capture, name) == ATT_OK ? view : att_view_none();
}
