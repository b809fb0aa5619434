/* Files of JSON: one value, or one a line. */
#ifndef ATT_TESTS_GOLDEN_JSONL_H
#define ATT_TESTS_GOLDEN_JSONL_H

#include "base/json.h"
#include "golden.h"

/* The whole file in the case's memory, zero-terminated; NULL if unreadable. */
char *golden_slurp(golden_case *c, const char *path, size_t *bytes);

/* Calls `row` with each line's value; a line that is no JSON fails the case. */
typedef void golden_row_fn(golden_case *c, const att_json_node *row);
void golden_each_line(golden_case *c, golden_row_fn *row);

/* An array of whole numbers as ids; NULL if the member is none. */
int32_t *golden_ids(golden_case *c, const att_json_node *row, const char *key, int64_t *n);

/* Fails the run where two lists of numbers differ. */
void golden_expect_ids(golden_case *c, const char *what, const int32_t *got, int64_t n_got,
                       const int32_t *want, int64_t n_want);

/* A member that is a string, or NULL. */
const char *golden_member_text(const att_json_node *row, const char *key);

#endif
