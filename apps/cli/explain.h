/* explain.h — one row of one head, with every number the engine made of it. */
#ifndef ATTEND_CLI_EXPLAIN_H
#define ATTEND_CLI_EXPLAIN_H

#include "json_out.h"
#include "likely.h"
#include "reading.h"

/* Why it is this head: it was asked for; it adds most to the logit of what comes next; it
 * has the largest weight on a key other than the first and the query itself. */
typedef enum head_choice { HEAD_GIVEN, HEAD_SPEAKS, HEAD_LOOKS } head_choice;

/* Rows are copied out of the captures: contiguous, owned by this struct. T keys,
 * D head width, Dv value width. */
typedef struct explained {
  const subject *what;
  int64_t layer, head, kv_head, query, key; /* which row; the key worked out */
  int64_t layers, heads, kv_heads;
  head_choice chosen;
  bool key_chosen;         /* by us, not by the user */
  bool rotated;            /* the model turns q and k by their position */
  bool sunk;               /* a sink has a share of the softmax's sum */
  bool biased;             /* scores differ from scaled ones at a visible key */
  int64_t n, d, dv;        /* n keys */
  float *q, *rot_q;        /* [D]; rot_q is q where nothing is rotated */
  float *k, *rot_k, *v;    /* [T,D] [T,D] [T,Dv] */
  float *raw, *scaled;     /* [T]: q.k, times the scale; hidden keys -inf */
  float *scores, *weights; /* [T]: as softmax gets them, and what it makes */
  float *shifted, *exps;   /* [T]: score - max, e to that */
  float max, sum;
  double scale;           /* what turned raw scores into scaled ones */
  bool root_of_d;         /* it is 1/sqrt(D) */
  float *products, *sums; /* [D]: terms of the chosen key, and their chain */
  float *weighted;        /* [T,Dv]: weight times value */
  float *z;               /* [Dv] */
  likely *next;           /* what the model holds likely behind the query */
  int64_t n_next;
  reading read;
} explained;

/* What is asked for; -1 or 0 means: choose. */
typedef struct explain_request {
  int64_t layer, head, query, key;
  bool block; /* keep what flows through the whole block too */
  reading_options way;
} explain_request;

/* Runs the model and collects the row. Returns an exit code, after a complaint
 * if it is not 0; explain_free follows in any case. */
int explain_collect(explained *e, const cli *c, const subject *what, const explain_request *r);
void explain_free(explained *e);

/* A captured tensor of the layer, "hook_resid_pre", or of its attention, "hook_q"; an
 * absent view if the model has no such site. */
att_view explain_site(const explained *e, const char *site);
att_view explain_attention(const explained *e, const char *site);

/* Row `query` of head `head` of a [H,T,S] site of the attention. */
att_view explain_row(const explained *e, const char *site, int64_t head);

/* Sets head and chosen, of a layer whose row and what comes next are there. */
att_status explain_choose_head(explained *e);

/* True if the query sees key j. */
bool explain_sees(const explained *e, int64_t j);

void explain_text(const cli *c, const explained *e, int64_t most_keys);
struct explained_grad;  /* explain_grad.h */
struct explained_words; /* explain_words.h */
void explain_json(const explained *e, bool block, const struct explained_grad *grad,
                  const struct explained_words *words);

/* The whole block around the head at the query's position, from X over H to Y;
 * needs request.block. */
void explain_block_text(const cli *c, const explained *e);
void explain_block_json(json *j, const explained *e);

#endif
