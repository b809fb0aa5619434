/* Backward of a table. The rows of one id are found by sorting positions by id
 * (a counting sort keeps them ascending); then each row of the table goes through
 * the slices on its own, with the tree of tensor/weight_gradient.h. A slice in
 * which nobody reads the row is an empty one. */
#include <string.h>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "nn/backward.h"

enum { LEVELS = 64 };

typedef struct table_job {
  const att_backward *pass;
  const float *dy;
  const int32_t *order;
  const int64_t *starts;
  int64_t width;
  float *dtable;
} table_job;

static void sort_by_id(const int32_t *ids, int64_t rows, int64_t count, int32_t *order,
                       int64_t *starts) {
  memset(starts, 0, (size_t)(count + 1) * sizeof *starts);
  for (int64_t r = 0; r < rows; r++) starts[ids[r] + 1]++;
  for (int64_t id = 0; id < count; id++) starts[id + 1] += starts[id];
  for (int64_t r = 0; r < rows; r++) order[starts[ids[r]]++] = (int32_t)r;
  memmove(starts + 1, starts, (size_t)count * sizeof *starts);
  starts[0] = 0;
}

/* The tree's root for rows order[at … last-1], in sums[0]. Sums wait on a stack,
 * the newest on top. */
static void sum_slices(const table_job *job, int64_t at, int64_t last, float *sums) {
  const att_backward *pass = job->pass;
  const att_kernels *kernels = pass->runtime->kernels;
  int64_t width = job->width, top = 0;
  bool empty[LEVELS];
  for (int64_t s = 0; s < pass->slices; s++) {
    float *sum = sums + top * width;
    empty[top++] = at == last || job->order[at] >= pass->cuts[s + 1];
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (; at < last && job->order[at] < pass->cuts[s + 1]; at++)
      kernels->add(sum, sum, job->dy + job->order[at] * width, width);
    bool final = s == pass->slices - 1;
    for (int64_t pairs = s; top > 1 && (pairs % 2 || final); pairs /= 2, top--) {
      float *left = sums + (top - 2) * width; /* zeros where it is empty */
      if (!empty[top - 1]) kernels->add(left, left, left + width, width);
      empty[top - 2] &= empty[top - 1];
    }
  }
}

static void gather_rows(void *context, int64_t begin, int64_t end, int worker) {
  const table_job *job = context;
  int64_t width = job->width;
  float *sums = job->pass->workspace + worker * (LEVELS + 1) * width;
  for (int64_t id = begin; id < end; id++) {
    float *row = job->dtable + id * width;
    bool any = job->starts[id] < job->starts[id + 1];
    if (any) sum_slices(job, job->starts[id], job->starts[id + 1], sums);
    if (any)
      memcpy(row, sums, (size_t)width * sizeof *row);
    else
      memset(row, 0, (size_t)width * sizeof *row);
  }
}

void att_embedding_backward(const att_backward *pass, const int32_t *ids, const float *dy,
                            int64_t count, int64_t width, int32_t *order, int64_t *starts,
                            float *dtable) {
  table_job job = {pass, dy, order, starts, width, dtable};
  sort_by_id(ids, pass->rows, count, order, starts);
  att_parallel_for(pass->runtime, count, 64, gather_rows, &job);
}
