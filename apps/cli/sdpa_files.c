/* sdpa_files.c — see the header. Names of tensors are those of the published
 * test cases: q, k, v, attn_mask, sink, alibi_slopes, kv_lens, q_offset,
 * prefix_lens, doc_ids_q, doc_ids_k. */
#include "sdpa_files.h"

#include <string.h>

#include "attend/status.h"
#include "memory.h"

/* Four dimensions, [B,H,T,D]: missing leading ones have size 1. */
static att_view widened(att_view view, bool time_first) {
  if (!view.data && att_view_count(&view) != 0) return view;
  while (view.ndim > 0 && view.ndim < 4) {
    memmove(view.shape + 1, view.shape, 3 * sizeof view.shape[0]);
    memmove(view.stride + 1, view.stride, 3 * sizeof view.stride[0]);
    view.shape[0] = 1;
    view.stride[0] = view.shape[1] * view.stride[1];
    view.ndim++;
  }
  return time_first ? att_view_transpose(view, 1, 2) : view;
}

static int open_one(sdpa_files *f, const cli *c, att_runtime *runtime, const char *path) {
  if (att_archive_open(&f->opened[f->n_opened], runtime, path) != ATT_OK) return cli_fail_status(c);
  f->n_opened++;
  return CLI_OK;
}

/* A tensor that must be there. */
static int need(att_view *out, const cli *c, const att_archive *archive, const char *name,
                const char *path) {
  if (att_archive_get(out, archive, name) == ATT_OK) return CLI_OK;
  return cli_fail(c, "%s: %s", path, att_message());
}

static int read_safetensors(sdpa_files *f, const cli *c, const char *path) {
  const att_archive *a = f->opened[0];
  const struct {
    const char *name;
    att_view *view;
    bool needed;
  } tensors[] = {{"q", &f->q, true},
                 {"k", &f->k, true},
                 {"v", &f->v, true},
                 {"attn_mask", &f->attn_mask, false},
                 {"sink", &f->sink, false},
                 {"alibi_slopes", &f->alibi_slopes, false},
                 {"kv_lens", &f->kv_lens, false},
                 {"q_offset", &f->q_offset, false},
                 {"prefix_lens", &f->prefix, false},
                 {"doc_ids_q", &f->doc_ids_q, false},
                 {"doc_ids_k", &f->doc_ids_k, false}};
  for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
    bool there = tensors[i].needed;
    for (int64_t n = 0; n < att_archive_count(a) && !there; n++)
      there = !strcmp(att_archive_name(a, n), tensors[i].name);
    int code = there ? need(tensors[i].view, c, a, tensors[i].name, path) : CLI_OK;
    if (code != CLI_OK) return code;
  }
  return CLI_OK;
}

static int read_npy(sdpa_files *f, const cli *c, att_runtime *runtime, char **paths,
                    const char *mask_path) {
  att_view *const views[4] = {&f->q, &f->k, &f->v, &f->attn_mask};
  for (int i = 0; i < 4; i++) {
    const char *path = i < 3 ? paths[i] : mask_path;
    if (!path) break;
    if (i > 0) {
      int code = open_one(f, c, runtime, path);
      if (code != CLI_OK) return code;
    }
    const att_archive *a = f->opened[i];
    if (att_archive_count(a) != 1)
      return cli_fail(c, "%s holds %lld tensors; give one .safetensors, or .npy files for q, k, v",
                      path, (long long)att_archive_count(a));
    int code = need(views[i], c, a, att_archive_name(a, 0), path);
    if (code != CLI_OK) return code;
  }
  return CLI_OK;
}

int sdpa_files_open(sdpa_files *f, const cli *c, att_runtime *runtime, int n, char **paths,
                    const char *mask_path) {
  if (n == 2) return cli_usage(c, "one .safetensors file, or three .npy files for q, k, v");
  if (n == 1 && mask_path)
    return cli_usage(c, "--mask goes with .npy files; a .safetensors has it as attn_mask");
  int code = open_one(f, c, runtime, paths[0]);
  if (code == CLI_OK)
    code = n == 1 ? read_safetensors(f, c, paths[0]) : read_npy(f, c, runtime, paths, mask_path);
  if (code != CLI_OK) return code;
  f->rank = f->q.ndim;
  if (f->rank < 2 || f->rank > 4 || f->k.ndim != f->rank || f->v.ndim != f->rank)
    return cli_fail(c,
                    "q, k, v have %d, %d and %d dimensions; all three need 4 ([B,H,T,D]), or 3 "
                    "([H,T,D]), or 2 ([T,D])",
                    f->q.ndim, f->k.ndim, f->v.ndim);
  if (f->time_first && f->rank < 3)
    return cli_usage(c, "--layout bthd needs heads: 3 or 4 dimensions");
  f->q = widened(f->q, f->time_first);
  f->k = widened(f->k, f->time_first);
  f->v = widened(f->v, f->time_first);
  return CLI_OK;
}

void sdpa_files_close(sdpa_files *f) {
  for (int i = 0; i < f->n_opened; i++) att_archive_close(f->opened[i]);
}

void sdpa_result_new(att_view *view, const sdpa_files *f, att_dtype dtype, int64_t width) {
  int64_t shape[4] = {f->q.shape[0], f->q.shape[1], f->q.shape[2], width};
  if (f->time_first) {
    shape[1] = f->q.shape[2];
    shape[2] = f->q.shape[1];
  }
  int64_t count = 1;
  for (int i = 0; i < 4; i++) count *= shape[i];
  void *data = memory_get((size_t)count, (size_t)att_dtype_bytes(dtype));
  *view = att_view_of(data, dtype, 4, shape);
  if (f->time_first) *view = att_view_transpose(*view, 1, 2);
}

att_view sdpa_result_as_given(const sdpa_files *f, att_view view) {
  if (f->time_first) view = att_view_transpose(view, 1, 2);
  for (int rank = view.ndim; rank > f->rank; rank--) view = att_view_select(view, 0, 0);
  return view;
}
