/* Attention with one query and two keys, on plain arrays.
 *
 * The scores are ln 3 and 0, so the weights are 3/4 and 1/4, and the output
 * mixes the values [2,0] and [0,2] to [1.5,0.5].
 *
 *     cc mix_two_values.c $(pkg-config --cflags --libs attend)
 */
#include <attend/sdpa.h>
#include <stdio.h>

/* A view of `data` as [batch 1, head 1, rows, columns]. */
static att_view matrix(float *data, int64_t rows, int64_t columns) {
  int64_t shape[4] = {1, 1, rows, columns};
  return att_view_of(data, ATT_F32, 4, shape);
}

int main(void) {
  float query[1] = {1.0986123f}, keys[2] = {1, 0}, values[4] = {2, 0, 0, 2};
  float out[2], weights[2];

  att_sdpa_args args;
  att_sdpa_args_init(&args);
  args.q = matrix(query, 1, 1);
  args.k = matrix(keys, 2, 1);
  args.v = matrix(values, 2, 2);
  args.out = matrix(out, 1, 2);
  args.weights = matrix(weights, 1, 2);

  att_runtime *runtime = NULL;
  att_status status = att_runtime_create(&runtime, NULL);
  if (status == ATT_OK) status = att_sdpa_once(runtime, &args);
  if (status == ATT_OK)
    printf("weights %.2f %.2f, output %.2f %.2f\n", (double)weights[0], (double)weights[1],
           (double)out[0], (double)out[1]);
  else
    fprintf(stderr, "%s: %s\n", att_status_name(status), att_message());
  att_runtime_free(runtime);
  return status != ATT_OK;
}
