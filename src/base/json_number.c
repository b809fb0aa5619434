/* Numbers of JSON, rounded correctly.
 *
 * strtod rounds correctly but reads the decimal point of the process's locale,
 * and needs a zero behind the text. So the number is spelled again without any
 * point: its significant digits as an integer, then an exponent. A double (and
 * the middle between two) has at most 767 significant digits, so of those past
 * DIGITS it only matters whether one is not zero; then a last 1 stands for them. */
#include "base/json_reader.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/status.h"

#define DIGITS 800
#define EXPONENT_LIMIT 99999 /* beyond: zero or infinity, whatever the digits */

typedef struct decimal {
  char digits[DIGITS + 32]; /* significant ones, then room for the exponent */
  int count;
  bool lost;        /* a digit other than zero did not fit */
  int64_t exponent; /* value = digits * 10^exponent */
} decimal;

static bool is_digit(const json_reader *reader) {
  return reader->at < reader->bytes && reader->text[reader->at] >= '0' &&
         reader->text[reader->at] <= '9';
}

static bool take_any(json_reader *reader, char a, char b) {
  if (reader->at >= reader->bytes) return false;
  char c = reader->text[reader->at];
  if (c != a && c != b) return false;
  reader->at++;
  return true;
}

static void add_digit(decimal *value, char digit) {
  if (value->count == 0 && digit == '0') return;
  if (value->count < DIGITS) {
    value->digits[value->count++] = digit;
    return;
  }
  value->lost |= digit != '0';
  value->exponent++;
}

static att_status read_whole(decimal *value, json_reader *reader) {
  if (!is_digit(reader)) return att_json_expected(reader, "a digit");
  bool zero = reader->text[reader->at] == '0';
  do add_digit(value, reader->text[reader->at++]);
  while (is_digit(reader) && !zero);
  if (is_digit(reader)) return att_json_expected(reader, "no digit after a leading 0");
  return ATT_OK;
}

static att_status read_fraction(decimal *value, json_reader *reader) {
  if (!is_digit(reader)) return att_json_expected(reader, "a digit");
  while (is_digit(reader)) {
    value->exponent--;
    add_digit(value, reader->text[reader->at++]);
  }
  return ATT_OK;
}

static att_status read_exponent(decimal *value, json_reader *reader) {
  bool negative = reader->at < reader->bytes && reader->text[reader->at] == '-';
  take_any(reader, '+', '-');
  if (!is_digit(reader)) return att_json_expected(reader, "a digit");
  int64_t exponent = 0;
  for (; is_digit(reader); reader->at++) /* held below what could ever matter */
    if (exponent < INT64_MAX / 100) exponent = exponent * 10 + (reader->text[reader->at] - '0');
  value->exponent += negative ? -exponent : exponent;
  return ATT_OK;
}

static double to_double(decimal *value) {
  if (value->count == 0) return 0;
  if (value->lost) {
    value->digits[value->count++] = '1';
    value->exponent--;
  }
  int64_t e = value->exponent;
  e = e > EXPONENT_LIMIT ? EXPONENT_LIMIT : e < -EXPONENT_LIMIT ? -EXPONENT_LIMIT : e;
  snprintf(value->digits + value->count, sizeof value->digits - (size_t)value->count, "e%d",
           (int)e);
  return strtod(value->digits, NULL);
}

/* True if the digits are an int64 by themselves. */
static bool to_integer(int64_t *out, const decimal *value, bool negative) {
  int64_t integer = 0; /* counted downwards, since INT64_MIN has no opposite */
  if (value->exponent != 0) return false;
  for (int i = 0; i < value->count; i++)
    if (!att_mul_checked(&integer, integer, 10) ||
        !att_add_checked(&integer, integer, -(value->digits[i] - '0')))
      return false;
  if (!negative && integer == INT64_MIN) return false;
  *out = negative ? integer : -integer;
  return true;
}

att_status att_json_read_number(att_json_node *node, json_reader *reader) {
  decimal value;
  value.count = 0;
  value.lost = false;
  value.exponent = 0;
  size_t start = reader->at;
  bool negative = take_any(reader, '-', '-');
  bool fraction = false, exponent = false;
  ATT_TRY(read_whole(&value, reader));
  if ((fraction = take_any(reader, '.', '.'))) ATT_TRY(read_fraction(&value, reader));
  if ((exponent = take_any(reader, 'e', 'E'))) ATT_TRY(read_exponent(&value, reader));

  node->is_integer = !fraction && !exponent && to_integer(&node->integer, &value, negative);
  double magnitude = node->is_integer ? fabs((double)node->integer) : to_double(&value);
  if (magnitude > DBL_MAX)
    return att_json_fail(reader, ATT_TOO_LARGE, start, "number beyond the range of a double");
  node->number = negative ? -magnitude : magnitude;
  return ATT_OK;
}
