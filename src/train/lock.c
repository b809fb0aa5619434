/* One run at a time in a folder. The lock is the system's, on a file that stays: it ends
 * with the process that holds it, however that ends, and nobody has to judge whether a
 * file of another is still meant. Not fcntl's, which a process does not hold against
 * itself. */
#define _DEFAULT_SOURCE /* flock */
#define _DARWIN_C_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "train/training.h"

att_status att_training_lock(att_training *t) {
  char path[ATT_FOLDER_PATH];
  ATT_TRY(att_folder_make(t->settings.output));
  ATT_TRY(att_training_path(path, t, ".lock"));
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return att_fail(ATT_IO, "%s cannot be opened: %s", path, strerror(errno));
  if (flock(file, LOCK_EX | LOCK_NB) == 0) {
    t->lock = file;
    return ATT_OK;
  }
  int error = errno;
  close(file);
  if (error == EWOULDBLOCK)
    return att_fail(ATT_WRONG_STATE, "%s: another attend train is at work here",
                    t->settings.output);
  return att_fail(ATT_IO, "%s cannot be locked: %s", path, strerror(error));
}

void att_training_unlock(att_training *t) {
  if (t->lock >= 0) close(t->lock);
  t->lock = -1;
}
