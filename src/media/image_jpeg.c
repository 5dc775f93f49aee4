// SPDX-License-Identifier: MIT
// JPEG files, by libjpeg-turbo.
//
// libjpeg reports an error by a function that must not return. Here it jumps to the function that called libjpeg, so
// what must outlive the jump is in a struct of the caller.
#include "media/image.h"

#include <setjmp.h>
#include <stdio.h>   // the library's header needs it
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

enum { MAX_SCANS = 100, EXIF_MARKER = JPEG_APP0 + 1, MAX_EXIF_BYTES = 65533 };

typedef struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
    uint8_t *cmyk;   // a row
} reader;

static _Noreturn void fail(reader *r)
{
    longjmp(r->jump, 1);
}

static _Noreturn void on_error(j_common_ptr jpeg)
{
    reader *r = jpeg->client_data;
    jpeg->err->format_message(jpeg, r->message);
    fail(r);
}

// libjpeg warns, and makes gray pixels, where data is missing.
static void on_message(j_common_ptr jpeg, int level)
{
    const int code = jpeg->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) on_error(jpeg);
}

static void on_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void on_progress(j_common_ptr jpeg)
{
    reader *r = jpeg->client_data;
    if (r->jpeg.input_scan_number <= MAX_SCANS) return;
    snprintf(r->message, sizeof r->message, "it has more than %d scans", MAX_SCANS);
    fail(r);
}

static int orientation_of(const struct jpeg_decompress_struct *jpeg)
{
    for (const struct jpeg_marker_struct *m = jpeg->marker_list; m; m = m->next)
        if (m->marker == EXIF_MARKER && m->data_length > 6 && memcmp(m->data, "Exif\0", 6) == 0)
            return frit_exif_orientation(m->data, m->data_length);
    return 1;
}

static unsigned product_255(unsigned a, unsigned b)
{
    const unsigned product = a * b + 128;
    return (product + (product >> 8)) >> 8;
}

// Files with four inks store them as Adobe does: 255 is no ink.
static void write_cmyk(uint8_t *rgb, const uint8_t *cmyk, size_t width)
{
    for (size_t x = 0; x < width; x++, rgb += 3, cmyk += 4)
        for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)(cmyk[3] - product_255(255u - cmyk[c], cmyk[3]));
}

// Returns to the call of setjmp after an error of libjpeg.
static frit_status read_picture(reader *r, frit_raw_image *picture, const uint8_t *bytes, size_t n_bytes)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->progress = &r->progress;
    jpeg_mem_src(jpeg, bytes, (unsigned long)n_bytes);
    jpeg_save_markers(jpeg, EXIF_MARKER, MAX_EXIF_BYTES);
    jpeg_read_header(jpeg, TRUE);
    const bool is_cmyk = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    FRIT_TRY(frit_raw_image_begin(picture, jpeg->image_width, jpeg->image_height, 3));
    picture->orientation = orientation_of(jpeg);
    if (is_cmyk && !(r->cmyk = malloc((size_t)jpeg->image_width * 4)))
        return frit_fail_memory((size_t)jpeg->image_width * 4, "a row of a JPEG picture");
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        uint8_t *row = picture->pixels + (size_t)jpeg->output_scanline * picture->width * 3;
        jpeg_read_scanlines(jpeg, is_cmyk ? &r->cmyk : &row, 1);
        if (is_cmyk) write_cmyk(row, r->cmyk, picture->width);
    }
    jpeg_finish_decompress(jpeg);
    return FRIT_OK;
}

static frit_status run(reader *r, frit_raw_image *picture, const uint8_t *bytes, size_t n_bytes)
{
    if (setjmp(r->jump)) return frit_fail(FRIT_E_FORMAT, "the JPEG picture is damaged: %s", r->message);
    return read_picture(r, picture, bytes, n_bytes);
}

frit_status frit_jpeg_decode(frit_raw_image *picture, const uint8_t *bytes, size_t n_bytes)
{
    reader *r = calloc(1, sizeof *r);
    if (!r) return frit_fail_memory(sizeof *r, "reading a JPEG picture");
    r->jpeg.client_data = r;
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = on_error;
    r->errors.emit_message = on_message;
    r->errors.output_message = on_output;
    r->progress.progress_monitor = on_progress;
    const frit_status status = run(r, picture, bytes, n_bytes);
    jpeg_destroy_decompress(&r->jpeg);
    free(r->cmyk);
    free(r);
    return status;
}
