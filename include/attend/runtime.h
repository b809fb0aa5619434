/* attend/runtime.h — where attend gets memory, threads and kernels from.
 *
 * A runtime owns a kernel table chosen for the processor, a pool of threads,
 * an allocator and a log callback. Everything else is created from one. It is
 * immutable after creation and may be shared by any number of threads; two
 * runtimes (say "plain" and "avx2") live side by side in one program. The
 * library never reads the environment, prints or exits.
 *
 *     att_runtime_options options;
 *     att_runtime_options_init(&options);
 *     options.threads = 2;
 *     att_runtime *runtime;
 *     if (att_runtime_create(&runtime, &options) != ATT_OK) …
 *     …
 *     att_runtime_free(runtime);
 */
#ifndef ATTEND_RUNTIME_H
#define ATTEND_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "attend/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_runtime att_runtime;

/* Memory. `allocate` returns `bytes` bytes aligned to `alignment` (a power of
 * two, at most 4096) or NULL; `release` takes back exactly what it gave.
 * Both must be callable from any thread. */
typedef struct att_allocator {
  void *(*allocate)(size_t bytes, size_t alignment, void *payload);
  void (*release)(void *memory, size_t bytes, void *payload);
  void *payload;
} att_allocator;

/* A piece of parallel work: indices begin … end-1, on worker 0 … threads-1.
 * No two pieces that run at the same time have the same worker number. */
typedef void att_task(void *context, int64_t begin, int64_t end, int worker);

/* The caller's own threads. `run` calls `task` so that every index 0 … n-1 is
 * covered exactly once by pieces of at most `grain` indices, and returns when
 * all are done. The results never depend on how the pieces are spread. */
typedef struct att_executor {
  int threads;
  void (*run)(int64_t n, int64_t grain, att_task *task, void *context, void *payload);
  void *payload;
} att_executor;

typedef enum att_log_level {
  ATT_LOG_ERROR = 0,
  ATT_LOG_WARNING = 1,
  ATT_LOG_INFO = 2
} att_log_level;

/* One line without a newline. May be called from the thread that calls attend. */
typedef void att_log_fn(att_log_level level, const char *line, void *payload);

typedef struct att_runtime_options {
  size_t struct_size;           /* set by att_runtime_options_init */
  int threads;                  /* 1 … 256; default: processors available to us */
  const char *target;           /* "avx2", "plain" …; default NULL: the best here */
  att_allocator allocator;      /* default: the C library's, whose large blocks take memory
                                   of the system where they are first written */
  const att_executor *executor; /* default NULL: own pool of `threads` */
  att_log_fn *log;              /* default NULL: silent */
  void *log_payload;
} att_runtime_options;

/* Fills every field with its default. */
ATT_API void att_runtime_options_init(att_runtime_options *options);

/* Creates a runtime. `options` NULL means all defaults; it is copied (an
 * executor's struct as well), its payloads are borrowed until att_runtime_free.
 * A target that this build or processor lacks is UNSUPPORTED and the message
 * lists those that would work. BAD_ARGUMENT, OUT_OF_MEMORY, UNSUPPORTED. */
ATT_API att_status att_runtime_create(att_runtime **out, const att_runtime_options *options);

/* Joins the threads and frees. NULL is fine. Objects made from it must be gone. */
ATT_API void att_runtime_free(att_runtime *runtime);

/* "avx2", "plain" …: the kernel target in use. Static string. */
ATT_API const char *att_runtime_target(const att_runtime *runtime);

/* "fma" or "muladd": which of the two sets of bits this target gives
 * (docs/math/canonical_order.md). Static string. */
ATT_API const char *att_runtime_class(const att_runtime *runtime);

/* Threads that work is spread over, the calling one included. */
ATT_API int att_runtime_threads(const att_runtime *runtime);

/* The i-th target of this build, i = 0, 1, …; NULL past the last.
 * `usable` (may be NULL) says whether this processor can run it. */
ATT_API const char *att_target_name(int i, int *usable);

/* Name of this processor as the system tells it, at most `bytes`-1 characters
 * and a zero. */
ATT_API void att_cpu_name(char *out, size_t bytes);

/* "0.1.0" and the numerics version stamped into traces and checkpoints. */
ATT_API const char *att_version(void);
#define ATT_VERSION "0.1.0"
#define ATT_NUMERICS 1 /* the rules of docs/math/canonical_order.md */

#ifdef __cplusplus
}
#endif
#endif
