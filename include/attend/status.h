/* attend/status.h — what every fallible function answers.
 *
 * A function that can fail returns att_status: ATT_OK (0) or a small negative
 * number. Its out parameters come first and are written only on success. The
 * first function that notices a failure leaves one line of text that says what
 * and where; callers forward the status and never touch the text.
 *
 *     att_runtime *runtime;
 *     if (att_runtime_create(&runtime, NULL) != ATT_OK)
 *       fprintf(stderr, "%s\n", att_message());
 */
#ifndef ATTEND_STATUS_H
#define ATTEND_STATUS_H

#if defined(__GNUC__)
#define ATT_API __attribute__((visibility("default")))
#else
#define ATT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_status {
#define ATT_STATUS(name, value, text) ATT_##name = value,
#include "attend/status.inc"
#undef ATT_STATUS
} att_status;

/* The name of a status as written in status.inc, "BAD_SHAPE" for instance;
 * "UNKNOWN" for any other number. Static string. Any thread. */
ATT_API const char *att_status_name(att_status status);

/* One line about the last failure on the calling thread, valid until the next
 * attend call on that thread. Never NULL; "" before any failure. */
ATT_API const char *att_message(void);

#ifdef __cplusplus
}
#endif
#endif
