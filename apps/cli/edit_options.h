/* edit_options.h — edits of a run, from the command line or a file. */
#ifndef ATTEND_CLI_EDIT_OPTIONS_H
#define ATTEND_CLI_EDIT_OPTIONS_H

#include "attend/edit.h"
#include "cli.h"
#include "json_out.h"

typedef struct edit_options {
  text_list words;
  const char *file, *source;
} edit_options;

/* Rows for a command's table of options. */
#define EDIT_OPTIONS(e)                                                                            \
  {"edit",                                                                                         \
   0,                                                                                              \
   OPTION_TEXTS,                                                                                   \
   &(e).words,                                                                                     \
   "\"OP SITE …\"",                                                                                \
   0,                                                                                              \
   0,                                                                                              \
   "changes numbers on their way: zero, set, scale, add, hide, mean, copy or delta, a "            \
   "site's name, and head=, pos=, key=, value= as needed; docs/edits.md"},                         \
      {"edits",                                                                                    \
       0,                                                                                          \
       OPTION_TEXT,                                                                                \
       &(e).file,                                                                                  \
       "FILE",                                                                                     \
       0,                                                                                          \
       0,                                                                                          \
       "the same as a JSON list of {\"op\", \"at\", \"head\", \"pos\", \"key\", \"value\"}"},      \
  {                                                                                                \
    "source", 0, OPTION_TEXT, &(e).source, "FILE", 0, 0,                                           \
        "what mean, copy and delta take from: what attend trace -o wrote as .safetensors"          \
  }

typedef struct edit_set {
  att_edits *edits; /* NULL: none were asked for */
  att_archive *source;
  char *words;             /* all edits as --edit takes them, or NULL */
  const char *source_path; /* of --source, or NULL */
} edit_set;

/* True if any were given. */
bool edit_given(const edit_options *o);

/* The list that they are, and their source opened; no edits, no words. Returns an exit code;
 * edit_detach follows in any case. */
enum { EDITS_MOST = 256 };
int edit_read(edit_set *set, att_edit list[EDITS_MOST], int64_t *n, const cli *c,
              att_runtime *runtime, const edit_options *o);

/* Attaches them to a session. Returns an exit code; edit_detach follows in any case,
 * before the session is freed or after. */
int edit_attach(edit_set *set, const cli *c, att_runtime *runtime, att_session *session,
                const edit_options *o);
void edit_detach(edit_set *set);

/* What att_edits_read reads as these edits; to be freed. */
char *edit_spell(const att_edit *list, int64_t n);

/* A line that names them, above what they changed; nothing where there are none. */
void edit_say(const term *t, const edit_set *set);

/* "edits" and "edit_source" in an open object, if there are any. */
void edit_json(json *j, const edit_set *set);

#endif
