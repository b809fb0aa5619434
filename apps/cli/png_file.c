/* Writing PNG files: libpng, with texts beside the pixels. */
#include "png_file.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Texts are UTF-8 (iTXt), since edits and prompts may have any letters. */
static void put_texts(png_structp png, png_infop info, const char *title, const char *edits) {
  const char *const keys[] = {"Software", "Title", "Edited"};
  const char *const texts[] = {"attend", title, edits};
  for (int i = 0; i < 3; i++) {
    if (!texts[i]) continue;
    const png_text text = {.compression = PNG_ITXT_COMPRESSION_NONE,
                           .key = (png_charp)keys[i], /* png_set_text copies both */
                           .text = (png_charp)texts[i],
                           .itxt_length = strlen(texts[i])};
    png_set_text(png, info, &text, 1);
  }
}

static void fail(png_structp png, png_const_charp message) {
  (void)message;
  png_longjmp(png, 1);
}

static void stay_silent(png_structp png, png_const_charp message) {
  (void)png;
  (void)message;
}

/* False after any failure of libpng. Nothing here changes after setjmp. */
static bool put_picture(FILE *file, png_structp png, png_infop info, int64_t width, int64_t height,
                        const uint8_t *pixels, const char *title, const char *edits) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_init_io(png, file);
  png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_RGB,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
  put_texts(png, info, title, edits);
  png_write_info(png, info);
  for (int64_t y = 0; y < height; y++) png_write_row(png, pixels + 3 * y * width);
  png_write_end(png, info);
  return true;
}

int png_file_write(const char *path, int64_t width, int64_t height, const uint8_t *pixels,
                   const char *title, const char *edits) {
  errno = 0;
  FILE *file = fopen(path, "wb");
  if (!file) return -1;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, fail, stay_silent);
  png_infop info = png ? png_create_info_struct(png) : NULL;
  bool good = info && put_picture(file, png, info, width, height, pixels, title, edits);
  if (png) png_destroy_write_struct(&png, &info);
  good &= !ferror(file);
  good &= fclose(file) == 0;
  if (!good && !errno) errno = EIO;
  return good ? 0 : -1;
}
