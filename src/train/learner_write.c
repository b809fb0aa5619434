/* Checkpoints, writing: a folder that is complete or is not there.
 *
 * learner.json closes with a checksum of itself and holds one of every other
 * file, so that a bit that turned on a disk is found before it is learned from. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "attend/archive.h"
#include "base/alloc.h"
#include "base/decimal.h"
#include "base/file.h"
#include "model/export.h"
#include "train/learner.h"

enum { NAME = ATT_PARAMETER_NAME + 8, TEXT = ATT_SETTINGS_TEXT + 2 * ATT_NOTE_MOST + 1024 };

const char *const att_checkpoint_files[ATT_CHECKPOINT_FILES] = {
    "model.safetensors", "config.json", "optimizer.safetensors", "tokenizer.json"};

/* Goes on from `hash`; n is a multiple of 8 but at the end. */
static uint64_t hash_more(uint64_t hash, const unsigned char *at, size_t n) {
  const uint64_t prime = UINT64_C(0x100000001b3);
  for (; n >= 8; n -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    hash = (hash ^ word) * prime;
    hash ^= hash >> 32; /* carries the upper half back down */
  }
  for (; n > 0; n--, at++) hash = (hash ^ *at) * prime;
  return hash;
}

#define HASH_OF_NOTHING UINT64_C(0xcbf29ce484222325)

uint64_t att_checksum(const void *bytes, size_t n) { return hash_more(HASH_OF_NOTHING, bytes, n); }

static void take_piece(void *context, const unsigned char *bytes, size_t n) {
  uint64_t *hash = context;
  *hash = hash_more(*hash, bytes, n);
}

att_status att_checksum_file(uint64_t *out, const char *path) {
  uint64_t hash = HASH_OF_NOTHING;
  ATT_TRY(att_file_scan(path, take_piece, &hash));
  *out = hash;
  return ATT_OK;
}

/* ---- text ---- */

typedef struct writer {
  char *text;
  size_t n, room;
} writer;

static void put(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(w->text + w->n, w->room - w->n, format, args);
  va_end(args);
  if (n > 0) w->n = w->n + (size_t)n < w->room ? w->n + (size_t)n : w->room - 1;
}

static void put_real(writer *w, const char *name, double value) {
  char text[ATT_DECIMAL_BYTES];
  put(w, ",\n  \"%s\": %s", name, att_decimal(text, 17, value));
}

static void put_string(writer *w, const char *text) {
  for (; *text; text++)
    if (*text == '"' || *text == '\\')
      put(w, "\\%c", *text);
    else if ((unsigned char)*text < 0x20)
      put(w, "\\u%04x", (unsigned)*text);
    else
      put(w, "%c", *text);
}

void att_learner_settings(char out[ATT_SETTINGS_TEXT], const att_learner *learner) {
  const att_learn_options *o = &learner->options;
  writer w = {.text = out, .room = ATT_SETTINGS_TEXT};
  put(&w, "\"numerics\": %d,\n  \"class\": \"%s\"", ATT_NUMERICS,
      att_runtime_class(learner->runtime));
  put(&w, ",\n  \"batch\": %lld,\n  \"length\": %lld,\n  \"slices\": %lld", (long long)o->batch,
      (long long)o->length, (long long)o->slices);
  put(&w, ",\n  \"documents\": %s,\n  \"seed\": \"%llu\"", o->documents ? "true" : "false",
      (unsigned long long)o->seed);
  put_real(&w, "dropout", o->dropout);
  put_real(&w, "beta1", o->beta1);
  put_real(&w, "beta2", o->beta2);
  put_real(&w, "eps", o->eps);
  put_real(&w, "decay", o->decay);
  put_real(&w, "clip", o->clip);
}

/* ---- files ---- */

static att_status write_optimizer(const att_learner *learner, const att_folder_writer *folder) {
  const att_parameters *p = &learner->parameters;
  const att_runtime *r = learner->runtime;
  char path[ATT_FOLDER_PATH], (*names)[NAME];
  const char **pointers = NULL;
  att_view *views = NULL;
  ATT_TRY(att_folder_file(path, folder, "optimizer.safetensors"));
  ATT_TRY(att_alloc((void **)&names, r, 2 * p->n, sizeof *names, "names"));
  att_status status = att_alloc((void **)&pointers, r, 2 * p->n, sizeof *pointers, "names");
  if (status == ATT_OK) status = att_alloc((void **)&views, r, 2 * p->n, sizeof *views, "views");
  for (int64_t i = 0; status == ATT_OK && i < 2 * p->n; i++) {
    const att_parameter *one = &p->list[i / 2];
    snprintf(names[i], NAME, "%s.%s", i % 2 ? "square" : "mean", one->name);
    pointers[i] = names[i];
    views[i] = att_parameter_view(one, i % 2 ? learner->optimizer.square : learner->optimizer.mean);
  }
  if (status == ATT_OK)
    status = att_safetensors_write(learner->runtime, path, 2 * p->n, pointers, views, 0, NULL);
  att_release(r, views, 2 * p->n, sizeof *views);
  att_release(r, pointers, 2 * p->n, sizeof *pointers);
  att_release(r, names, 2 * p->n, sizeof *names);
  return status;
}

static att_status write_bytes(const att_runtime *runtime, const att_folder_writer *folder,
                              const char *name, const void *bytes, size_t n) {
  char path[ATT_FOLDER_PATH];
  att_file_writer file;
  ATT_TRY(att_folder_file(path, folder, name));
  ATT_TRY(att_file_create(&file, runtime, path));
  fwrite(bytes, 1, n, file.stream); /* commit sees what went wrong */
  return att_file_commit(&file, runtime);
}

static att_status copy_tokenizer(const att_learner *learner, const att_folder_writer *folder,
                                 const char *from) {
  att_file file;
  ATT_TRY(att_file_map(&file, from));
  att_status status =
      write_bytes(learner->runtime, folder, "tokenizer.json", file.data, file.bytes);
  att_file_unmap(&file);
  return status;
}

static att_status put_checksums(writer *w, const att_folder_writer *folder, bool tokenizer) {
  put(w, ",\n  \"files\": {");
  for (int i = 0; i < ATT_CHECKPOINT_FILES - !tokenizer; i++) {
    char path[ATT_FOLDER_PATH];
    uint64_t hash;
    ATT_TRY(att_folder_file(path, folder, att_checkpoint_files[i]));
    ATT_TRY(att_checksum_file(&hash, path));
    put(w, "%s\n    \"%s\": \"%016llx\"", i ? "," : "", att_checkpoint_files[i],
        (unsigned long long)hash);
  }
  put(w, "\n  }");
  return ATT_OK;
}

static att_status write_settings(const att_learner *learner, const att_folder_writer *folder,
                                 bool tokenizer, const char *note, writer *w) {
  char settings[ATT_SETTINGS_TEXT];
  att_learner_settings(settings, learner);
  put(w, "{\n  \"format\": \"attend-learner\",\n  \"version\": 1,\n  \"steps\": %lld,\n  %s",
      (long long)learner->optimizer.steps, settings);
  ATT_TRY(put_checksums(w, folder, tokenizer));
  put(w, ",\n  \"note\": \"");
  put_string(w, note ? note : "");
  put(w, "\",\n  \"check\": \"%016llx\"\n}\n", (unsigned long long)att_checksum(w->text, w->n));
  return write_bytes(learner->runtime, folder, "learner.json", w->text, w->n);
}

/* ---- the folder ---- */

static att_status write_all(att_learner *learner, const att_folder_writer *folder,
                            const char *tokenizer, const char *note) {
  att_live_weights live = {&learner->parameters, learner->values};
  att_checkpoint source =
      att_live_checkpoint(&live, learner->runtime, learner->family, "the model in training");
  att_export export = {.runtime = learner->runtime,
                       .source = &source,
                       .config = source.config,
                       .path = folder->path,
                       .dtype = ATT_F32};
  ATT_TRY(att_export_huggingface_files(&export, folder));
  ATT_TRY(write_optimizer(learner, folder));
  if (tokenizer) ATT_TRY(copy_tokenizer(learner, folder, tokenizer));
  void *text;
  ATT_TRY(att_alloc(&text, learner->runtime, TEXT, 1, "a checkpoint's settings"));
  writer w = {.text = text, .room = TEXT};
  att_status status = write_settings(learner, folder, tokenizer != NULL, note, &w);
  att_release(learner->runtime, text, TEXT, 1);
  return status;
}

att_status att_learner_save(att_learner *learner, const char *folder, const char *tokenizer,
                            const char *note) {
  if (!learner || !folder) return att_fail(ATT_BAD_ARGUMENT, "learner or folder is NULL");
  if (learner->options.gradients_only)
    return att_fail(ATT_WRONG_STATE, "the learner was made for gradients only");
  if (note && strlen(note) >= ATT_NOTE_MOST)
    return att_fail(ATT_TOO_LARGE, "a checkpoint's note has at most %d bytes", ATT_NOTE_MOST - 1);
  const att_parameter *bad = att_learner_find_bad(learner, learner->values);
  if (bad) return att_fail(ATT_DIVERGED, "weight %s is not finite; nothing is saved", bad->name);
  att_folder_writer writing;
  ATT_TRY(att_folder_create(&writing, folder));
  att_status status = write_all(learner, &writing, tokenizer, note);
  if (status == ATT_OK) return att_folder_commit(&writing);
  att_folder_abandon(&writing);
  return status;
}
