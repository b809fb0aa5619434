/* Shapes and parts of stored tensors. */
#include "model/stored.h"

#include <stdio.h>
#include <string.h>

/* Sizes of one slot: experts 0 if it is no weight of theirs, in 0 if a vector. */
typedef struct slot_sizes {
  int64_t experts, out, in;
} slot_sizes;

static slot_sizes sizes_of(const att_config *config, att_slot slot) {
  const att_slot_info *info = &att_slots[slot];
  int64_t rows = att_config_size(config, info->rows), in = att_config_size(config, info->columns);
  if (info->kind == ATT_KIND_VECTOR) return (slot_sizes){0, rows, 0};
  if (info->kind == ATT_KIND_EXPERTS)
    return (slot_sizes){config->experts, rows / config->experts, in};
  bool of_experts = info->kind == ATT_KIND_TABLE && info->rows == ATT_SIZE_E;
  return of_experts ? (slot_sizes){rows, in, 0} : (slot_sizes){0, rows, in};
}

/* Outputs of the parts before this one, and of all. */
static void outputs(int64_t *before, int64_t *total, const att_stored_name *stored,
                    const att_config *config, att_slot slot) {
  *before = *total = 0;
  int parts = stored->parts ? stored->parts : 1;
  for (int i = 0; i < parts; i++) {
    int other = (int)slot + 2 * (i - stored->part);
    int64_t out = sizes_of(config, (att_slot)other).out;
    if (i < stored->part) *before += out;
    *total += out;
  }
}

int att_stored_shape(int64_t shape[3], const att_stored_name *stored, const att_config *config,
                     att_slot slot) {
  slot_sizes sizes = sizes_of(config, slot);
  int64_t before, total;
  int n = 0;
  outputs(&before, &total, stored, config, slot);
  if (sizes.experts) shape[n++] = sizes.experts;
  if (sizes.in && stored->transposed) shape[n++] = sizes.in;
  shape[n++] = total;
  if (sizes.in && !stored->transposed) shape[n++] = sizes.in;
  return n;
}

static void add_dimension(att_view *view, int64_t size, int64_t stride) {
  view->shape[view->ndim] = size;
  view->stride[view->ndim++] = stride;
}

att_view att_stored_part(att_view whole, const att_stored_name *stored, const att_config *config,
                         att_slot slot) {
  slot_sizes sizes = sizes_of(config, slot);
  int first = sizes.experts ? 1 : 0; /* the first dimension of a matrix or vector */
  bool turned = sizes.in && stored->transposed;
  int64_t out_step = whole.stride[first + turned];
  int64_t in_step = sizes.in ? whole.stride[first + !turned] : 0;
  int64_t before, total, group = stored->fusion == ATT_FUSED_HEADS ? config->head_dim : 1;
  outputs(&before, &total, stored, config, slot);

  bool ends = stored->fusion == ATT_FUSED_NOT || stored->fusion == ATT_FUSED_ENDS;
  int64_t offset = (ends ? before : stored->part * group) * out_step;
  att_view part = {.dtype = whole.dtype,
                   .data = (char *)whole.data +
                           offset / att_dtype_block(whole.dtype) * att_dtype_bytes(whole.dtype)};
  if (sizes.experts) add_dimension(&part, sizes.experts, whole.stride[0]);
  if (!ends) add_dimension(&part, sizes.out / group, stored->parts * group * out_step);
  if (ends || group > 1) add_dimension(&part, ends ? sizes.out : group, out_step);
  if (sizes.in) add_dimension(&part, sizes.in, in_step);
  return part;
}

const char *att_shape_text(char out[96], const int64_t *shape, int ndim) {
  int n = snprintf(out, 96, "[");
  for (int i = 0; i < ndim && n < 64; i++)
    n += snprintf(out + n, 96 - (size_t)n, "%s%lld", i ? "," : "", (long long)shape[i]);
  snprintf(out + n, 96 - (size_t)n, "]");
  return out;
}
