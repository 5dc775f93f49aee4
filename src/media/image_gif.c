// SPDX-License-Identifier: MIT
// The first picture of GIF files, by giflib. What it does not cover of the canvas is transparent.
#include "media/image.h"

#include <gif_lib.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const uint8_t *at;
    size_t n_left;
    GifFileType *gif;
    int transparent;   // a color's number, or NO_TRANSPARENT_COLOR
    uint8_t *row;      // numbers of colors
} reader;

static int read_bytes(GifFileType *gif, GifByteType *to, int n)
{
    reader *r = gif->UserData;
    const size_t n_read = r->n_left < (size_t)n ? r->n_left : (size_t)n;
    memcpy(to, r->at, n_read);
    r->at += n_read;
    r->n_left -= n_read;
    return (int)n_read;
}

static frit_status damaged(const char *what)
{
    return frit_fail(FRIT_E_FORMAT, "the GIF picture is damaged: %s", what);
}

// Reads an extension, which may say which color is transparent.
static frit_status read_extension(reader *r)
{
    int code;
    GifByteType *block;
    if (DGifGetExtension(r->gif, &code, &block) != GIF_OK) return damaged("an extension is cut");
    while (block) {
        GraphicsControlBlock control;
        if (code == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
            r->transparent = control.TransparentColor;
        if (DGifGetExtensionNext(r->gif, &block) != GIF_OK) return damaged("an extension is cut");
    }
    return FRIT_OK;
}

// Reads records until the first picture begins.
static frit_status find_picture(reader *r)
{
    for (;;) {
        GifRecordType type;
        if (DGifGetRecordType(r->gif, &type) != GIF_OK) return damaged("it ends before its first picture");
        if (type == EXTENSION_RECORD_TYPE) {
            FRIT_TRY(read_extension(r));
            continue;
        }
        if (type != IMAGE_DESC_RECORD_TYPE) return damaged("it has no picture");
        return DGifGetImageHeader(r->gif) == GIF_OK ? FRIT_OK : damaged("the header of its picture is cut");
    }
}

static void write_row(const reader *r, const ColorMapObject *colors, uint8_t *rgba, size_t width)
{
    for (size_t x = 0; x < width; x++, rgba += 4) {
        const int color = r->row[x];
        if (color == r->transparent || color >= colors->ColorCount) continue;
        const GifColorType c = colors->Colors[color];
        rgba[0] = c.Red;
        rgba[1] = c.Green;
        rgba[2] = c.Blue;
        rgba[3] = 255;
    }
}

// The rows of an interlaced picture come in four passes.
static frit_status read_rows(reader *r, const ColorMapObject *colors, frit_raw_image *image)
{
    static const int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    const GifImageDesc *desc = &r->gif->Image;
    const size_t left = (size_t)desc->Left, top = (size_t)desc->Top;
    for (int pass = 0; pass < (desc->Interlace ? 4 : 1); pass++)
        for (int y = desc->Interlace ? starts[pass] : 0; y < desc->Height; y += desc->Interlace ? steps[pass] : 1) {
            if (DGifGetLine(r->gif, r->row, desc->Width) != GIF_OK) return damaged("its pixels are cut or wrong");
            write_row(r, colors, image->pixels + ((top + (size_t)y) * image->width + left) * 4, (size_t)desc->Width);
        }
    return r->n_left ? FRIT_OK : damaged("it has no end");
}

static frit_status read_picture(reader *r, frit_raw_image *image)
{
    FRIT_TRY(frit_raw_image_check(image, (uint64_t)r->gif->SWidth, (uint64_t)r->gif->SHeight));
    FRIT_TRY(find_picture(r));
    const GifImageDesc *desc = &r->gif->Image;
    const ColorMapObject *colors = desc->ColorMap ? desc->ColorMap : r->gif->SColorMap;
    if (!colors) return damaged("it has no colors");
    if (desc->Width < 1 || desc->Height < 1 || desc->Left + desc->Width > r->gif->SWidth ||
        desc->Top + desc->Height > r->gif->SHeight)
        return damaged("its first picture is not within its canvas");
    FRIT_TRY(frit_raw_image_begin(image, (uint64_t)r->gif->SWidth, (uint64_t)r->gif->SHeight, 4));
    memset(image->pixels, 0, (size_t)image->width * image->height * 4);
    r->row = malloc((size_t)desc->Width);
    if (!r->row) return frit_fail_memory((size_t)desc->Width, "a row of a GIF picture");
    return read_rows(r, colors, image);
}

frit_status frit_gif_decode(frit_raw_image *image, const uint8_t *bytes, size_t n_bytes)
{
    int error;
    reader r = {.at = bytes, .n_left = n_bytes, .transparent = NO_TRANSPARENT_COLOR};
    r.gif = DGifOpen(&r, read_bytes, &error);
    if (!r.gif) return damaged("its header is cut or wrong");
    const frit_status status = read_picture(&r, image);
    DGifCloseFile(r.gif, &error);
    free(r.row);
    return status;
}
