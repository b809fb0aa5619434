/* Maps and atomic writers, in a scratch folder of their own. */
#define _XOPEN_SOURCE 700
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char folder[64];

/* A path inside the scratch folder; four may be in use at a time. */
static const char *in_folder(const char *name) {
  static char paths[4][512];
  static int turn;
  char *path = paths[turn++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static void put(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fputs(text, file) >= 0, 1);
  assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *path, const char *text) {
  att_file file;
  assert_ok(att_file_map(&file, path));
  assert_int_equal(file.bytes, strlen(text));
  assert_memory_equal(file.data, text, file.bytes);
  att_file_unmap(&file);
}

static int entries(void) {
  int count = 0;
  DIR *list = opendir(folder);
  for (struct dirent *entry; (entry = readdir(list));)
    count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  closedir(list);
  return count;
}

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "attend-test-file-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  DIR *list = opendir(folder);
  for (struct dirent *entry; (entry = readdir(list));) {
    unlink(in_folder(entry->d_name));
    rmdir(in_folder(entry->d_name));
  }
  closedir(list);
  return rmdir(folder);
}

static void a_map_with_other_bytes_than_the_file(void **state) {
  (void)state;
  put(in_folder("text"), "some bytes\n");
  att_file file;
  assert_ok(att_file_map(&file, in_folder("text")));
  assert_true(file.mapped);
  assert_int_equal(file.bytes, 11);
  assert_memory_equal(file.data, "some bytes\n", 11);
  unlink(in_folder("text"));
  assert_memory_equal(file.data, "some bytes\n", 11);
  att_file_unmap(&file);
  assert_null(file.data);
  att_file_unmap(&file);
  att_file_unmap(NULL);
}

static void an_empty_file_that_cannot_be_mapped(void **state) {
  (void)state;
  put(in_folder("empty"), "");
  att_file file = {.bytes = 5};
  assert_ok(att_file_map(&file, in_folder("empty")));
  assert_non_null(file.data);
  assert_int_equal(file.bytes, 0);
  att_file_unmap(&file);
}

static void a_path_that_is_no_file(void **state) {
  (void)state;
  att_file file = {.bytes = 5};
  assert_status(ATT_NOT_FOUND, att_file_map(&file, in_folder("absent")));
  assert_message_has("absent");
  put(in_folder("text"), "x");
  assert_status(ATT_NOT_FOUND, att_file_map(&file, in_folder("text/below")));
  assert_status(ATT_IO, att_file_map(&file, folder));
  assert_message_has("folder");
  assert_status(ATT_BAD_ARGUMENT, att_file_map(&file, NULL));
  assert_status(ATT_NOT_FOUND, att_file_map(&file, ""));
  assert_int_equal(file.bytes, 5);
}

static void a_pipe_that_is_waited_for(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file file;
  att_file_writer writer;
  assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
  alarm(5); /* opening a pipe without a partner would hang for ever */
  assert_status(ATT_IO, att_file_map(&file, in_folder("pipe")));
  assert_message_has("pipe");
  assert_status(ATT_IO, att_file_create(&writer, &runtime, in_folder("pipe")));
  assert_status(ATT_IO, att_file_create(&writer, &runtime, "/dev/null"));
  assert_status(ATT_IO, att_file_create(&writer, &runtime, folder));
  assert_status(ATT_IO, att_file_map(&file, "/dev/zero"));
  alarm(0);
  assert_no_leak(&memory);
}

static void a_file_without_permission_that_is_read_or_replaced(void **state) {
  (void)state;
  if (geteuid() == 0) skip(); /* root may do everything */
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file file;
  att_file_writer writer;
  put(in_folder("locked"), "old");
  chmod(in_folder("locked"), 0);
  assert_status(ATT_IO, att_file_map(&file, in_folder("locked")));
  assert_status(ATT_IO, att_file_create(&writer, &runtime, in_folder("locked")));
  assert_no_leak(&memory);
}

static void a_half_written_file_under_the_real_name(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file_writer writer;
  put(in_folder("model"), "old");
  assert_ok(att_file_create(&writer, &runtime, in_folder("model")));
  fputs("new, and longer", writer.stream);
  fflush(writer.stream);
  assert_content(in_folder("model"), "old");
  assert_ok(att_file_commit(&writer, &runtime));
  assert_content(in_folder("model"), "new, and longer");
  assert_int_equal(entries(), 1);
  assert_no_leak(&memory);
}

static void a_map_that_changes_when_the_file_is_replaced(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file file;
  att_file_writer writer;
  put(in_folder("model"), "old");
  assert_ok(att_file_map(&file, in_folder("model")));
  assert_ok(att_file_create(&writer, &runtime, in_folder("model")));
  assert_ok(att_file_commit(&writer, &runtime));
  assert_memory_equal(file.data, "old", 3);
  att_file_unmap(&file);
  assert_content(in_folder("model"), "");
}

static void an_abandoned_file_that_leaves_traces(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file_writer writer;
  assert_ok(att_file_create(&writer, &runtime, in_folder("model")));
  fputs("half", writer.stream);
  att_file_abandon(&writer, &runtime);
  assert_int_equal(entries(), 0);
  att_file_abandon(&writer, &runtime);
  att_file_abandon(NULL, &runtime);
  assert_no_leak(&memory);
}

static void two_writers_that_share_a_temporary_name(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file_writer first, second;
  assert_ok(att_file_create(&first, &runtime, in_folder("model")));
  assert_ok(att_file_create(&second, &runtime, in_folder("model")));
  assert_string_not_equal(first.temporary, second.temporary);
  fputs("first", first.stream);
  fputs("second", second.stream);
  assert_ok(att_file_commit(&second, &runtime));
  assert_content(in_folder("model"), "second");
  assert_ok(att_file_commit(&first, &runtime));
  assert_content(in_folder("model"), "first");
  assert_int_equal(entries(), 1);
  assert_no_leak(&memory);
}

static void a_disk_error_that_commit_does_not_see(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file_writer writer;
  put(in_folder("model"), "old");
  assert_ok(att_file_create(&writer, &runtime, in_folder("model")));
  fputs("new", writer.stream);
  fflush(writer.stream);
  assert_non_null(freopen("/dev/full", "wb", writer.stream)); /* always "no space left" */
  fputs("more", writer.stream);
  assert_status(ATT_IO, att_file_commit(&writer, &runtime));
  assert_message_has("model");
  assert_content(in_folder("model"), "old");
  assert_int_equal(entries(), 1);
  assert_no_leak(&memory);
}

static void a_full_disk_that_is_called_an_error_of_the_device(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file_writer writer;
  assert_ok(att_file_create(&writer, &runtime, in_folder("model")));
  assert_non_null(freopen("/dev/full", "wb", writer.stream));
  fputs("lost", writer.stream);
  assert_int_equal(fflush(writer.stream), EOF); /* long before commit */
  errno = 0;
  assert_status(ATT_IO, att_file_commit(&writer, &runtime));
  assert_message_has(strerror(ENOSPC));
  assert_no_leak(&memory);
}

static void a_folder_that_vanishes_before_commit(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file_writer writer;
  assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
  assert_ok(att_file_create(&writer, &runtime, in_folder("sub/model")));
  unlink(writer.temporary);
  rmdir(in_folder("sub"));
  assert_status(ATT_NOT_FOUND, att_file_commit(&writer, &runtime));
  assert_no_leak(&memory);
}

static void a_target_that_cannot_be_created(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file_writer writer = {0};
  assert_status(ATT_NOT_FOUND, att_file_create(&writer, &runtime, in_folder("no/such/model")));
  assert_message_has("no/such/model");
  assert_status(ATT_BAD_ARGUMENT, att_file_create(&writer, &runtime, ""));
  assert_status(ATT_BAD_ARGUMENT, att_file_create(&writer, &runtime, in_folder("sub/")));
  assert_status(ATT_BAD_ARGUMENT, att_file_create(&writer, &runtime, NULL));
  assert_null(writer.stream);
  assert_no_leak(&memory);
}

static void a_link_that_is_replaced_by_a_file(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file_writer writer;
  struct stat about;
  put(in_folder("target"), "old");
  assert_int_equal(symlink("target", in_folder("link")), 0);
  assert_ok(att_file_create(&writer, &runtime, in_folder("link")));
  fputs("new", writer.stream);
  assert_ok(att_file_commit(&writer, &runtime));
  assert_content(in_folder("target"), "new");
  assert_int_equal(lstat(in_folder("link"), &about), 0);
  assert_true(S_ISLNK(about.st_mode));
}

static void permissions_that_a_new_version_loses(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file_writer writer;
  struct stat about;
  mode_t mask = umask(027);
  assert_ok(att_file_create(&writer, &runtime, in_folder("model")));
  assert_ok(att_file_commit(&writer, &runtime));
  assert_int_equal(stat(in_folder("model"), &about), 0);
  assert_int_equal(about.st_mode & 0777, 0640); /* as any program would create it */
  chmod(in_folder("model"), 0606);
  assert_ok(att_file_create(&writer, &runtime, in_folder("model")));
  assert_ok(att_file_commit(&writer, &runtime));
  umask(mask);
  assert_int_equal(stat(in_folder("model"), &about), 0);
  assert_int_equal(about.st_mode & 0777, 0606);
}

static void a_name_near_the_longest_that_fails(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  att_file_writer writer;
  char name[256];
  memset(name, 'n', 255);
  name[255] = 0;
  assert_ok(att_file_create(&writer, &runtime, in_folder(name)));
  assert_ok(att_file_commit(&writer, &runtime));
  assert_true(att_path_is_file(in_folder(name)));
}

static att_status create_file(void *context) {
  att_file_writer writer;
  ATT_TRY(att_file_create(&writer, context, in_folder("model")));
  att_file_abandon(&writer, context);
  return ATT_OK;
}

static void memory_that_runs_out_while_creating(void **state) {
  (void)state;
  test_memory memory = {0};
  att_runtime runtime = test_runtime(&memory);
  test_torture(&memory, create_file, &runtime);
  assert_int_equal(entries(), 0);
}

static void a_path_of_the_wrong_kind(void **state) {
  (void)state;
  put(in_folder("file"), "");
  assert_true(att_path_is_folder(folder));
  assert_false(att_path_is_folder(in_folder("file")));
  assert_true(att_path_is_file(in_folder("file")));
  assert_false(att_path_is_file(folder));
  assert_false(att_path_is_file("/dev/null"));
  assert_false(att_path_is_file(in_folder("absent")));
  assert_false(att_path_is_folder(NULL));
  assert_false(att_path_is_file(NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_map_with_other_bytes_than_the_file),
      TEST(an_empty_file_that_cannot_be_mapped),
      TEST(a_path_that_is_no_file),
      TEST(a_pipe_that_is_waited_for),
      TEST(a_file_without_permission_that_is_read_or_replaced),
      TEST(a_half_written_file_under_the_real_name),
      TEST(a_map_that_changes_when_the_file_is_replaced),
      TEST(an_abandoned_file_that_leaves_traces),
      TEST(two_writers_that_share_a_temporary_name),
      TEST(a_disk_error_that_commit_does_not_see),
      TEST(a_full_disk_that_is_called_an_error_of_the_device),
      TEST(a_folder_that_vanishes_before_commit),
      TEST(a_target_that_cannot_be_created),
      TEST(a_link_that_is_replaced_by_a_file),
      TEST(permissions_that_a_new_version_loses),
      TEST(a_name_near_the_longest_that_fails),
      TEST(memory_that_runs_out_while_creating),
      TEST(a_path_of_the_wrong_kind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
