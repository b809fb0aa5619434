/* Element types: the list of dtypes.inc as functions, and conversions of the
 * two 16-bit floats in integer arithmetic, so that they do not depend on the
 * processor, its rounding mode or its treatment of denormals.
 *
 * Narrowing rounds once, to nearest, ties to even; what is beyond the largest
 * number by half a step or more becomes infinity; a NaN stays a (quiet) NaN. */
#include "base/dtype.h"

#include <string.h>

#include "base/line.h"
#include "base/status.h"

typedef struct dtype_row {
  att_dtype dtype;
  const char *name;
  int64_t block, bytes;
} dtype_row;

static const dtype_row rows[] = {
#define ATT_DTYPE(name, value, text, elements, bytes) {ATT_##name, text, elements, bytes},
#include "attend/dtypes.inc"
#undef ATT_DTYPE
};

static const dtype_row *find(att_dtype dtype) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].dtype == dtype) return &rows[i];
  return NULL;
}

const char *att_dtype_name(att_dtype dtype) {
  const dtype_row *row = find(dtype);
  return row ? row->name : "unknown";
}

/* Of ASCII letters only: tolower() asks the locale. */
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool same_name(const char *a, const char *b) {
  for (; *a && *b; a++, b++)
    if (lower(*a) != lower(*b)) return false;
  return *a == *b;
}

att_status att_dtype_from_name(att_dtype *out, const char *name) {
  if (!out || !name) return att_fail(ATT_BAD_ARGUMENT, "dtype name: NULL argument");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!same_name(rows[i].name, name)) continue;
    *out = rows[i].dtype;
    return ATT_OK;
  }
  char quoted[64];
  return att_fail(ATT_NOT_FOUND, "no element type is called %s",
                  att_quote(quoted, sizeof quoted, name, strlen(name)));
}

bool att_dtype_is_known(att_dtype dtype) { return find(dtype) != NULL; }

bool att_dtype_is_float(att_dtype dtype) {
  return dtype == ATT_F64 || dtype == ATT_F32 || dtype == ATT_F16 || dtype == ATT_BF16;
}

int64_t att_dtype_block(att_dtype dtype) {
  const dtype_row *row = find(dtype);
  return row ? row->block : 0;
}

bool att_dtype_is_quantised(att_dtype dtype) { return att_dtype_block(dtype) > 1; }

int64_t att_dtype_bytes(att_dtype dtype) {
  const dtype_row *row = find(dtype);
  return row ? row->bytes : 0;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* bits >> shift, rounded to nearest even. */
static uint32_t shift_to_even(uint32_t bits, int shift) {
  uint32_t odd = bits >> shift & 1;
  return (bits + (1u << (shift - 1)) - 1 + odd) >> shift;
}

float att_f16_to_f32(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) return float_of(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) return float_of(sign | ((magnitude << 13) + (112u << 23)));
  float value = (float)magnitude * 0x1p-24f; /* denormal: exact in f32 */
  return sign ? -value : value;
}

uint16_t att_f32_to_f16(float value) {
  uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000) return sign | 0x7e00 | (uint16_t)(magnitude >> 13 & 0x1ff);
  if (magnitude >= 0x477ff000) return sign | 0x7c00; /* 65520: halfway past the largest */
  if (magnitude >= 0x38800000) return sign | (uint16_t)shift_to_even(magnitude - (112u << 23), 13);
  if (magnitude <= 0x33000000) return sign; /* 2^-25: half the smallest denormal, ties to 0 */
  uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  return sign | (uint16_t)shift_to_even(significand, 126 - (int)(magnitude >> 23));
}

float att_bf16_to_f32(uint16_t half) { return float_of((uint32_t)half << 16); }

uint16_t att_f32_to_bf16(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)shift_to_even(bits, 16);
}

/* f64 to f32 by rounding to odd: cut towards zero, and set the last bit if
 * anything was cut. A second rounding to a shorter format then sees on which
 * side of a tie the f64 lay, so both together round once. */
static float narrow_to_odd(double value) {
  float nearest = (float)value;
  double back = nearest;
  if (back == value || value != value) return nearest;
  uint32_t bits = bits_of(nearest);
  if ((back < 0 ? -back : back) > (value < 0 ? -value : value)) bits--;
  return float_of(bits | 1);
}

uint16_t att_f64_to_f16(double value) { return att_f32_to_f16(narrow_to_odd(value)); }

uint16_t att_f64_to_bf16(double value) { return att_f32_to_bf16(narrow_to_odd(value)); }
