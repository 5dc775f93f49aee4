// SPDX-License-Identifier: MIT
// Converts blocks of the IQ2 and IQ3 formats to numbers and back; iq.c has their layout.
//
// If a grid had two rows with equal elements, packing could find another index than the one that was unpacked. No grid
// has such rows; the test of blocks would detect them.
#include "quant/grid_format.h"

#include "quant/blocks.h"
#include "quant/half.h"
#include "quant/levels.h"
#include "quant/scales.h"

#include <assert.h>
#include <string.h>

static void start(frit_half d, float unit, frit_unpacked_block *out)
{
    out->d = unit * frit_half_to_float(d);
    out->dmin = 0;
}

static frit_half stored_d(const frit_unpacked_block *from, float unit)
{
    return frit_float_to_half(from->d / unit);
}

// Writes n magnitudes; bit j of `signs` makes number j negative.
static void sign_codes(const uint8_t *grid, int n, int signs, int8_t *codes)
{
    for (int j = 0; j < n; j++) codes[j] = (int8_t)(signs >> j & 1 ? -grid[j] : grid[j]);
}

// Collects the signs of eight numbers, a bit each.
static uint8_t signs_of(const int8_t *codes)
{
    int signs = 0;
    for (int j = 0; j < 8; j++) signs |= (codes[j] < 0) << j;
    return (uint8_t)signs;
}

static uint32_t even_signs_of(const int8_t *codes)
{
    const uint8_t signs = signs_of(codes);
    assert(frit_even_signs(signs) == signs);
    return signs & 127;
}

// The index of the row with these magnitudes.
static int row_of(const frit_grid_search *search, const int8_t *codes)
{
    uint8_t levels[8];
    for (int j = 0; j < search->size; j++) {
        const int magnitude = codes[j] < 0 ? -codes[j] : codes[j];
        int level = 0;
        while (level < search->n_levels - 1 && search->values[level] != magnitude) level++;
        levels[j] = (uint8_t)level;
    }
    frit_grid_near unused;
    const int row = frit_grid_find(search, levels, &unused);
    assert(row >= 0);
    return row;
}

// Reads the scales of sixteen or eight groups as odd numbers; they are stored in four bits.
static void unpack_scales(const uint8_t *packed, int n, frit_unpacked_block *out)
{
    for (int g = 0; g < n; g++) out->scales[g] = (int16_t)(2 * (packed[g / 2] >> (g % 2 * 4) & 15) + 1);
}

static void pack_scales(const frit_unpacked_block *from, int n, uint8_t *packed)
{
    for (int g = 0; g < n; g += 2) packed[g / 2] = (uint8_t)(from->scales[g] / 2 | from->scales[g + 1] / 2 << 4);
}

// The word of a group: four times seven signs, and the scale.
static uint32_t word_of(const frit_unpacked_block *from, int g)
{
    uint32_t word = (uint32_t)(from->scales[g] / 2) << 28;
    for (int l = 0; l < 4; l++) word |= even_signs_of(from->codes + 32 * g + 8 * l) << 7 * l;
    return word;
}

void frit_unpack_iq2_xxs(const void *block, frit_unpacked_block *out)
{
    const frit_block_iq2_xxs *b = block;
    start(b->d, 0.125f, out);
    for (int g = 0; g < 8; g++) {
        const uint32_t word = b->groups[g].signs;
        out->scales[g] = (int16_t)(2 * (word >> 28) + 1);
        for (int l = 0; l < 4; l++)
            sign_codes(frit_iq2_xxs_grid[b->groups[g].qs[l]], 8, frit_even_signs(word >> 7 * l),
                       out->codes + 32 * g + 8 * l);
    }
}

void frit_pack_iq2_xxs(const frit_unpacked_block *from, void *block)
{
    frit_block_iq2_xxs *b = block;
    const frit_grid_search *search = frit_grid_search_get(FRIT_GRID_IQ2_XXS);
    b->d = stored_d(from, 0.125f);
    for (int g = 0; g < 8; g++) {
        for (int l = 0; l < 4; l++) b->groups[g].qs[l] = (uint8_t)row_of(search, from->codes + 32 * g + 8 * l);
        b->groups[g].signs = word_of(from, g);
    }
}

void frit_unpack_iq2_xs(const void *block, frit_unpacked_block *out)
{
    const frit_block_iq2_xs *b = block;
    start(b->d, 0.125f, out);
    unpack_scales(b->scales, 16, out);
    for (int run = 0; run < 32; run++)
        sign_codes(frit_iq2_xs_grid[b->qs[run] & 511], 8, frit_even_signs(b->qs[run] >> 9), out->codes + 8 * run);
}

void frit_pack_iq2_xs(const frit_unpacked_block *from, void *block)
{
    frit_block_iq2_xs *b = block;
    const frit_grid_search *search = frit_grid_search_get(FRIT_GRID_IQ2_XS);
    b->d = stored_d(from, 0.125f);
    pack_scales(from, 16, b->scales);
    for (int run = 0; run < 32; run++) {
        const int8_t *codes = from->codes + 8 * run;
        b->qs[run] = (uint16_t)((uint32_t)row_of(search, codes) | even_signs_of(codes) << 9);
    }
}

void frit_unpack_iq2_s(const void *block, frit_unpacked_block *out)
{
    const frit_block_iq2_s *b = block;
    start(b->d, 0.125f, out);
    unpack_scales(b->scales, 16, out);
    for (int run = 0; run < 32; run++) {
        const int index = b->qs[run] | (b->qh[run / 4] >> (run % 4 * 2) & 3) << 8;
        sign_codes(frit_iq2_s_grid[index], 8, b->signs[run], out->codes + 8 * run);
    }
}

void frit_pack_iq2_s(const frit_unpacked_block *from, void *block)
{
    frit_block_iq2_s *b = block;
    const frit_grid_search *search = frit_grid_search_get(FRIT_GRID_IQ2_S);
    b->d = stored_d(from, 0.125f);
    pack_scales(from, 16, b->scales);
    memset(b->qh, 0, sizeof b->qh);
    for (int run = 0; run < 32; run++) {
        const int row = row_of(search, from->codes + 8 * run);
        b->signs[run] = signs_of(from->codes + 8 * run);
        b->qs[run] = (uint8_t)row;
        b->qh[run / 4] = (uint8_t)(b->qh[run / 4] | row >> 8 << run % 4 * 2);
    }
}

void frit_unpack_iq3_xxs(const void *block, frit_unpacked_block *out)
{
    const frit_block_iq3_xxs *b = block;
    start(b->d, 0.25f, out);
    for (int run = 0; run < 64; run++) {
        const uint32_t word = b->signs[run / 8];
        const int signs = frit_even_signs(word >> run / 2 % 4 * 7) >> run % 2 * 4;
        out->scales[run / 8] = (int16_t)(2 * (word >> 28) + 1);
        sign_codes(frit_iq3_xxs_grid[b->qs[run]], 4, signs, out->codes + 4 * run);
    }
}

void frit_pack_iq3_xxs(const frit_unpacked_block *from, void *block)
{
    frit_block_iq3_xxs *b = block;
    const frit_grid_search *search = frit_grid_search_get(FRIT_GRID_IQ3_XXS);
    b->d = stored_d(from, 0.25f);
    for (int run = 0; run < 64; run++) b->qs[run] = (uint8_t)row_of(search, from->codes + 4 * run);
    for (int g = 0; g < 8; g++) b->signs[g] = word_of(from, g);
}

void frit_unpack_iq3_s(const void *block, frit_unpacked_block *out)
{
    const frit_block_iq3_s *b = block;
    start(b->d, 1, out);
    unpack_scales(b->scales, 8, out);
    for (int run = 0; run < 64; run++) {
        const int index = b->qs[run] | (b->qh[run / 8] >> run % 8 & 1) << 8;
        sign_codes(frit_iq3_s_grid[index], 4, b->signs[run / 2] >> run % 2 * 4, out->codes + 4 * run);
    }
}

void frit_pack_iq3_s(const frit_unpacked_block *from, void *block)
{
    frit_block_iq3_s *b = block;
    const frit_grid_search *search = frit_grid_search_get(FRIT_GRID_IQ3_S);
    b->d = stored_d(from, 1);
    pack_scales(from, 8, b->scales);
    memset(b->qh, 0, sizeof b->qh);
    for (int run = 0; run < 64; run++) {
        const int row = row_of(search, from->codes + 4 * run);
        b->qs[run] = (uint8_t)row;
        b->qh[run / 8] = (uint8_t)(b->qh[run / 8] | row >> 8 << run % 8);
        if (run % 2 == 0) b->signs[run / 2] = signs_of(from->codes + 4 * run);
    }
}
