/* Folders that appear when complete. rename() takes the place of an empty folder
 * and of nothing else, which is the rule wanted here. */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"

enum { TRIES = 100 };

static bool is_empty_or_absent(const char *path) {
  DIR *folder = opendir(path);
  if (!folder) return errno == ENOENT;
  int n = 0;
  for (struct dirent *e; (e = readdir(folder));)
    n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  closedir(folder);
  return n == 0;
}

att_status att_folder_create(att_folder_writer *out, const char *path) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  if (n == 0 || n + 32 > ATT_FOLDER_PATH)
    return att_fail(ATT_TOO_LARGE, "the folder's path has %zu characters", n);
  snprintf(out->path, sizeof out->path, "%.*s", (int)n, path);
  if (!is_empty_or_absent(out->path))
    return att_fail(ATT_IO, "%s is already there and not an empty folder", out->path);
  for (int i = 0; i < TRIES; i++) {
    snprintf(out->temporary, sizeof out->temporary, "%.*s.%ld-%d.part", (int)n, path,
             (long)getpid(), i);
    if (mkdir(out->temporary, 0777) == 0) return ATT_OK;
    if (errno != EEXIST) break;
  }
  return att_fail(ATT_IO, "%s cannot be made: %s", out->temporary, strerror(errno));
}

att_status att_folder_file(char *out, const att_folder_writer *writer, const char *name) {
  int n = snprintf(out, ATT_FOLDER_PATH, "%s/%s", writer->temporary, name);
  if (n > 0 && n < ATT_FOLDER_PATH) return ATT_OK;
  return att_fail(ATT_TOO_LARGE, "the path of %s is too long", name);
}

att_status att_folder_commit(att_folder_writer *writer) {
  if (rename(writer->temporary, writer->path) == 0) {
    att_file_sync_folder(writer->path);
    return ATT_OK;
  }
  int error = errno;
  att_folder_abandon(writer);
  return att_fail(ATT_IO, "%s cannot be put in place: %s", writer->path, strerror(error));
}

void att_folder_abandon(att_folder_writer *writer) { att_folder_remove(writer->temporary); }

void att_folder_remove(const char *name) {
  DIR *folder = opendir(name);
  char path[ATT_FOLDER_PATH];
  for (struct dirent *e; folder && (e = readdir(folder));)
    if (snprintf(path, sizeof path, "%s/%s", name, e->d_name) < (int)sizeof path)
      unlink(path); /* fails for "." and "..", as it should */
  if (folder) closedir(folder);
  rmdir(name);
}

att_status att_folder_make(const char *path) {
  if (mkdir(path, 0777) == 0 || (errno == EEXIST && att_path_is_folder(path))) return ATT_OK;
  return att_fail(ATT_IO, "%s cannot be made: %s", path, strerror(errno));
}

bool att_folder_next(char name[ATT_FOLDER_NAME], const char *path) {
  DIR *folder = opendir(path);
  char next[ATT_FOLDER_NAME] = "";
  for (struct dirent *e; folder && (e = readdir(folder));) {
    const char *n = e->d_name;
    if (!strcmp(n, ".") || !strcmp(n, "..") || strlen(n) >= sizeof next) continue;
    if (strcmp(n, name) > 0 && (!next[0] || strcmp(n, next) < 0)) memcpy(next, n, strlen(n) + 1);
  }
  if (folder) closedir(folder);
  memcpy(name, next, sizeof next);
  return next[0] != 0;
}
