/* attend/patch.h — which places carry the difference between two prompts.
 *
 * Activation patching: a corrupted prompt is read once for every place of a grid, with
 * the clean prompt's numbers there. With d the logit of one token less that of another
 * behind the last position,
 *
 *     score = (d(patched) - d(corrupted)) / (d(clean) - d(corrupted))
 *
 * is 0 where a place carries nothing of the difference and 1 where it carries all of it.
 * Attribution patching is its first order, for all places from one way back:
 *
 *     score = sum of dd/dx (x(clean) - x(corrupted)) / (d(clean) - d(corrupted))
 *
 * with the gradient of the corrupted prompt (attend/gradients.h). docs/math/patching.md.
 * From any thread, several on one model too: it is only read.
 */
#ifndef ATTEND_PATCH_H
#define ATTEND_PATCH_H

#include "attend/model.h"
#include "attend/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a cell of a grid is. Of scores and weights a position is that of the query; keys
 * and values have heads of their own. */
typedef enum att_patch_grid {
  ATT_PATCH_LAYER_POSITION, /* [L,T]: a position of a layer, all its heads */
  ATT_PATCH_LAYER_HEAD,     /* [L,H]: a head, all positions */
  ATT_PATCH_HEAD_POSITION   /* [L·H,T]: a head at a position, a row for each head */
} att_patch_grid;

typedef struct att_patch_options {
  size_t struct_size;     /* set by att_patch_options_init */
  const char *site;       /* of each block: default "hook_resid_pre"; "attn.hook_z" … */
  att_patch_grid grid;    /* default layer by position */
  int32_t target, versus; /* d: logit of target less that of versus, -1 (default): none */
} att_patch_options;

ATT_API void att_patch_options_init(att_patch_options *options);

typedef struct att_patch_result {
  double clean, corrupted; /* d of the two prompts */
  int64_t runs;            /* of the corrupted prompt, itself included */
  att_patch_options options;
} att_patch_result;

/* Rows and columns of the grid over prompts of n tokens. NOT_FOUND (a block of the model
 * has no such site), BAD_ARGUMENT (heads of a site that has none). */
ATT_API att_status att_patch_shape(int64_t *rows, int64_t *columns, const att_model *model,
                                   int64_t n, const att_patch_options *options);

/* scores [rows,columns] f32 of prompts clean and corrupted [n]. One session of the model;
 * what lies before a patched position is not read again. UNSUPPORTED (no decoder, or a
 * site that nothing reads), BAD_ARGUMENT (also where d is the same in both: there is
 * nothing to move), as att_patch_shape, and as sessions and captures have them. Cost: rows ·
 * columns runs. */
ATT_API att_status att_patch(att_view scores, att_patch_result *result, const att_model *model,
                             const int32_t *clean, const int32_t *corrupted, int64_t n,
                             const att_patch_options *options);

/* out = sum of gradient · (clean - corrupted) over the axes along which out has size 1:
 * of [T,H,D] out [T,1,1] is by position, [1,H,1] by head, [T,H,1] by both. All f32 of one
 * number of axes, any strides; a number where clean = corrupted counts 0; sums in double.
 * BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE. Cost: the numbers of gradient. */
ATT_API att_status att_attribution(att_view out, att_view gradient, att_view clean,
                                   att_view corrupted);

#ifdef __cplusplus
}
#endif
#endif
