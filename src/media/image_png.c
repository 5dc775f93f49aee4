// SPDX-License-Identifier: MIT
// PNG files, by libpng's low-level interface.
//
// libpng reports an error by a jump to the function that called it, so what must outlive the jump is in a struct of the
// caller.
#include "media/image.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHUNK_BYTES = 1 << 20, MAX_CHUNKS = 1000, HEADER_BYTES = 33, MESSAGE_BYTES = 200 };

typedef struct reader {
    png_structp png;
    png_infop info;
    const uint8_t *at;
    size_t n_left;
    png_bytep *rows;   // [height]
    char message[MESSAGE_BYTES];
} reader;

static void read_bytes(png_structp png, png_bytep to, size_t n_bytes)
{
    reader *r = png_get_io_ptr(png);
    if (n_bytes > r->n_left) png_error(png, "the file ends before the picture does");
    memcpy(to, r->at, n_bytes);
    r->at += n_bytes;
    r->n_left -= n_bytes;
}

static PNG_NORETURN void on_error(png_structp png, png_const_charp text)
{
    reader *r = png_get_error_ptr(png);
    strncpy(r->message, text, sizeof r->message - 1);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

// Chunks that are skipped unread.
static const png_byte ignored[] = "cHRM\0gAMA\0hIST\0iCCP\0iTXt\0pHYs\0sBIT\0sPLT\0sRGB\0tEXt\0tIME\0zTXt";

static void set_up(reader *r)
{
    png_set_read_fn(r->png, r, read_bytes);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);   // the caller has checked the sides
    png_set_chunk_cache_max(r->png, MAX_CHUNKS);
    png_set_chunk_malloc_max(r->png, MAX_CHUNK_BYTES);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, ignored, sizeof ignored / 5);
}

// Asks for 8 bits of red, green, blue, and of alpha where the file has any.
static void set_transforms(reader *r)
{
    png_set_expand(r->png);
    png_set_strip_16(r->png);
    png_set_gray_to_rgb(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
}

static int orientation_of(reader *r)
{
    png_uint_32 n_bytes = 0;
    png_bytep exif = NULL;
    return png_get_eXIf_1(r->png, r->info, &n_bytes, &exif) ? frit_exif_orientation(exif, n_bytes) : 1;
}

// Returns to the call of setjmp after an error of libpng.
static frit_status read_picture(reader *r, frit_raw_image *picture)
{
    set_up(r);
    png_read_info(r->png, r->info);
    set_transforms(r);
    FRIT_TRY(frit_raw_image_begin(picture, png_get_image_width(r->png, r->info), png_get_image_height(r->png, r->info),
                                  png_get_channels(r->png, r->info)));
    r->rows = malloc(picture->height * sizeof *r->rows);
    if (!r->rows) return frit_fail_memory(picture->height * sizeof *r->rows, "the rows of a PNG picture");
    const size_t row_bytes = (size_t)picture->width * (size_t)picture->n_channels;
    if (png_get_rowbytes(r->png, r->info) != row_bytes) png_error(r->png, "its rows have an unexpected length");
    for (size_t y = 0; y < picture->height; y++) r->rows[y] = picture->pixels + y * row_bytes;
    png_read_image(r->png, r->rows);
    png_read_end(r->png, r->info);
    picture->orientation = orientation_of(r);
    return FRIT_OK;
}

static frit_status run(reader *r, frit_raw_image *picture)
{
    if (setjmp(png_jmpbuf(r->png))) return frit_fail(FRIT_E_FORMAT, "the PNG picture is damaged: %s", r->message);
    return read_picture(r, picture);
}

static uint32_t big_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

frit_status frit_png_decode(frit_raw_image *picture, const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes < HEADER_BYTES || memcmp(bytes + 12, "IHDR", 4) != 0)
        return frit_fail(FRIT_E_FORMAT, "the PNG picture is damaged: it has no header");
    FRIT_TRY(frit_raw_image_check(picture, big_u32(bytes + 16), big_u32(bytes + 20)));
    reader r = {.at = bytes, .n_left = n_bytes};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    frit_status status =
        r.info ? run(&r, picture) : frit_fail(FRIT_E_MEMORY, "out of memory: a PNG picture cannot be read");
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.rows);
    return status;
}
