/* run.h — what the parts of attend run share: settings, and what has come so far. */
#ifndef ATTEND_CLI_RUN_H
#define ATTEND_CLI_RUN_H

#include <signal.h>

#include "attend/chat.h"
#include "attend/generate.h"
#include "edit_options.h"
#include "json_out.h"
#include "progress.h"
#include "subject.h"

/* The settings of the command's options. */
typedef struct run_settings {
  subject what;
  att_sampler_options sampling;
  int64_t most_new, context, copies, alternatives;
  text_list stops;
  int cache_type;
  bool chat;
  const char *system, *format, *batch_path;
  edit_options edits;
  edit_set edited;
} run_settings;

/* What has come of one text. Its address is the payload of a generation. */
typedef struct stream {
  const cli *c;
  const subject *what;
  const att_session *session;
  bool show;  /* text goes to stdout now */
  char *text; /* all text so far, prompt included */
  size_t bytes, room;
  int32_t *new_ids; /* [n_new] */
  int64_t n_new, ids_room;
  int64_t k;             /* alternatives to keep of each token; 0: none */
  double *logs;          /* [n_new] log-probabilities of the new tokens */
  int32_t *top_ids;      /* [n_new,k] */
  double *top_logs;      /* [n_new,k] */
  progress *reading;     /* of the prompt, or NULL */
  const int32_t *prompt; /* [n_prompt] to show once it was read, or NULL */
  int64_t n_prompt;
  bool failed;
} stream;

/* 1 after Ctrl-C; a second one ends the program at once. */
extern volatile sig_atomic_t run_interrupted;
void run_interrupt(int number);

/* How a generation feeds a stream; the settings give the rest. */
att_generate_options stream_options(stream *s, const run_settings *r);

/* Shows the prompt's text, all but what could still belong to a character. */
att_status stream_put_prompt(stream *s, const int32_t *ids, int64_t n);
void stream_put(stream *s, const char *text, size_t bytes);
void stream_free(stream *s);

/* Starts anew, keeping the memory. */
void stream_clear(stream *s);

/* "tokens", "text", "finish" … of one text, in an open object. */
void stream_json(json *j, const stream *s, const int32_t *prompt, int64_t n,
                 const att_generate_result *result);

/* The log-probabilities as a table. */
void stream_print_alternatives(const stream *s);

/* "length", "interrupted" … */
const char *run_finish_name(const att_generate_result *result);
double run_per_second(int64_t n, double seconds);

/* Options of a session that holds `positions`, or what --context says. */
att_session_options run_session_options(const run_settings *r, int64_t positions);

/* attend run --batch and --copies; attend run --chat. Return exit codes. */
int run_batch(const cli *c, run_settings *r);
int run_chat(const cli *c, run_settings *r);

#endif
