/* Creation of runtimes: memory, threads and the kernel table come together. */
#include "base/runtime.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/kernels.h"

#define MAX_THREADS 256

/* A runtime and its table live in one allocation. */
typedef struct runtime_block {
  att_runtime runtime;
  att_kernels kernels;
} runtime_block;

void att_runtime_options_init(att_runtime_options *options) {
  if (!options) return;
  *options = (att_runtime_options){
      .struct_size = sizeof *options,
      .threads = att_processors() < MAX_THREADS ? att_processors() : MAX_THREADS,
      .allocator = att_allocator_default(),
  };
}

static att_status check_options(const att_runtime_options *o) {
  if (o->struct_size != sizeof *o)
    return att_fail(ATT_BAD_ARGUMENT,
                    "runtime options were not set up by att_runtime_options_init");
  if (!o->allocator.allocate || !o->allocator.release)
    return att_fail(ATT_BAD_ARGUMENT, "the allocator lacks its allocate or release function");
  int threads = o->executor ? o->executor->threads : o->threads;
  if (threads < 1 || threads > MAX_THREADS)
    return att_fail(ATT_BAD_ARGUMENT, "%d threads; 1 to %d are possible", threads, MAX_THREADS);
  if (o->executor && !o->executor->run)
    return att_fail(ATT_BAD_ARGUMENT, "the executor lacks its run function");
  return ATT_OK;
}

att_status att_runtime_create(att_runtime **out, const att_runtime_options *options) {
  if (!out) return att_fail(ATT_BAD_ARGUMENT, "att_runtime_create: out is NULL");
  att_runtime_options defaults;
  if (!options) {
    att_runtime_options_init(&defaults);
    options = &defaults;
  }
  ATT_TRY(check_options(options));

  att_runtime start = {
      .allocator = options->allocator,
      .log = options->log,
      .log_payload = options->log_payload,
  };
  void *memory;
  ATT_TRY(att_alloc(&memory, &start, 1, sizeof(runtime_block), "the runtime"));
  runtime_block *block = memory;
  block->runtime = start;
  block->runtime.kernels = &block->kernels;

  att_status status = att_kernels_select(&block->kernels, &block->runtime, options->target);
  if (status == ATT_OK && options->executor) {
    block->runtime.executor = *options->executor;
  } else if (status == ATT_OK) {
    status = att_pool_create(&block->runtime.pool, &block->runtime, options->threads);
    if (status == ATT_OK) block->runtime.executor = att_pool_executor(block->runtime.pool);
  }
  if (status != ATT_OK) {
    att_release(&start, memory, 1, sizeof(runtime_block));
    return status;
  }
  *out = &block->runtime;
  return ATT_OK;
}

void att_runtime_free(att_runtime *runtime) {
  if (!runtime) return;
  att_pool_free(runtime->pool, runtime);
  att_runtime copy = *runtime;
  att_release(&copy, runtime, 1, sizeof(runtime_block));
}

const char *att_runtime_target(const att_runtime *runtime) {
  return runtime ? runtime->kernels->target : "none";
}

const char *att_runtime_class(const att_runtime *runtime) {
  return runtime ? runtime->kernels->numerics : "none";
}

int att_runtime_threads(const att_runtime *runtime) {
  return runtime ? runtime->executor.threads : 0;
}

const char *att_version(void) { return ATT_VERSION; }
