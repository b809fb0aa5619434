/* attend/training.h — a whole run of training, as a small file describes it.
 *
 * The file is a flat JSON object; settings.inc of src/train has every key with its
 * usual value. "data" (a text file, or a folder of them) and "output" (a folder)
 * must be there. The run's folder receives tokens.npy (the text as ids),
 * tokenizer.json, log.jsonl and a checkpoint `step-00000500` every so often, each
 * a model that att_model_open reads. A folder that holds checkpoints is gone on
 * with from the newest: a run that was killed at any moment ends, bit for bit,
 * where it would have ended.
 *
 *     att_training_info info;
 *     att_training_measure(&info, runtime, "tiny.json", NULL, 0); // info.bytes, if wanted
 *     att_training *training;
 *     att_training_open(&training, runtime, "tiny.json", NULL, 0);
 *     do att_training_step(training, &report); while (!report.done);
 */
#ifndef ATTEND_TRAINING_H
#define ATTEND_TRAINING_H

#include "attend/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_training att_training;

/* Reads the file, then `settings` ("steps=100", n of them) that replace what it
 * says, prepares the data and takes all memory. NOT_FOUND, IO, CORRUPT (the file,
 * or a checkpoint, by name), BAD_ARGUMENT (a key by its name), UNSUPPORTED,
 * OUT_OF_MEMORY, TOO_LARGE; WRONG_STATE while another run, of any process, is at work
 * in the folder. */
ATT_API att_status att_training_open(att_training **out, att_runtime *runtime, const char *config,
                                     const char *const *settings, int64_t n);
ATT_API void att_training_free(att_training *training);

/* What there is to know before the first step. Strings are borrowed from the run. */
typedef struct att_training_info {
  const char *output;
  int64_t parameters, vocab;
  int64_t train_tokens, validation_tokens, tokens_a_step;
  int64_t steps, resumed_at;       /* resumed_at 0: from the beginning */
  bool saved;                      /* there is a checkpoint of that step, be it 0 */
  bool done;                       /* there is no step left to take */
  int64_t bytes, activation_bytes; /* memory of the run, and of activations in it */
  int64_t bytes_other;             /* of the run with the other choice of "recompute" */
  double flops_a_step;             /* 6 N tokens and attention's, forward and back */
  double first_loss;               /* log of the vocabulary: what a fresh model has; NaN if
                                      there is a "start" */
  bool early;                      /* done since the validation loss stopped falling */
  int64_t evaluate_every;          /* steps between evaluations, 0: there are none */
} att_training_info;
ATT_API const att_training_info *att_training_describe(const att_training *training);

/* What att_training_describe will say of the run that att_training_open opens with the same
 * arguments, from the same plan but without taking its memory: attention's workspace is all
 * that is taken, for as long as the call. Checkpoints are not looked at: resumed_at is 0, done
 * and early are false; `output` is NULL. Locks the folder and makes tokenizer.json and
 * tokens.npy, which att_training_open then finds. Errors and threads as there. */
ATT_API att_status att_training_measure(att_training_info *out, att_runtime *runtime,
                                        const char *config, const char *const *settings, int64_t n);

typedef struct att_training_report {
  int64_t step;      /* taken so far */
  double loss, norm; /* of this step, before it */
  double rate;
  double seconds;    /* that it took, without evaluation and saving */
  double validation; /* mean loss on held-out text, or NaN if it was not asked for */
  bool saved, done;
  bool early; /* done since the validation loss stopped falling */
} att_training_report;

/* The next step, with whatever is due after it: evaluation, a line of the log, a
 * checkpoint. DIVERGED (the last checkpoint stays), IO. WRONG_STATE after the end. */
ATT_API att_status att_training_step(att_training *training, att_training_report *report);

/* A checkpoint of now, whether or not one is due, and the removal of those that need not
 * stay: what a program does that was asked to end. The run goes on, here or opened anew,
 * with the same bits. IO. */
ATT_API att_status att_training_save(att_training *training);

ATT_API att_learner *att_training_learner(const att_training *training);

#ifdef __cplusplus
}
#endif
#endif
