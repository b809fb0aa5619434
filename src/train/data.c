/* Batches of a run's tokens. */
#include "train/data.h"

#include <string.h>

#include "base/rng.h"

/* A Feistel network over pairs of b bits; walking on from values outside 0 … n-1
 * makes it a permutation of any n. */
int64_t att_permute(int64_t at, int64_t n, uint64_t key) {
  int bits = 1;
  while (((int64_t)1 << 2 * bits) < n) bits++;
  const uint64_t mask = ((uint64_t)1 << bits) - 1;
  uint64_t x = (uint64_t)at;
  do {
    uint64_t left = x >> bits, right = x & mask;
    for (uint32_t round = 0; round < 6; round++) {
      uint32_t words[4], counter[4] = {(uint32_t)right, (uint32_t)(right >> 32), round, 0x70657231};
      att_philox(words, counter, key);
      uint64_t next = left ^ (words[0] & mask);
      left = right;
      right = next;
    }
    x = left << bits | right;
  } while (x >= (uint64_t)n);
  return (int64_t)x;
}

/* Tokens from `start` on and what follows each; `count` of `length` are there. */
static void copy_window(const att_data *data, int64_t start, int64_t count, int64_t length,
                        int64_t row, const att_data_batch *out) {
  int32_t *tokens = out->tokens + row * length, *targets = out->targets + row * length;
  int32_t document = 0;
  for (int64_t t = 0; t < length; t++) {
    bool there = t < count;
    tokens[t] = there ? att_data_id(data->tokens[start + t]) : 0;
    targets[t] = there ? att_data_id(data->tokens[start + t + 1]) : -1;
    if (out->documents) out->documents[row * length + t] = document;
    document += tokens[t] == data->separator;
  }
}

/* Takes away targets that are not marked, but for a share of them. */
static void thin_out(const att_data *data, const att_train_settings *settings, int64_t start,
                     int64_t step, int32_t *targets) {
  for (int64_t t = 0; t < settings->length; t++) {
    if (data->tokens[start + t + 1] >= 0) continue;
    uint64_t place = (uint64_t)(start + t);
    uint32_t words[4],
        counter[4] = {(uint32_t)place, (uint32_t)(place >> 32), (uint32_t)step, 0x6d61726b};
    att_philox(words, counter, (uint64_t)settings->seed);
    if ((double)words[0] >= settings->others * 0x1p32) targets[t] = -1;
  }
}

void att_data_train_batch(const att_data *data, const att_train_settings *settings, int64_t step,
                          const att_data_batch *out) {
  int64_t length = settings->length, windows = (data->train - 1) / length - 1;
  if (windows < 1) windows = 1;
  for (int64_t b = 0; b < settings->batch; b++) {
    int64_t sample = step * settings->batch + b, epoch = sample / windows;
    uint32_t words[4], counter[4] = {(uint32_t)epoch, (uint32_t)(epoch >> 32), 0, 0x65706f63};
    att_philox(words, counter, (uint64_t)settings->seed);
    uint64_t key = words[0] | (uint64_t)words[1] << 32;
    int64_t room = data->train - windows * length; /* at least 1 */
    int64_t begin = (int64_t)(words[2] % (uint64_t)(room < length ? room : length));
    int64_t start = begin + att_permute(sample % windows, windows, key) * length;
    copy_window(data, start, length, length, b, out);
    if (settings->others < 1) thin_out(data, settings, start, step, out->targets + b * length);
  }
}

bool att_data_validation_batch(const att_data *data, const att_train_settings *settings,
                               int64_t index, const att_data_batch *out) {
  int64_t length = settings->length, first = data->train + index * settings->batch * length;
  if (first + 1 >= data->n) return false;
  for (int64_t b = 0; b < settings->batch; b++) {
    int64_t start = first + b * length, count = data->n - 1 - start;
    count = count < 0 ? 0 : count < length ? count : length;
    copy_window(data, count ? start : 0, count, length, b, out);
  }
  return true;
}
