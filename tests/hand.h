/* What tests of the built-in model hand share: it is opened with a session of its
 * own, and asked how likely a word is after a text. Include after support.h. */
#ifndef ATT_TESTS_HAND_H
#define ATT_TESTS_HAND_H

#include <math.h>

#include "attend/runtime.h"
#include "attend/session.h"

enum { HAND_WORDS = 64, HAND_CONTEXT = 64, HAND_BOS = 0 };

typedef struct hand {
  att_runtime *runtime;
  att_model *model;
  att_session *session;
} hand;

static inline int hand_set_up(void **state) {
  static hand h;
  *state = &h;
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.threads = 1; /* the model is far too small to share */
  assert_ok(att_runtime_create(&h.runtime, &options));
  assert_ok(att_model_open_builtin(&h.model, h.runtime, "hand"));
  assert_ok(att_session_create(&h.session, h.model, NULL));
  return 0;
}

static inline int hand_tear_down(void **state) {
  hand *h = *state;
  att_session_free(h->session);
  att_model_close(h->model);
  att_runtime_free(h->runtime);
  return 0;
}

/* The session reads <s> and n words from the start. */
static inline void hand_read(hand *h, const int32_t *words, int64_t n) {
  const int32_t bos = HAND_BOS;
  assert_ok(att_session_truncate(h->session, 0));
  assert_ok(att_session_eval(h->session, &bos, 1));
  if (n > 0) assert_ok(att_session_eval(h->session, words, n));
}

/* Probability of a word after what the session has read. */
static inline double hand_p(const hand *h, int32_t word) {
  att_view view = att_session_logits(h->session);
  const float *logits = view.data;
  double sum = 0;
  for (int i = 0; i < HAND_WORDS; i++) sum += exp((double)logits[i] - (double)logits[word]);
  return 1 / sum;
}

/* The probability of `next` if `last` came now; the session forgets it again. */
static inline double hand_p_after(hand *h, int32_t last, int32_t next) {
  int64_t length = att_session_length(h->session);
  assert_ok(att_session_eval(h->session, &last, 1));
  double p = hand_p(h, next);
  assert_ok(att_session_truncate(h->session, length));
  return p;
}

/* A word other than `not`, and not <s>. */
static inline int32_t hand_random_word(uint64_t *seed, int32_t not ) {
  int32_t word = (int32_t)(1 + (test_random(seed) >> 20) % (HAND_WORDS - 2));
  return word < not ? word : word + 1;
}

/* A text of random words that ends with the context, in which `first` stands
 * only at `place`, `second` behind it. From there on the session is asked, word
 * by word, for `second` after `first`; gives back the least probability. */
static inline double hand_least_p(hand *h, int32_t first, int32_t second, int64_t place,
                                  uint64_t *seed) {
  enum { N = HAND_CONTEXT - 2 }; /* between <s> and the last `first` */
  int32_t text[N];
  for (int64_t i = 0; i < N; i++) text[i] = hand_random_word(seed, first);
  text[place] = first;
  text[place + 1] = second;
  hand_read(h, text, place + 2);
  double least = 1;
  for (int64_t length = place + 2;; length++) {
    double p = hand_p_after(h, first, second);
    if (p < least) least = p;
    if (length == N) return least;
    assert_ok(att_session_eval(h->session, &text[length], 1));
  }
}

#endif
