/* Runs a fuzz target over files and folders, without libFuzzer: every input
 * that was ever interesting stays an ordinary test. Each input is given in a
 * block of exactly its size, whole, and cut at a number of places, so that a
 * sanitizer sees a byte read too many.
 *
 *     replay_json fuzz/corpus/json [FILE or FOLDER …]
 */
#include <dirent.h>
#include <sys/stat.h>

#include "fuzz.h"

#define CUTS 64 /* shortened versions of an input, evenly spread */

static long inputs;

static void run_once(const char *data, size_t bytes) {
  uint8_t *exact = malloc(bytes ? bytes : 1);
  fuzz_assert(exact);
  memcpy(exact, data, bytes);
  LLVMFuzzerTestOneInput(exact, bytes);
  free(exact);
}

static void run_file(const char *path, size_t bytes) {
  FILE *file = fopen(path, "rb");
  char *data = malloc(bytes + 1);
  fuzz_assert(file && data);
  fuzz_assert(fread(data, 1, bytes + 1, file) == bytes);
  fclose(file);
  run_once(data, bytes);
  size_t step = bytes / CUTS + 1;
  for (size_t length = 0; length < bytes; length += step) run_once(data, length);
  free(data);
  inputs++;
}

static void run_path(const char *path) {
  struct stat about;
  if (stat(path, &about) != 0) {
    fprintf(stderr, "%s: not found\n", path);
    exit(2);
  }
  if (S_ISREG(about.st_mode)) {
    run_file(path, (size_t)about.st_size);
    return;
  }
  DIR *folder = opendir(path);
  fuzz_assert(folder);
  for (struct dirent *entry; (entry = readdir(folder));) {
    char below[4096];
    if (entry->d_name[0] == '.') continue;
    int length = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
    fuzz_assert(length > 0 && (size_t)length < sizeof below);
    run_path(below);
  }
  closedir(folder);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) run_path(argv[i]);
  if (inputs == 0) {
    fprintf(stderr, "%s: no inputs\n", argv[0]);
    return 2;
  }
  printf("%ld inputs replayed\n", inputs);
  return 0;
}
