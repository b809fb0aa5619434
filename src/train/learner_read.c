/* Checkpoints, reading: everything is checked before anything is taken. */
#include <stdio.h>
#include <string.h>

#include "attend/archive.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/float_mode.h"
#include "base/folder.h"
#include "base/json.h"
#include "train/learner.h"

typedef struct reading {
  att_learner *learner;
  const char *folder;
  char path[ATT_FOLDER_PATH]; /* of the file in hand */
  att_json *json;
  const att_json_node *root;
} reading;

static att_status find_path(reading *r, const char *name) {
  int n = snprintf(r->path, sizeof r->path, "%s/%s", r->folder, name);
  if (n > 0 && n < (int)sizeof r->path) return ATT_OK;
  return att_fail(ATT_TOO_LARGE, "the path of %s is too long", name);
}

static att_status corrupt(const reading *r, const char *what) {
  return att_fail(ATT_CORRUPT, "%s %s", r->path, what);
}

static bool is_text(const att_json_node *node, const char *text) {
  return node && node->type == ATT_JSON_STRING && !strcmp(node->text, text);
}

/* ---- learner.json ---- */

/* The last member is a checksum of all the text before it. */
static att_status check_itself(const reading *r, const att_file *file) {
  static const char mark[] = "\",\n  \"check\": \"";
  const size_t tail = sizeof mark - 1 + 16 + 4; /* digits, quote, newline, brace, newline */
  char digits[17];
  if (file->bytes < tail) return corrupt(r, "is not a learner's settings");
  const char *end = (const char *)file->data + file->bytes - tail;
  snprintf(digits, sizeof digits, "%016llx",
           (unsigned long long)att_checksum(file->data, file->bytes - tail));
  if (memcmp(end, mark, sizeof mark - 1) || memcmp(end + sizeof mark - 1, digits, 16))
    return corrupt(r, "is damaged: its checksum is another");
  return ATT_OK;
}

static att_status check_settings(const reading *r) {
  char settings[ATT_SETTINGS_TEXT];
  att_json *own;
  att_learner_settings(settings, r->learner);
  char text[ATT_SETTINGS_TEXT + 8];
  snprintf(text, sizeof text, "{%s}", settings);
  ATT_TRY(att_json_parse(&own, r->learner->runtime, text, strlen(text), "settings"));
  att_status status = ATT_OK;
  for (const att_json_node *n = att_json_root(own)->child; n && status == ATT_OK; n = n->next) {
    const att_json_node *stored = att_json_member(r->root, n->key);
    bool same = stored && stored->type == n->type && stored->truth == n->truth &&
                stored->number == n->number && (!n->text || !strcmp(stored->text, n->text));
    if (!same)
      status = att_fail(ATT_UNSUPPORTED, "%s: its \"%s\" is another than this learner's", r->path,
                        n->key);
  }
  att_json_free(own);
  return status;
}

static att_status read_settings(reading *r) {
  att_file file;
  ATT_TRY(find_path(r, "learner.json"));
  ATT_TRY(att_file_map(&file, r->path));
  att_status status = check_itself(r, &file);
  if (status == ATT_OK)
    status =
        att_json_parse(&r->json, r->learner->runtime, (const char *)file.data, file.bytes, r->path);
  if (status == ATT_OK) {
    r->root = att_json_root(r->json);
    const att_json_node *version = att_json_member(r->root, "version");
    if (!is_text(att_json_member(r->root, "format"), "attend-learner"))
      status = corrupt(r, "is not a learner's settings");
    else if (!version || version->integer != 1)
      status = att_fail(ATT_UNSUPPORTED, "%s is of another version", r->path);
    else
      status = check_settings(r);
  }
  att_file_unmap(&file);
  return status;
}

/* ---- the other files ---- */

static att_status check_file(reading *r, const att_json_node *stored) {
  uint64_t hash;
  char digits[17];
  ATT_TRY(find_path(r, stored->key));
  ATT_TRY(att_checksum_file(&hash, r->path));
  snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash);
  return is_text(stored, digits) ? ATT_OK : corrupt(r, "is damaged: its checksum is another");
}

static att_status check_files(reading *r) {
  const att_json_node *files = att_json_member(r->root, "files");
  for (int i = 0; i < ATT_CHECKPOINT_FILES; i++) {
    const att_json_node *stored = att_json_member(files, att_checkpoint_files[i]);
    bool optional = i == ATT_CHECKPOINT_FILES - 1; /* the tokenizer */
    if (!stored && !optional) return corrupt(r, "names not all files");
    if (stored) ATT_TRY(check_file(r, stored));
  }
  return ATT_OK;
}

static att_status check_model(const reading *r, const att_checkpoint *checkpoint) {
  const att_config *a = &checkpoint->config, *b = &r->learner->parameters.config;
  bool same = !strcmp(checkpoint->family, r->learner->family);
  for (att_size size = ATT_SIZE_1; size <= ATT_SIZE_GD; size++)
    same &= att_config_size(a, size) == att_config_size(b, size);
  same &= a->layers == b->layers && a->heads == b->heads && a->tied_output == b->tied_output;
  /* A base is written as a float's shortest decimal. */
  if (b->position == ATT_POSITION_ROPE) same &= (float)a->rope.theta == (float)b->rope.theta;
  if (same && att_config_parts(a) == att_config_parts(b)) return ATT_OK;
  return att_fail(ATT_UNSUPPORTED, "%s holds another model than this learner's", r->folder);
}

/* The weights, into an array that is free between steps. */
static att_status read_values(reading *r, float *values) {
  att_checkpoint checkpoint;
  ATT_TRY(att_checkpoint_open(&checkpoint, r->learner->runtime, r->folder));
  att_status status = check_model(r, &checkpoint);
  if (status == ATT_OK) status = att_parameters_read(&r->learner->parameters, values, &checkpoint);
  att_checkpoint_close(&checkpoint);
  return status;
}

/* Finds the moments and checks them, and copies them if asked. */
static att_status read_moments(reading *r, const att_archive *archive, bool take) {
  const att_parameters *p = &r->learner->parameters;
  for (int64_t i = 0; i < 2 * p->n; i++) {
    char name[ATT_PARAMETER_NAME + 8];
    att_view from;
    float *array = i % 2 ? r->learner->optimizer.square : r->learner->optimizer.mean;
    att_view to = att_parameter_view(&p->list[i / 2], array);
    snprintf(name, sizeof name, "%s.%s", i % 2 ? "square" : "mean", p->list[i / 2].name);
    ATT_TRY(att_archive_get(&from, archive, name));
    bool same = from.dtype == ATT_F32 && from.ndim == to.ndim &&
                !memcmp(from.shape, to.shape, (size_t)to.ndim * sizeof *to.shape);
    if (!same) return att_fail(ATT_CORRUPT, "%s: %s has another shape", r->path, name);
    if (take) ATT_TRY(att_view_copy(&to, &from));
  }
  return ATT_OK;
}

/* ---- all ---- */

static att_status keep_note(reading *r) {
  const att_json_node *note = att_json_member(r->root, "note");
  if (!note || note->type != ATT_JSON_STRING) return corrupt(r, "has no note");
  att_learner *l = r->learner;
  char *copy;
  int64_t bytes = (int64_t)note->text_bytes + 1;
  ATT_TRY(att_alloc((void **)&copy, l->runtime, bytes, 1, "a note"));
  memcpy(copy, note->text, note->text_bytes);
  att_release(l->runtime, l->note, l->note_bytes, 1);
  l->note = copy;
  l->note_bytes = bytes;
  return ATT_OK;
}

static att_status take(reading *r, const att_archive *archive) {
  att_learner *l = r->learner;
  const att_json_node *steps = att_json_member(r->root, "steps");
  if (!steps || !steps->is_integer || steps->integer < 0) return corrupt(r, "has no steps");
  ATT_TRY(read_values(r, l->gradient[0]));
  ATT_TRY(read_moments(r, archive, false));
  ATT_TRY(keep_note(r));
  ATT_TRY(read_moments(r, archive, true));
  memcpy(l->values, l->gradient[0], (size_t)l->parameters.floats * sizeof *l->values);
  att_parameters_apply(&l->parameters, l->values, &l->model->weights, l->runtime);
  l->optimizer.steps = steps->integer;
  return ATT_OK;
}

static att_status resume(reading *r) {
  att_archive *archive;
  ATT_TRY(read_settings(r));
  ATT_TRY(check_files(r));
  ATT_TRY(find_path(r, "optimizer.safetensors"));
  ATT_TRY(att_archive_open(&archive, r->learner->runtime, r->path));
  att_status status = take(r, archive);
  att_archive_close(archive);
  return status;
}

att_status att_learner_resume(att_learner *learner, const char *folder, const char **note) {
  if (!learner || !folder) return att_fail(ATT_BAD_ARGUMENT, "learner or folder is NULL");
  if (learner->options.gradients_only)
    return att_fail(ATT_WRONG_STATE, "the learner was made for gradients only");
  uint64_t mode = att_float_mode_enter();
  reading r = {.learner = learner, .folder = folder};
  att_status status = resume(&r);
  att_json_free(r.json);
  att_float_mode_leave(mode);
  if (status == ATT_OK && note) *note = learner->note;
  return status;
}
