/* Inside of zip archives of npy files: what reader and writer share. */
#ifndef ATT_IO_NPZ_H
#define ATT_IO_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ATT_ZIP_LOCAL = 0x04034b50, /* signatures */
  ATT_ZIP_ENTRY = 0x02014b50,
  ATT_ZIP_END = 0x06054b50,
  ATT_ZIP_LOCAL_BYTES = 30,
  ATT_ZIP_ENTRY_BYTES = 46,
  ATT_ZIP_END_BYTES = 22
};

/* CRC-32 of zip, begun with UINT32_MAX; the complement of the last is what is stored. */
uint32_t att_crc_add(uint32_t crc, const unsigned char *bytes, size_t n);

/* Unpacks a deflate stream. False unless it is well formed, ends with its last byte and
 * gives exactly `bytes`. */
bool att_inflate(unsigned char *out, size_t bytes, const unsigned char *in, size_t n);

#endif
