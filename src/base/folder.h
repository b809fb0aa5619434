/* A folder that appears under its path only when complete: files go into a
 * temporary folder beside it, which is renamed at the end. */
#ifndef ATT_BASE_FOLDER_H
#define ATT_BASE_FOLDER_H

#include "base/runtime.h"

#include <stdbool.h>

#define ATT_FOLDER_PATH 4096
#define ATT_FOLDER_NAME 256

typedef struct att_folder_writer {
  char temporary[ATT_FOLDER_PATH], path[ATT_FOLDER_PATH];
} att_folder_writer;

/* IO if `path` names something other than an empty folder, TOO_LARGE. */
att_status att_folder_create(att_folder_writer *out, const char *path);

/* "temporary/name" into out[ATT_FOLDER_PATH]. TOO_LARGE. */
att_status att_folder_file(char *out, const att_folder_writer *writer, const char *name);

/* Puts the folder in its place; a failure has abandoned it. IO. */
att_status att_folder_commit(att_folder_writer *writer);
/* Removes it with the files in it. */
void att_folder_abandon(att_folder_writer *writer);

/* Makes a folder unless it is there; its parent must be. IO. */
att_status att_folder_make(const char *path);

/* The entry of a folder that comes next after `name` ("" at first) in the order of
 * bytes, into `name`; false if there is none. A pass over the folder each time. */
bool att_folder_next(char name[ATT_FOLDER_NAME], const char *path);

/* Removes a folder that holds files only; what cannot be removed stays. */
void att_folder_remove(const char *name);

#endif
