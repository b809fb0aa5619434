/* The golden runner itself: a runner that overlooks a wrong number would make
 * every golden worthless. Comparisons are fed wrong values; then the program
 * runs over small trees made here, most of them wrong on purpose. */
#define _XOPEN_SOURCE 700
#include "support.h"

#include <float.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attend/archive.h"
#include "golden/compare.h"

/* tests/golden/plan.c, declared here because golden.h needs the whole library. */
int64_t golden_piece(const char *plan, int64_t index, int64_t done, int64_t total);

static void overlooks_a_wrong_element(void **state) {
  (void)state;
  const double want[5] = {1, -2, 0, INFINITY, -INFINITY};
  static const struct {
    int at;
    double value;
  } wrong[] = {{0, 1.0011}, {0, 0.9989},    {1, 2},        {2, NAN},      {2, INFINITY},
               {3, 1e308},  {3, -INFINITY}, {4, INFINITY}, {4, -DBL_MAX}, {3, NAN}};
  assert_int_equal(golden_compare(want, want, 5, 0).at, -1);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    double got[5];
    memcpy(got, want, sizeof got);
    got[wrong[i].at] = wrong[i].value;
    golden_difference worst = golden_compare(got, want, 5, 1e-3);
    assert_int_equal(worst.at, wrong[i].at);
    assert_int_equal(worst.bad, 1);
  }
  const double broken[2] = {1, NAN}; /* a golden that is itself not a number */
  assert_int_equal(golden_compare(broken, broken, 2, INFINITY).at, 1);
}

static void reports_not_the_worst(void **state) {
  (void)state;
  const double want[4] = {0, 0, 0, 0}, got[4] = {0.1, -0.3, 0.2, 0.001};
  golden_difference worst = golden_compare(got, want, 4, 0.01);
  assert_int_equal(worst.at, 1);
  assert_int_equal(worst.bad, 3);
  assert_true(worst.got == -0.3 && worst.want == 0 && worst.error == 0.3);
  assert_int_equal(golden_compare(got, want, 4, 0.3).at, -1); /* the tolerance is included */
}

static void cuts_a_plan_wrongly(void **state) {
  (void)state;
  static const struct {
    const char *plan;
    int64_t total, pieces[8];
  } rows[] = {{NULL, 9, {9}},          {"9", 9, {9}},        {"1x4", 4, {1, 1, 1, 1}},
              {"5,1,7", 9, {5, 1, 3}}, {"2", 5, {2, 2, 1}},  {"3,1x2,2", 9, {3, 1, 1, 2, 2}},
              {"0", 2, {1, 1}},        {"4,x", 6, {4, 1, 1}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t done = 0;
    for (int64_t n = 0; done < rows[i].total; n++) {
      int64_t piece = golden_piece(rows[i].plan, n, done, rows[i].total);
      assert_int_equal(piece, rows[i].pieces[n]);
      done += piece;
    }
  }
}

static test_memory memory;
static att_runtime runtime;
static char folder[64];

static int set_up(void **state) {
  (void)state;
  runtime = test_runtime(&memory);
  strcpy(folder, "attend-test-golden-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  char path[128];
  static const char *const names[] = {"case.safetensors", "manifest.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  return rmdir(folder);
}

/* A lesson of one query and two keys, q·k = 0 and 0, so that weights are 1/2
 * and 1/2, the mix of 1 and 3 is 2 and lse = log 2. `name` NULL: none changed. */
static void write_lesson(const char *op, const char *name, double value) {
  float q[1] = {1}, k[2] = {0, 0}, v[2] = {1, 3};
  double weights[2] = {0.5, 0.5}, out[1] = {2}, lse[1] = {0.69314718055994531};
  if (name && strcmp(name, "weights") == 0) weights[1] = value;
  if (name && strcmp(name, "out") == 0) out[0] = value;
  if (name && strcmp(name, "lse") == 0) lse[0] = value;
  const char *names[6] = {"q", "k", "v", "weights", "out", "lse"};
  int64_t pair[4] = {1, 1, 1, 2}, column[4] = {1, 1, 2, 1}, one[4] = {1, 1, 1, 1};
  att_view views[6] = {att_view_of(q, ATT_F32, 4, one),    att_view_of(k, ATT_F32, 4, column),
                       att_view_of(v, ATT_F32, 4, column), att_view_of(weights, ATT_F64, 4, pair),
                       att_view_of(out, ATT_F64, 4, one),  att_view_of(lse, ATT_F64, 3, one)};
  const char *metadata[4] = {"op", op, "scale", "1.0"};
  char path[128];
  snprintf(path, sizeof path, "%s/case.safetensors", folder);
  int64_t n = name && strcmp(name, "absent") == 0 ? 3 : 6;
  assert_ok(att_safetensors_write(&runtime, path, n, names, views, 2, metadata));
}

static void write_text(const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* Runs the program over the folder; checks its exit and its last line, and that
 * the output mentions `says`. */
static void run(int exit_status, const char *last_line, const char *says) {
  char command[4096], output[4096] = "";
  snprintf(command, sizeof command, "%s %s", ATT_GOLDEN, folder);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  size_t n = fread(output, 1, sizeof output - 1, pipe);
  int status = pclose(pipe);
  assert_true(WIFEXITED(status));
  if (n > 0 && output[n - 1] == '\n') output[n - 1] = 0;
  const char *newline = strrchr(output, '\n'), *last = newline ? newline + 1 : output;
  if (!strstr(output, says)) print_error("output: %s\n", output);
  assert_non_null(strstr(output, says));
  assert_string_equal(last, last_line);
  assert_int_equal(WEXITSTATUS(status), exit_status);
}

static void fails_what_is_right(void **state) {
  (void)state;
  run(0, "0 passed, 0 failed, 0 skipped", ""); /* an empty tree */
  write_lesson("lesson", NULL, 0);
  run(0, "1 passed, 0 failed, 0 skipped", "");
  write_lesson("lesson", "absent", 0); /* an expected tensor may be absent */
  run(0, "1 passed, 0 failed, 0 skipped", "");
}

static void passes_what_is_wrong(void **state) {
  (void)state;
  static const struct {
    const char *tensor;
    double value;
    const char *says;
  } rows[] = {
      {"weights", 0.501, "weights, worst element [0,0,0,1], got 0.5, want 0.501"},
      {"weights", 0, "want exactly 0"},
      {"out", 2.00001, "out, worst element [0,0,0,0], got 2, want 2.00001"},
      {"out", NAN, "want nan"},
      {"lse", INFINITY, "want inf"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    write_lesson("lesson", rows[i].tensor, rows[i].value);
    run(1, "0 passed, 1 failed, 0 skipped", rows[i].says);
  }
}

static void counts_the_unknown_as_passed(void **state) {
  (void)state;
  write_lesson("unheard of", NULL, 0);
  run(0, "0 passed, 0 failed, 1 skipped", "skipped 1: op of no known kind");
  write_text("case.safetensors", "no safetensors");
  run(1, "0 passed, 1 failed, 0 skipped", "cannot be read");
}

static void believes_a_loader_that_accepts_everything(void **state) {
  (void)state;
  write_lesson("lesson", NULL, 0);
  write_text("manifest.json", "[{\"file\":\"case.safetensors\",\"format\":\"safetensors\","
                              "\"what\":\"it is fine\",\"must\":\"refuse\"}]");
  run(1, "0 passed, 1 failed, 0 skipped", "it is fine: got accepted, want refused");
  write_text("manifest.json", "[{\"file\":\"case.safetensors\",\"format\":\"safetensors\","
                              "\"what\":\"it is fine\",\"must\":\"accept\"}]");
  run(0, "1 passed, 0 failed, 0 skipped", "");
  write_text("case.safetensors", "broken");
  run(1, "0 passed, 1 failed, 0 skipped", "want accepted");
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(overlooks_a_wrong_element),
      cmocka_unit_test(reports_not_the_worst),
      cmocka_unit_test(cuts_a_plan_wrongly),
      TEST(fails_what_is_right),
      TEST(passes_what_is_wrong),
      TEST(counts_the_unknown_as_passed),
      TEST(believes_a_loader_that_accepts_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
