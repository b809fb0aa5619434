/* Files of a model folder: paths on disk, or bytes inside the program. */
#include "model/folder.h"

#include <stdio.h>

#include "base/status.h"

att_status att_folder_join(char *out, size_t bytes, const att_folder *folder, const char *name) {
  int n = snprintf(out, bytes, "%s/%s", folder->path, name);
  if (n >= 0 && (size_t)n < bytes) return ATT_OK;
  return att_fail(ATT_TOO_LARGE, "the path %s/%s is too long", folder->path, name);
}

bool att_folder_has(const att_folder *folder, const char *name) {
  char path[ATT_PATH_BYTES];
  if (folder->builtin) return att_builtin_find(folder->builtin, name) != NULL;
  return att_folder_join(path, sizeof path, folder, name) == ATT_OK && att_path_is_file(path);
}

/* Maps a file, or borrows the bytes of a compiled-in one. */
static att_status map(att_file *out, const att_folder *folder, const char *path, const char *name) {
  if (!folder->builtin) return att_file_map(out, path);
  const att_builtin_file *file = att_builtin_find(folder->builtin, name);
  if (!file) return att_fail(ATT_NOT_FOUND, "%s is not there", path);
  *out = (att_file){.data = file->bytes, .bytes = file->size};
  return ATT_OK;
}

att_status att_folder_json(att_json **out, const att_runtime *runtime, const att_folder *folder,
                           const char *name) {
  char path[ATT_PATH_BYTES];
  ATT_TRY(att_folder_join(path, sizeof path, folder, name));
  att_file file;
  ATT_TRY(map(&file, folder, path, name));
  att_status status = att_json_parse(out, runtime, (const char *)file.data, file.bytes, path);
  att_file_unmap(&file);
  return status;
}

att_status att_folder_archive(att_archive **out, att_runtime *runtime, const att_folder *folder) {
  static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
  char path[ATT_PATH_BYTES];
  for (int i = 0; i < 2; i++) {
    if (!att_folder_has(folder, names[i])) continue;
    ATT_TRY(att_folder_join(path, sizeof path, folder, names[i]));
    if (!folder->builtin) return att_archive_open(out, runtime, path);
    const att_builtin_file *file = att_builtin_find(folder->builtin, names[i]);
    return att_archive_open_memory(out, runtime, file->bytes, file->size, path);
  }
  bool pickle = att_folder_has(folder, "pytorch_model.bin") ||
                att_folder_has(folder, "pytorch_model.bin.index.json");
  if (pickle)
    return att_fail(
        ATT_UNSUPPORTED,
        "%s holds pytorch_model.bin, a pickle, which can run code when opened; " ATT_CONVERT_HINT,
        folder->path);
  return att_fail(ATT_NOT_FOUND, "%s holds neither %s nor %s", folder->path, names[0], names[1]);
}
