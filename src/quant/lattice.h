// SPDX-License-Identifier: MIT
// quant/lattice.h: blocks of a format as numbers that a search may change: codes and scales.
//
//     x = (d * scale[g]) * level(code) - dmin * min[g]        g: the group of the number
//
// Formats with super-blocks have small integers as scales (and mins) of groups; of the others every block is one group
// of scale 1, and d, dmin themselves may change, to any number in half precision. Unpacking a block and packing it
// again gives the same bytes.
#pragma once
#include "quant/dtype.h"

enum { FRIT_LATTICE_BLOCK = 256, FRIT_LATTICE_GROUPS = 16 };

typedef struct frit_lattice_block {
    float d, dmin;   // exact in half precision
    int16_t scales[FRIT_LATTICE_GROUPS], mins[FRIT_LATTICE_GROUPS];
    int8_t codes[FRIT_LATTICE_BLOCK];
} frit_lattice_block;

typedef struct frit_lattice {
    frit_dtype type;
    int block, group;            // numbers in a block, and in a group
    int low, high;               // codes
    int scale_low, scale_high;   // both 1: d itself is what may change
    int min_high;                // mins are 0..min_high; 0: none; 1: dmin itself is what may change
    const int8_t *levels;        // of codes; NULL: the codes themselves
    void (*unpack)(const void *block, frit_lattice_block *out);
    void (*pack)(const frit_lattice_block *from, void *block);
} frit_lattice;

// NULL: blocks of this type cannot be taken apart so.
const frit_lattice *frit_lattice_get(frit_dtype type);

static inline float frit_lattice_level(const frit_lattice *lattice, int code)
{
    return lattice->levels ? (float)lattice->levels[code] : (float)code;
}

// The code whose level is nearest to x.
int frit_lattice_nearest(const frit_lattice *lattice, float x);
// The factor of group g, d * scale, and what is taken off, dmin * min. Setting them takes the nearest that there is.
float frit_lattice_scale(const frit_lattice_block *block, int g);
float frit_lattice_min(const frit_lattice_block *block, int g);
void frit_lattice_set_scale(const frit_lattice *lattice, frit_lattice_block *block, int g, float wanted);
void frit_lattice_set_min(const frit_lattice *lattice, frit_lattice_block *block, int g, float wanted);
