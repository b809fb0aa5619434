/* attend.h — attention that you can run, train and look inside.
 *
 * The core (libattend): status, runtime, dtype, view, mask, cache, sdpa,
 * archive. The models (libattend-model): tokenizer, model, convert, session, encoder,
 * capture, generate, score, chat, train. Each header says what it is for and can be included alone.
 */
#ifndef ATTEND_ATTEND_H
#define ATTEND_ATTEND_H

#include "attend/archive.h"
#include "attend/backward.h"
#include "attend/cache.h"
#include "attend/capture.h"
#include "attend/chat.h"
#include "attend/compare.h"
#include "attend/convert.h"
#include "attend/copying.h"
#include "attend/describe.h"
#include "attend/dtype.h"
#include "attend/edit.h"
#include "attend/encoder.h"
#include "attend/generate.h"
#include "attend/gradients.h"
#include "attend/layers.h"
#include "attend/lens.h"
#include "attend/mask.h"
#include "attend/matrix.h"
#include "attend/measure.h"
#include "attend/model.h"
#include "attend/parts.h"
#include "attend/patch.h"
#include "attend/pattern.h"
#include "attend/runtime.h"
#include "attend/score.h"
#include "attend/sdpa.h"
#include "attend/session.h"
#include "attend/status.h"
#include "attend/tokenizer.h"
#include "attend/train.h"
#include "attend/training.h"
#include "attend/view.h"

#endif
