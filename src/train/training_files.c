/* Checkpoints and log of a run. A checkpoint is there as a whole or not at all
 * (learner_write.c), and the newest is found by its name, so nothing else has to be
 * written for a run to go on. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/file.h"
#include "base/json.h"
#include "train/training.h"

enum { LINE = 512, KNOWN = 7 };
#define CHECKPOINT "step-"

att_status att_training_path(char out[ATT_FOLDER_PATH], const att_training *t, const char *name) {
  int n = snprintf(out, ATT_FOLDER_PATH, "%s/%s", t->settings.output, name);
  if (n > 0 && n < ATT_FOLDER_PATH) return ATT_OK;
  return att_fail(ATT_TOO_LARGE, "the path of %s is too long", name);
}

/* The step of "step-00000500", or -1. */
static int64_t step_of(const char *name) {
  const size_t prefix = strlen(CHECKPOINT);
  int64_t step = 0;
  if (strncmp(name, CHECKPOINT, prefix) || !name[prefix]) return -1;
  for (const char *c = name + prefix; *c; c++) {
    if (*c < '0' || *c > '9' || step > INT64_MAX / 20) return -1;
    step = 10 * step + (*c - '0');
  }
  return step;
}

static void name_of(char out[32], int64_t step) {
  snprintf(out, 32, CHECKPOINT "%08lld", (long long)step);
}

/* ---- what tokens.npy was made of ---- */

/* It is made once, so that a changed setting of these would do nothing. */
typedef struct known {
  const char *key, *what;
  uint64_t value;
} known;

static void find_known(known out[KNOWN], const att_training *t) {
  const att_train_settings *s = &t->settings;
  uint64_t vocab = strcmp(s->tokenizer, "bpe") ? 0 : (uint64_t)s->vocab, validation;
  memcpy(&validation, &s->validation, sizeof validation);
  const char *tokenizer = s->tokenizer[0] ? s->tokenizer : s->start;
  const known all[KNOWN] = {
      {"data", "\"data\"", att_checksum(s->data, strlen(s->data))},
      {"data_bytes", "\"data\", by its size,", t->data.text_bytes},
      {"tokenizer", "\"tokenizer\"", att_checksum(tokenizer, strlen(tokenizer))},
      {"vocab", "\"vocab\"", vocab},
      {"validation", "\"validation\"", validation},
      {"lines", "\"lines\"", (uint64_t)s->lines},
      {"marks", "\"marks\"", att_checksum(s->marks, strlen(s->marks))}};
  memcpy(out, all, sizeof all);
}

/* ---- saving ---- */

/* Older checkpoints stay at 1, 2, 4, 8 … times save_every, or all of a run with a list,
 * which may not be the list that it had when they were written. */
static bool stays(const att_train_settings *s, int64_t step) {
  if (s->save_at[0]) return true;
  int64_t n = step / s->save_every;
  return step % s->save_every == 0 && n > 0 && (n & (n - 1)) == 0;
}

static att_status remove_old(const att_training *t) {
  const att_train_settings *s = &t->settings;
  int64_t now = att_learner_steps(t->learner), kept = 0;
  /* Newest first: the step below the last one found. */
  for (int64_t below = INT64_MAX;;) {
    char name[ATT_FOLDER_NAME] = "", path[ATT_FOLDER_PATH];
    int64_t next = -1;
    while (att_folder_next(name, s->output)) {
      int64_t step = step_of(name);
      if (step > next && step < below && step <= now) next = step;
    }
    if (next < 0) return ATT_OK;
    below = next;
    if (kept++ < s->keep || stays(s, next)) continue;
    name_of(name, next);
    ATT_TRY(att_training_path(path, t, name));
    att_folder_remove(path);
  }
}

att_status att_training_save(att_training *t) {
  char name[32], path[ATT_FOLDER_PATH], tokenizer[ATT_FOLDER_PATH], note[LINE];
  name_of(name, att_learner_steps(t->learner));
  ATT_TRY(att_training_path(path, t, name));
  ATT_TRY(att_training_path(tokenizer, t, "tokenizer.json"));
  uint64_t best;
  memcpy(&best, &t->best, sizeof best);
  int n = snprintf(
      note, sizeof note, "{\"tokens\": \"%016llx\", \"best\": \"%016llx\", \"waited\": %lld",
      (unsigned long long)t->data.checksum, (unsigned long long)best, (long long)t->waited);
  known all[KNOWN];
  find_known(all, t);
  for (int i = 0; i < KNOWN; i++)
    n += snprintf(note + n, sizeof note - (size_t)n, ", \"%s\": \"%016llx\"", all[i].key,
                  (unsigned long long)all[i].value);
  snprintf(note + n, sizeof note - (size_t)n, "}");
  ATT_TRY(att_learner_save(t->learner, path, tokenizer, note));
  return remove_old(t);
}

/* ---- going on ---- */

static bool read_hex(uint64_t *out, const att_json_node *node) {
  *out = 0;
  if (!node || node->type != ATT_JSON_STRING || node->text_bytes != 16) return false;
  for (const char *c = node->text; *c; c++) {
    const char *digits = "0123456789abcdef", *at = strchr(digits, *c);
    if (!at) return false;
    *out = *out << 4 | (uint64_t)(at - digits);
  }
  return true;
}

/* Older checkpoints name none of them. */
static att_status check_known(att_training *t, const char *path, const att_json_node *root) {
  known all[KNOWN];
  find_known(all, t);
  for (int i = 0; i < KNOWN; i++) {
    const att_json_node *node = att_json_member(root, all[i].key);
    uint64_t value;
    if (!node) continue;
    if (!read_hex(&value, node)) return att_fail(ATT_CORRUPT, "%s: its note is damaged", path);
    bool gone = !strcmp(all[i].key, "data_bytes") && !all[i].value;
    if (gone) t->data.text_bytes = value; /* tokens.npy is enough, and the next note says it */
    if (gone || value == all[i].value) continue;
    return att_fail(ATT_UNSUPPORTED, "%s was made with another %s; another \"output\" begins anew",
                    path, all[i].what);
  }
  return ATT_OK;
}

static att_status read_note(att_training *t, const char *path, const char *note) {
  att_json *json;
  uint64_t tokens, best;
  ATT_TRY(att_json_parse(&json, t->runtime, note, strlen(note), path));
  const att_json_node *root = att_json_root(json), *waited = att_json_member(root, "waited");
  bool good = read_hex(&tokens, att_json_member(root, "tokens")) &&
              read_hex(&best, att_json_member(root, "best")) && waited && waited->is_integer;
  if (good) {
    memcpy(&t->best, &best, sizeof best);
    t->waited = waited->integer;
  }
  att_status status = good ? check_known(t, path, root) : ATT_OK;
  att_json_free(json);
  if (!good) return att_fail(ATT_CORRUPT, "%s was not written by a run of training", path);
  ATT_TRY(status);
  if (tokens == t->data.checksum) return ATT_OK;
  return att_fail(ATT_UNSUPPORTED, "%s was made with other text than tokens.npy holds", path);
}

/* The log's lines up to the step that the run goes on from. */
static att_status shorten_log(const att_training *t) {
  char path[ATT_FOLDER_PATH];
  att_file log;
  att_file_writer writer;
  const int64_t last = t->resumed ? att_learner_steps(t->learner) : -1;
  ATT_TRY(att_training_path(path, t, "log.jsonl"));
  if (!att_path_is_file(path)) return ATT_OK;
  ATT_TRY(att_file_map(&log, path));
  att_status status = att_file_create(&writer, t->runtime, path);
  const char *at = (const char *)log.data, *end = at + log.bytes;
  while (status == ATT_OK && at < end) {
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    if (!line_end) break; /* half a line of a killed run */
    att_json *json;
    int64_t step = -1;
    if (att_json_parse(&json, t->runtime, at, (size_t)(line_end - at), path) == ATT_OK) {
      const att_json_node *node = att_json_member(att_json_root(json), "step");
      if (node && node->is_integer) step = node->integer;
      att_json_free(json);
    }
    if (step >= 0 && step <= last) fwrite(at, 1, (size_t)(line_end + 1 - at), writer.stream);
    at = line_end + 1;
  }
  att_file_unmap(&log);
  return status == ATT_OK ? att_file_commit(&writer, t->runtime) : status;
}

/* Checkpoints (base/folder.c) and files (base/file_write.c) under their first names. */
static bool is_half_written(const char *name) {
  return (!strncmp(name, CHECKPOINT, strlen(CHECKPOINT)) && att_path_ends_with(name, ".part")) ||
         (!strncmp(name, ".attend-", strlen(".attend-")) && att_path_ends_with(name, ".tmp"));
}

att_status att_training_clean(const att_training *t) {
  char name[ATT_FOLDER_NAME] = "", path[ATT_FOLDER_PATH];
  while (att_folder_next(name, t->settings.output)) {
    if (!is_half_written(name)) continue;
    ATT_TRY(att_training_path(path, t, name));
    if (att_path_is_folder(path))
      att_folder_remove(path);
    else
      unlink(path);
  }
  return ATT_OK;
}

att_status att_training_resume(att_training *t) {
  char name[ATT_FOLDER_NAME] = "", path[ATT_FOLDER_PATH], newest_name[32];
  const char *note;
  int64_t newest = -1;
  while (att_folder_next(name, t->settings.output))
    if (step_of(name) > newest) newest = step_of(name);
  if (newest >= 0) {
    name_of(newest_name, newest);
    ATT_TRY(att_training_path(path, t, newest_name));
    ATT_TRY(att_learner_resume(t->learner, path, &note));
    ATT_TRY(read_note(t, path, note));
    t->info.resumed_at = att_learner_steps(t->learner);
    t->resumed = true;
  }
  return shorten_log(t);
}

/* ---- log ---- */

static void put(char *line, const char *name, double value) {
  char text[ATT_DECIMAL_BYTES];
  size_t n = strlen(line);
  snprintf(line + n, LINE - n, ", \"%s\": %s", name, att_decimal(text, 9, value));
}

att_status att_training_log(const att_training *t, const att_training_report *r) {
  char path[ATT_FOLDER_PATH], line[LINE];
  ATT_TRY(att_training_path(path, t, "log.jsonl"));
  snprintf(line, sizeof line, "{\"step\": %lld", (long long)r->step);
  if (r->step > 0) {
    put(line, "loss", r->loss);
    put(line, "norm", r->norm);
    put(line, "rate", r->rate);
    put(line, "seconds", r->seconds);
    put(line, "tokens_per_second", (double)t->info.tokens_a_step / r->seconds);
  }
  if (!isnan(r->validation)) put(line, "validation", r->validation);
  strcat(line, "}\n");
  return att_file_append(path, line, strlen(line));
}
