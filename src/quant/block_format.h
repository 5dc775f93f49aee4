// SPDX-License-Identifier: MIT
// quant/block_format.h: blocks of a format as numbers that a search may change: codes and scales.
//
//     x = (d * scale[g]) * level(code) - dmin * min[g]        g is the group of the number
//
// Formats with super-blocks have small integers as scales (and mins) of groups. In the other formats a block is one
// group of scale 1, and d and dmin may change to any number in half precision. Codes of the IQ2 and IQ3 formats are
// magnitudes with signs: the magnitudes of four or eight adjacent numbers must be a row of a grid, and in some formats
// the number of minus signs among eight numbers must be even. Their d is the stored number times a power of two, so
// that scales are the odd integers. Unpacking a block and packing it again gives the same bytes.
#pragma once
#include "quant/dtype.h"
#include "quant/search/grid_search.h"

enum { FRIT_UNPACKED_CODES = 256, FRIT_UNPACKED_GROUPS = 16 };

typedef struct frit_unpacked_block {
    float d, dmin;   // exact in half precision, times the format's unit
    int16_t scales[FRIT_UNPACKED_GROUPS], mins[FRIT_UNPACKED_GROUPS];
    int8_t codes[FRIT_UNPACKED_CODES];
} frit_unpacked_block;

typedef struct frit_block_format {
    frit_dtype type;
    int block, group;            // numbers in a block, and in a group
    int low, high;               // codes
    int scale_low, scale_high;   // both 1: d may change instead
    int scale_step;              // difference of consecutive scales
    int min_high;                // mins are 0..min_high; 0: no mins; 1: dmin may change instead
    const int8_t *levels;        // of codes; NULL: the codes themselves
    float unit;                  // factor of d: d is a number in half precision times `unit`
    bool is_grid;                // codes are rows of `grid`
    bool even_signs;
    frit_grid_kind grid;
    void (*unpack)(const void *block, frit_unpacked_block *out);
    void (*pack)(const frit_unpacked_block *from, void *block);
} frit_block_format;

// NULL: blocks of this type cannot be unpacked.
const frit_block_format *frit_block_format_get(frit_dtype type);

static inline float frit_block_format_level(const frit_block_format *format, int code)
{
    return format->levels ? (float)format->levels[code] : (float)code;
}

// The code whose level is nearest to x. Not for grids.
int frit_block_format_nearest(const frit_block_format *format, float x);
// The number nearest to `wanted` that d can have.
float frit_block_format_nearest_d(const frit_block_format *format, float wanted);
// The factor of group g, d * scale, and its offset, dmin * min. The setters store the nearest possible value.
float frit_block_format_scale(const frit_unpacked_block *block, int g);
float frit_block_format_min(const frit_unpacked_block *block, int g);
void frit_block_format_set_scale(const frit_block_format *format, frit_unpacked_block *block, int g, float wanted);
void frit_block_format_set_min(const frit_block_format *format, frit_unpacked_block *block, int g, float wanted);
