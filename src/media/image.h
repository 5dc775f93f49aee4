// SPDX-License-Identifier: MIT
// media/image.h: files of pictures as pixels.
//
// Each format is a row of the table in image.c with a decoder, whose library cmake/FritDependencies.cmake finds. A
// decoder checks the sizes of the file's header with frit_raw_image_begin, which allocates the pixels, and then writes
// them. A decoder reads whole files only: a partial file is an error.
#pragma once
#include "base/status.h"

struct frit_image {
    _Atomic int n_refs;
    uint32_t width, height;
    uint8_t *rgb;   // [height, width, 3]
};

// A picture as a decoder leaves it.
typedef struct frit_raw_image {
    const frit_image_limits *limits;   // none is 0
    uint32_t width, height;            // as stored
    int orientation;                   // EXIF's, 1 to 8; 1: upright
    int n_channels;                    // 3, or 4 with alpha
    uint8_t *pixels;                   // [height, width, n_channels], malloc'd
} frit_raw_image;

// Compares sizes with the limits. FRIT_E_LIMIT; FRIT_E_FORMAT for a side of 0.
frit_status frit_raw_image_check(const frit_raw_image *picture, uint64_t width, uint64_t height);
// Checks the sizes and allocates the pixels. FRIT_E_MEMORY, and the statuses of frit_raw_image_check.
frit_status frit_raw_image_begin(frit_raw_image *picture, uint64_t width, uint64_t height, int n_channels);

// Decode the contents of a file. picture->pixels is freed by the caller, also after a failure.
frit_status frit_png_decode(frit_raw_image *picture, const uint8_t *bytes, size_t n_bytes);
frit_status frit_jpeg_decode(frit_raw_image *picture, const uint8_t *bytes, size_t n_bytes);
frit_status frit_gif_decode(frit_raw_image *image, const uint8_t *bytes, size_t n_bytes);
frit_status frit_webp_decode(frit_raw_image *picture, const uint8_t *bytes, size_t n_bytes);

// Returns the orientation, 1 to 8, that EXIF data asks for. 1 if it has none, or is damaged. The data may begin with
// "Exif\0\0".
int frit_exif_orientation(const uint8_t *exif, size_t n_bytes);
// Writes the upright picture [height, width, 3]; where the orientation is 5 to 8, its width is the stored height.
void frit_raw_image_turn(const frit_raw_image *picture, uint8_t *rgb);
