/* What the golden runner asks of a system and wasi-libc does not have. Paths are
 * given without links; rows that need a new folder are not run. */
#ifndef ATT_WASM_GOLDEN_HOST_H
#define ATT_WASM_GOLDEN_HOST_H

#include <stddef.h>
#include <string.h>

#define P_tmpdir "/tmp"

static inline char *mkdtemp(char *path) {
  (void)path;
  return NULL;
}

static inline char *realpath(const char *path, char *resolved) {
  return resolved ? strcpy(resolved, path) : strdup(path);
}

#endif
