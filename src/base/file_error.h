/* How file.c and file_write.c report what the system says. */
#ifndef ATT_BASE_FILE_ERROR_H
#define ATT_BASE_FILE_ERROR_H

#include <sys/stat.h>

#include "base/status.h"

/* "path: cannot action: reason" by errno; NOT_FOUND, OUT_OF_MEMORY or IO. */
att_status att_file_error(const char *path, const char *action);

/* IO unless `about` describes a regular file. */
att_status att_file_refuse_special(const char *path, const struct stat *about);

#endif
