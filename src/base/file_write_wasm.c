/* Writing files in WebAssembly: not there; the host has the arrays. Takes the
 * place of file_write.c. */
#include "base/file.h"

att_status att_file_create(att_file_writer *out, const att_runtime *runtime, const char *path) {
  (void)out, (void)runtime;
  return att_fail(ATT_UNSUPPORTED, "%s: this build writes no files", path ? path : "(no name)");
}

att_status att_file_commit(att_file_writer *writer, const att_runtime *runtime) {
  return att_file_create(writer, runtime, NULL);
}

void att_file_abandon(att_file_writer *writer, const att_runtime *runtime) {
  (void)writer, (void)runtime;
}
