// SPDX-License-Identifier: MIT
// media/resample.h: pictures of another size, equal to the bit to those of Pillow (to version 12) and of torchvision on
// 8-bit pixels, with antialiasing.
//
// Each output pixel is a weighted sum of the input pixels around its place: of all that it covers where the picture
// shrinks. Rows become shorter or longer first, rounded to 8 bits, then columns. Weights are computed as doubles and
// rounded to integers of `n_bits` bits after the point.
#pragma once
#include "base/status.h"

typedef enum frit_filter {
    FRIT_FILTER_NEAREST,
    FRIT_FILTER_LANCZOS,
    FRIT_FILTER_BILINEAR,
    FRIT_FILTER_BICUBIC,
    FRIT_FILTER_BOX,
    FRIT_FILTER_HAMMING,
    FRIT_FILTER_COUNT,
} frit_filter;   // with Pillow's numbers

enum {
    FRIT_PILLOW_BITS = 22,
    FRIT_TORCHVISION_BITS = 0,   // as many bits as the largest weight of a pass leaves of 16
};

// Makes out [out_height, out_width, 3] of in [height, width, 3]. No size is 0. n_bits is 22 or 0. FRIT_E_MEMORY.
frit_status frit_resample(const uint8_t *in, uint32_t width, uint32_t height, frit_filter filter, int n_bits,
                          uint8_t *out, uint32_t out_width, uint32_t out_height);
