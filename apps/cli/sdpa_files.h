/* sdpa_files.h — tensors of a call of attention, from files and back. */
#ifndef ATTEND_CLI_SDPA_FILES_H
#define ATTEND_CLI_SDPA_FILES_H

#include "attend/archive.h"
#include "attend/sdpa.h"
#include "cli.h"

/* What files may bring. Views of q, k, v have four dimensions whatever the file
 * had; `rank` tells how many that were. Absent tensors are absent views. */
typedef struct sdpa_files {
  att_archive *opened[4];
  int n_opened;
  int rank;
  bool time_first; /* files have [B,T,H,D] */
  att_view q, k, v;
  att_view attn_mask;                 /* bool, or float and added to the scores */
  att_view sink, alibi_slopes;        /* f32 [H] */
  att_view kv_lens, q_offset, prefix; /* i64 [B] */
  att_view doc_ids_q, doc_ids_k;      /* i32 [B,T], [B,S] */
} sdpa_files;

/* Opens one .safetensors, or three .npy and maybe one more for the mask.
 * Returns an exit code; sdpa_files_close follows in any case. */
int sdpa_files_open(sdpa_files *f, const cli *c, att_runtime *runtime, int n, char **paths,
                    const char *mask_path);
void sdpa_files_close(sdpa_files *f);

/* New memory for a result [B,H,T,width] in the files' layout; *view has the four
 * dimensions in the library's order. Freed with free(view->data). */
void sdpa_result_new(att_view *view, const sdpa_files *f, att_dtype dtype, int64_t width);

/* The same tensor with as many dimensions, in the order, that the files have. */
att_view sdpa_result_as_given(const sdpa_files *f, att_view view);

#endif
