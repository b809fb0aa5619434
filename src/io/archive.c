/* Named tensors in a file, whatever the format.
 *
 * The content tells the format: npy and zip begin with their magic, an index of
 * shards is JSON, everything else must be safetensors. Programs keep views into the
 * map, so nothing is read before it is used. The exception is a tensor at an
 * address that its elements may not have (files whose header was not padded):
 * it is copied once, here, because reading it in place is undefined in C. */
#include "io/archive.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/line.h"
#include "base/log.h"

static att_status archive_create(att_archive **out, const att_runtime *runtime, const char *name) {
  void *memory;
  ATT_TRY(att_alloc(&memory, runtime, 1, sizeof(att_archive), "an archive"));
  att_archive *archive = memory;
  archive->runtime = runtime;
  size_t bytes = strlen(name) + 1;
  att_status status = att_alloc(&memory, runtime, (int64_t)bytes, 1, "an archive's name");
  if (status != ATT_OK) {
    att_release(runtime, archive, 1, sizeof(att_archive));
    return status;
  }
  archive->name = memcpy(memory, name, bytes);
  *out = archive;
  return ATT_OK;
}

void att_archive_forget(const att_archive *archive) {
  att_file_forget(&archive->file);
  for (int64_t i = 0; i < archive->n_shards; i++) att_archive_forget(archive->shards[i]);
}

void att_archive_close(att_archive *archive) {
  if (!archive) return;
  const att_runtime *runtime = archive->runtime;
  for (int64_t i = 0; i < archive->n_shards; i++) att_archive_close(archive->shards[i]);
  att_release(runtime, archive->shards, archive->shards_reserved, sizeof *archive->shards);
  for (int64_t i = 0; i < archive->n_entries; i++)
    att_release(runtime, archive->entries[i].copy, archive->entries[i].bytes, 1);
  att_release(runtime, archive->by_name, archive->n_entries, sizeof *archive->by_name);
  att_release(runtime, archive->entries, archive->n_entries, sizeof *archive->entries);
  att_release(runtime, archive->names, archive->names_bytes, 1);
  att_json_free(archive->header);
  att_file_unmap(&archive->file);
  att_release(runtime, archive->name, (int64_t)strlen(archive->name) + 1, 1);
  att_release(runtime, archive, 1, sizeof *archive);
}

att_status att_archive_reserve(att_archive *archive, int64_t n) {
  void *entries, *by_name;
  ATT_TRY(att_alloc(&entries, archive->runtime, n, sizeof *archive->entries, "tensor entries"));
  att_status status =
      att_alloc(&by_name, archive->runtime, n, sizeof *archive->by_name, "sorted tensor names");
  if (status != ATT_OK) {
    att_release(archive->runtime, entries, n, sizeof *archive->entries);
    return status;
  }
  archive->entries = entries;
  archive->by_name = by_name;
  archive->n_entries = n;
  return ATT_OK;
}

static int compare_names(const void *a, const void *b) {
  const att_archive_entry *x = *(const att_archive_entry *const *)a;
  const att_archive_entry *y = *(const att_archive_entry *const *)b;
  return strcmp(x->name, y->name);
}

/* No name appears twice: the JSON reader has refused that. */
static void sort_names(att_archive *archive) {
  for (int64_t i = 0; i < archive->n_entries; i++) archive->by_name[i] = &archive->entries[i];
  qsort(archive->by_name, (size_t)archive->n_entries, sizeof *archive->by_name, compare_names);
}

static att_status copy_misaligned(att_archive *archive) {
  int64_t copied = 0;
  for (int64_t i = 0; i < archive->n_entries; i++) {
    att_archive_entry *entry = &archive->entries[i];
    size_t alignment = (size_t)att_dtype_bytes(entry->view.dtype);
    if (!entry->view.data || (uintptr_t)entry->view.data % alignment == 0) continue;
    ATT_TRY(att_alloc(&entry->copy, archive->runtime, entry->bytes, 1, "an aligned tensor"));
    entry->view.data = memcpy(entry->copy, entry->view.data, (size_t)entry->bytes);
    copied += entry->bytes;
  }
  if (copied > 0 && !archive->names) /* in a zip nothing is ever aligned */
    att_log(archive->runtime, ATT_LOG_WARNING,
            "%s: %lld bytes of tensors were not aligned and had to be copied", archive->name,
            (long long)copied);
  return ATT_OK;
}

/* JSON as the first bytes of a safetensors file would be a header of at least
 * 2^32 bytes, so the two cannot be taken for each other. */
static bool looks_like_index(const att_file *file) {
  size_t i = 0;
  while (i < file->bytes && (file->data[i] == ' ' || file->data[i] == '\n' ||
                             file->data[i] == '\r' || file->data[i] == '\t'))
    i++;
  if (i == file->bytes || file->data[i] != '{' || file->bytes < 8) return false;
  return file->data[4] | file->data[5] | file->data[6] | file->data[7];
}

static att_status read_content(att_archive *archive, bool is_shard) {
  const att_file *file = &archive->file;
  if (file->bytes == 0) return att_fail(ATT_CORRUPT, "%s: the file is empty", archive->name);
  if (file->bytes >= 6 && memcmp(file->data, "\x93NUMPY", 6) == 0) {
    if (is_shard) return att_fail(ATT_CORRUPT, "%s: an npy file as a shard", archive->name);
    ATT_TRY(att_npy_read(archive));
  } else if (file->bytes >= 4 &&
             (memcmp(file->data, "PK\3\4", 4) == 0 || memcmp(file->data, "PK\5\6", 4) == 0)) {
    if (is_shard) return att_fail(ATT_CORRUPT, "%s: an npz file as a shard", archive->name);
    ATT_TRY(att_npz_read(archive));
  } else if (looks_like_index(file)) {
    if (is_shard) return att_fail(ATT_CORRUPT, "%s: an index as a shard", archive->name);
    ATT_TRY(att_safetensors_index_read(archive));
  } else {
    ATT_TRY(att_safetensors_read(archive));
  }
  sort_names(archive);
  return copy_misaligned(archive); /* nothing is left to do where shards have done it */
}

static att_status open_path(att_archive **out, const att_runtime *runtime, const char *path,
                            bool is_shard) {
  att_archive *archive;
  ATT_TRY(archive_create(&archive, runtime, path));
  archive->from_path = true;
  att_status status = att_file_map(&archive->file, path);
  if (status == ATT_OK) status = read_content(archive, is_shard);
  if (status == ATT_OK)
    *out = archive;
  else
    att_archive_close(archive);
  return status;
}

att_status att_archive_open_shard(att_archive **out, const att_runtime *runtime, const char *path) {
  return open_path(out, runtime, path, true);
}

att_status att_archive_open(att_archive **out, att_runtime *runtime, const char *path) {
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "att_archive_open: out is NULL");
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "att_archive_open: runtime is NULL");
  if (!path) return att_fail(ATT_BAD_ARGUMENT, "att_archive_open: path is NULL");
  return open_path(out, runtime, path, false);
}

att_status att_archive_open_memory(att_archive **out, att_runtime *runtime, const void *bytes,
                                   size_t n, const char *name) {
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "att_archive_open_memory: out is NULL");
  if (!runtime) return att_fail(ATT_BAD_ARGUMENT, "att_archive_open_memory: runtime is NULL");
  if (!bytes && n > 0)
    return att_fail(ATT_BAD_ARGUMENT, "att_archive_open_memory: bytes is NULL but n is %zu", n);
  att_archive *archive;
  ATT_TRY(archive_create(&archive, runtime, name ? name : "memory"));
  archive->file = (att_file){.data = bytes, .bytes = n, .mapped = false};
  att_status status = read_content(archive, false);
  if (status == ATT_OK)
    *out = archive;
  else
    att_archive_close(archive);
  return status;
}

int64_t att_archive_count(const att_archive *archive) { return archive ? archive->n_entries : 0; }

const char *att_archive_name(const att_archive *archive, int64_t index) {
  if (!archive || index < 0 || index >= archive->n_entries) return NULL;
  return archive->entries[index].name;
}

const att_archive_entry *att_archive_find(const att_archive *archive, const char *name) {
  int64_t low = 0, high = archive->n_entries;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    int order = strcmp(archive->by_name[middle]->name, name);
    if (order == 0) return archive->by_name[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

att_status att_archive_get(att_view *out, const att_archive *archive, const char *name) {
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "att_archive_get: out is NULL");
  if (!archive) return att_fail(ATT_BAD_ARGUMENT, "att_archive_get: archive is NULL");
  if (!name) return att_fail(ATT_BAD_ARGUMENT, "att_archive_get: name is NULL");
  char label[ATT_LABEL_BYTES];
  const att_archive_entry *entry = att_archive_find(archive, name);
  if (!entry)
    return att_fail(ATT_NOT_FOUND, "%s: no tensor %s among its %lld", archive->name,
                    att_archive_label(label, name), (long long)archive->n_entries);
  if (entry->ndim > ATT_MAX_NDIM)
    return att_fail(ATT_UNSUPPORTED, "%s: tensor %s has %d dimensions; at most %d are supported",
                    archive->name, att_archive_label(label, name), entry->ndim, ATT_MAX_NDIM);
  if (!entry->view.data)
    return att_fail(ATT_UNSUPPORTED, "%s: tensor %s has element type %s, which is not supported",
                    archive->name, att_archive_label(label, name), entry->dtype);
  *out = entry->view;
  return ATT_OK;
}

const char *att_archive_metadata(const att_archive *archive, const char *key) {
  if (!archive || !key) return NULL;
  const att_json_node *node = att_json_member(archive->metadata, key);
  if (node && node->type == ATT_JSON_STRING) return node->text;
  for (int64_t i = 0; i < archive->n_shards; i++) {
    const char *text = att_archive_metadata(archive->shards[i], key);
    if (text) return text;
  }
  return NULL;
}

const char *att_archive_label(char out[ATT_LABEL_BYTES], const char *name) {
  return att_quote(out, ATT_LABEL_BYTES, name, strlen(name));
}
