/* Byte-pair encoding: a piece is cut into symbols (characters or bytes), then
 * the pair of neighbours that the merge table ranks first becomes one token,
 * again and again, leftmost first among equals. */
#ifndef ATT_TEXT_BPE_H
#define ATT_TEXT_BPE_H

#include "text/job.h"
#include "text/merges.h"

typedef struct att_bpe {
  att_merges merges;
  att_merges joints;     /* see bpe_joints.c; mask 0: not known */
  int32_t byte_ids[256]; /* byte-level: each byte's symbol; else its byte token, or -1 */
  int32_t unknown;       /* id for what has no symbol and no byte tokens, or -1 */
  bool fuse_unknown;     /* neighbours among those become one token */
  bool loose_characters; /* up to three continuation bytes of any kind belong to what they follow */
  bool whole_pieces;     /* a piece that is a token is not cut at all */
  const char *prefix, *suffix; /* of symbols that do not begin, that end a piece; "" for none */
} att_bpe;

/* Fills byte_ids: each byte's own piece of a byte-level vocabulary, or the
 * tokens <0x00> … <0xFF>, which are marked as such, or -1. */
void att_bpe_find_bytes(att_bpe *bpe, att_vocab *vocab, bool byte_level, bool byte_fallback);

/* Finds out between which symbols no merge ever reaches across. */
att_status att_bpe_find_joints(att_bpe *bpe, att_arena *arena, const att_vocab *vocab);

/* Merges tokens[first …] of the job's list in place. */
att_status att_bpe_merge(att_job *job, const att_bpe *bpe, int64_t first);

#endif
