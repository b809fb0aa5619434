/* Prototypes of all targets of this build: each writes its rows into a table
 * that already holds the plain definition of its class (plain ones write all). */
#ifndef ATT_KERNELS_TARGET_TARGETS_H
#define ATT_KERNELS_TARGET_TARGETS_H

#include "base/cpu.h"
#include "kernels/kernels.h"

#define ATT_TARGET_JOIN(symbol) att_target_##symbol
#define ATT_TARGET_FUNCTION(symbol) ATT_TARGET_JOIN(symbol)

#define ATT_TARGET(symbol, name, bits, numerics, is_default)                                       \
  void att_target_##symbol(att_kernels *table);
#include "kernels/targets.inc"
#undef ATT_TARGET

#endif
