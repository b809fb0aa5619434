/* heads_ablate.h — what a model says without one of its heads. */
#ifndef ATTEND_CLI_HEADS_ABLATE_H
#define ATTEND_CLI_HEADS_ABLATE_H

#include "subject.h"

/* kl [layers,heads]: how far the probabilities after the prompt are from those with the
 * head's output at zero in all positions, in nats. One run for each head. Of a decoder. */
att_status heads_ablate(double *kl, const subject *s);

#endif
