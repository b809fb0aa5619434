/* Sharded safetensors: model.safetensors.index.json.
 *
 * {"metadata": {…}, "weight_map": {"tensor name": "shard file name", …}}
 *
 * All shards are opened at once (they are only mapped) and the result is one
 * archive with the names of the index. A shard is a plain file name beside the
 * index: anything that could lead out of its folder is refused before it is
 * opened. A tensor must be in the shard that the index says and in no other. */
#include <string.h>

#include "base/alloc.h"
#include "io/archive.h"

static bool is_plain_file_name(const att_json_node *node) {
  if (node->text_bytes == 0 || strlen(node->text) != node->text_bytes) return false;
  if (strcmp(node->text, ".") == 0 || strcmp(node->text, "..") == 0) return false;
  return !strpbrk(node->text, "/\\");
}

/* Opens folder-of-the-index/name. */
static att_status open_beside(att_archive **out, const att_archive *archive, const char *name) {
  const char *slash = strrchr(archive->name, '/');
  size_t folder = slash ? (size_t)(slash - archive->name) + 1 : 0, bytes = strlen(name) + 1;
  void *memory;
  ATT_TRY(att_alloc(&memory, archive->runtime, (int64_t)(folder + bytes), 1, "a shard's path"));
  char *path = memory;
  memcpy(path, archive->name, folder);
  memcpy(path + folder, name, bytes);
  att_status status = att_archive_open_shard(out, archive->runtime, path);
  att_release(archive->runtime, path, (int64_t)(folder + bytes), 1);
  return status;
}

static const char *file_name(const att_archive *shard) {
  const char *slash = strrchr(shard->name, '/');
  return slash ? slash + 1 : shard->name;
}

/* The shard that a row of the map names, opened when first met. */
static att_status shard_of(const att_archive **out, att_archive *archive,
                           const att_json_node *row) {
  char tensor[ATT_LABEL_BYTES], shard[ATT_LABEL_BYTES];
  if (row->type != ATT_JSON_STRING)
    return att_fail(ATT_CORRUPT, "%s: offset %zu: the shard of %s is not a string", archive->name,
                    row->offset, att_archive_label(tensor, row->key));
  if (!is_plain_file_name(row))
    return att_fail(ATT_CORRUPT, "%s: offset %zu: shard %s is not a file in the index's folder",
                    archive->name, row->offset, att_archive_label(shard, row->text));
  for (int64_t i = 0; i < archive->n_shards; i++) {
    if (strcmp(file_name(archive->shards[i]), row->text) == 0) {
      *out = archive->shards[i];
      return ATT_OK;
    }
  }
  ATT_TRY(open_beside(&archive->shards[archive->n_shards], archive, row->text));
  *out = archive->shards[archive->n_shards++];
  return ATT_OK;
}

static att_status read_row(att_archive_entry *entry, att_archive *archive,
                           const att_json_node *row) {
  char label[ATT_LABEL_BYTES];
  if (strlen(row->key) != row->key_bytes)
    return att_fail(ATT_CORRUPT, "%s: offset %zu: a zero byte in the name %s", archive->name,
                    row->offset, att_archive_label(label, row->key));
  const att_archive *shard = NULL;
  ATT_TRY(shard_of(&shard, archive, row));
  const att_archive_entry *found = att_archive_find(shard, row->key);
  if (!found)
    return att_fail(ATT_CORRUPT, "%s: tensor %s is not in its shard %s", archive->name,
                    att_archive_label(label, row->key), shard->name);
  *entry = *found;
  entry->copy = NULL; /* stays the shard's */
  return ATT_OK;
}

/* No tensor of the index may be in a second shard as well: which one counts
 * would depend on the reader. */
static att_status check_single(const att_archive *archive, const att_archive_entry *entry) {
  int64_t holders = 0;
  for (int64_t i = 0; i < archive->n_shards; i++)
    if (att_archive_find(archive->shards[i], entry->name)) holders++;
  if (holders == 1) return ATT_OK;
  char label[ATT_LABEL_BYTES];
  return att_fail(ATT_CORRUPT, "%s: tensor %s is in %lld shards", archive->name,
                  att_archive_label(label, entry->name), (long long)holders);
}

att_status att_safetensors_index_read(att_archive *archive) {
  ATT_TRY(att_json_parse(&archive->header, archive->runtime, (const char *)archive->file.data,
                         archive->file.bytes, archive->name));
  const att_json_node *root = att_json_root(archive->header);
  const att_json_node *map = att_json_member(root, "weight_map");
  if (!map || map->type != ATT_JSON_OBJECT)
    return att_fail(ATT_CORRUPT, "%s: no object weight_map: not an index of safetensors files",
                    archive->name);
  if (!archive->from_path)
    return att_fail(ATT_UNSUPPORTED, "%s: an index in memory has no folder to find its shards in",
                    archive->name);
  archive->metadata = att_json_member(root, "metadata");

  void *shards;
  ATT_TRY(att_alloc(&shards, archive->runtime, map->count, sizeof *archive->shards, "shards"));
  archive->shards = shards;
  archive->shards_reserved = map->count;
  ATT_TRY(att_archive_reserve(archive, map->count));
  att_archive_entry *entry = archive->entries;
  for (const att_json_node *row = map->child; row; row = row->next)
    ATT_TRY(read_row(entry++, archive, row));
  for (int64_t i = 0; i < archive->n_entries; i++)
    ATT_TRY(check_single(archive, &archive->entries[i]));
  return ATT_OK;
}
