/* Pictures of pixels as PNG files that say what they show. */
#ifndef CLI_PNG_FILE_H
#define CLI_PNG_FILE_H

#include <stdint.h>

/* RGB, row after row. `title` and `edits` become the file's texts "Title" and
 * "Edited" (viewers show them); either may be NULL. 0, or -1 with errno. */
int png_file_write(const char *path, int64_t width, int64_t height, const uint8_t *pixels,
                   const char *title, const char *edits);

#endif
