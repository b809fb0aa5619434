/* The settings of a run: settings.inc as a struct, and how it is read. */
#ifndef ATT_TRAIN_SETTINGS_H
#define ATT_TRAIN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/runtime.h"

enum { ATT_SETTING_TEXT_BYTES = 1024 };

#define ATT_FIELD_TEXT(name) char name[ATT_SETTING_TEXT_BYTES];
#define ATT_FIELD_COUNT(name) int64_t name;
#define ATT_FIELD_REAL(name) double name;
#define ATT_FIELD_FLAG(name) bool name;
typedef struct att_train_settings {
#define ATT_SETTING(name, kind, usual, least, most, doc) ATT_FIELD_##kind(name)
#include "train/settings.inc"
#undef ATT_SETTING
} att_train_settings;
#undef ATT_FIELD_TEXT
#undef ATT_FIELD_COUNT
#undef ATT_FIELD_REAL
#undef ATT_FIELD_FLAG

/* Usual values, then the file, then "key=value" texts. An unknown key, a value of
 * another type or out of range: BAD_ARGUMENT with the key. */
att_status att_train_settings_read(att_train_settings *out, const att_runtime *runtime,
                                   const char *path, const char *const *changes, int64_t n);

#endif
