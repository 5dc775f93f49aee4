// SPDX-License-Identifier: MIT
// Encoders of IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS and IQ3_S: magnitudes from a grid, times a scale, and signs.
//
// For each group of 16 or 32 numbers:
// 1. Signs are removed. In formats that store seven of eight signs, the number of minus signs must be even: if it is
// odd, the number with the least weight gets the wrong sign, and a negative magnitude.
// 2. Scales are tried. Magnitudes are rounded to odd numbers 2 * level + 1; runs that miss the grid get the best row
// near them. The least squares scale of the best trial is kept.
// 3. With this scale, runs that missed the grid (in some formats all runs) are rounded again.
// Then the scales of the eight or sixteen groups become four-bit codes c: scale = d * (2 c + 1) or a multiple of it.
#include <math.h>
#include <string.h>

#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/encode.h"
#include "quant/search/grid_search.h"
#include "quant/half.h"
#include "quant/levels.h"

// The runs that step 3 rounds again.
enum { MISSED, ALL_IF_ONE_MISSED, ALL };

typedef struct grid_format {
    frit_grid_kind grid;
    int n_levels;
    int group;    // numbers with one scale
    int trials;   // on each side of the middle one
    float trial_step;
    float too_small;     // a group with smaller numbers is zero
    float spread;        // weights with importance: importance * sqrt(spread * mean square + x^2)
    float plain_floor;   // weights without importance: plain_floor * spread * mean square + x^2
    float correction;    // factor of d, found by experiment
    int again;
    bool even_signs;
    bool fit_first;   // the trials start from a fit to 0..n_levels + 1 instead of the largest number
} grid_format;

// clang-format off
static const grid_format iq2_xxs = {
    .grid = FRIT_GRID_IQ2_XXS, .n_levels = 3,
    .group = 32, .trials = 6, .trial_step = 0.1f, .too_small = 1e-15f, .spread = 1, .plain_floor = 0.25f,
    .correction = 1, .again = ALL, .even_signs = true, .fit_first = true,
};
static const grid_format iq2_xs = {
    .grid = FRIT_GRID_IQ2_XS, .n_levels = 3,
    .group = 16, .trials = 9, .trial_step = 0.1f, .too_small = 1e-15f, .spread = 1, .plain_floor = 0.25f,
    .correction = 1, .again = MISSED, .even_signs = true,
};
static const grid_format iq2_s = {
    .grid = FRIT_GRID_IQ2_S, .n_levels = 3,
    .group = 16, .trials = 9, .trial_step = 0.1f, .too_small = 1e-8f, .spread = 2, .plain_floor = 0.25f,
    .correction = 0.9875f, .again = MISSED,
};
static const grid_format iq3_xxs = {
    .grid = FRIT_GRID_IQ3_XXS, .n_levels = 8,
    .group = 32, .trials = 15, .trial_step = 0.2f, .too_small = 1e-8f, .spread = 2, .plain_floor = 0,
    .correction = 1.0125f, .again = MISSED, .even_signs = true,
};
static const grid_format iq3_s = {
    .grid = FRIT_GRID_IQ3_S, .n_levels = 8,
    .group = 32, .trials = 9, .trial_step = 0.2f, .too_small = 0x1p-149f, .spread = 2, .plain_floor = 0,
    .correction = 1.033f, .again = ALL_IF_ONE_MISSED,
};
// clang-format on

typedef struct encoder {
    const grid_format *format;
    const frit_grid_search *search;
} encoder;

// A group of numbers while it is encoded.
typedef struct group {
    float x[32], weights[32], roots[32];   // magnitudes, weights and their square roots
    uint8_t signs[4];                      // of eight numbers each
    uint8_t levels[32];
    bool on_grid[8];   // by run
    float scale;
} group;

typedef struct grid_block {
    frit_half d;
    uint8_t scales[16];   // four-bit codes, by group
    uint8_t signs[32];
    uint16_t rows[64];   // by run
} grid_block;

static encoder encoder_of(const grid_format *format)
{
    return (encoder){format, frit_grid_search_get(format->grid)};
}

// Step 1: removes signs.
static void take_signs(const grid_format *format, const float *x, group *g)
{
    for (int k = 0; k < format->group / 8; k++, x += 8) {
        float *magnitudes = g->x + 8 * k;
        const float *weights = g->weights + 8 * k;
        int signs = 0, n_negative = 0, least = 0;
        for (int i = 0; i < 8; i++) {
            bool negative = !(x[i] >= 0);
            magnitudes[i] = negative ? -x[i] : x[i];
            signs |= negative << i;
            n_negative += negative;
            if (weights[i] * x[i] * x[i] < weights[least] * x[least] * x[least]) least = i;
        }
        if (format->even_signs && n_negative % 2 != 0) {
            magnitudes[least] = -magnitudes[least];
            signs ^= 1 << least;
        }
        g->signs[k] = (uint8_t)signs;
    }
}

// Rounds to the nearest levels, which may miss the grid.
static void round_group(const encoder *self, const group *g, float inverse, uint8_t *levels)
{
    const int n = self->format->group, top = self->format->n_levels - 1;
    for (int i = 0; i < n; i++) levels[i] = (uint8_t)frit_round_clamped(0.5f * (inverse * g->x[i] - 1), 0, top);
}

// Replaces run k of rounded levels by a row of the grid. Returns false if the levels missed the grid.
static bool choose_row(const encoder *self, const group *g, int k, float scale, uint8_t *levels)
{
    int size = self->search->size, first = k * size;
    uint8_t *run = levels + first;
    frit_grid_near near;
    if (frit_grid_find(self->search, run, &near) >= 0) return true;
    const frit_grid_target target = {g->x + first, g->roots + first, scale, 2, 1};
    const int best = frit_grid_best(&near, size, &target);
    for (int i = 0; i < size; i++) run[i] = frit_grid_level(near.levels[best], i);
    return false;
}

static void sum_products(const group *g, int n, const uint8_t *levels, float *sum_xq, float *sum_qq)
{
    *sum_xq = *sum_qq = 0;
    for (int i = 0; i < n; i++) {
        float q = (float)(2 * levels[i] + 1);
        *sum_xq += g->weights[i] * g->x[i] * q;
        *sum_qq += g->weights[i] * q * q;
    }
}

// Step 2: tries scales. `top` is the number that the middle trial maps to the largest level.
static void try_scales(const encoder *self, group *g, float top)
{
    const grid_format *format = self->format;
    int n_runs = format->group / self->search->size;
    float best = 0;
    for (int trial = -format->trials; trial <= format->trials; trial++) {
        uint8_t levels[32];
        bool on_grid[8];
        float inverse = ((float)(2 * format->n_levels - 1) + (float)trial * format->trial_step) / top, sum_xq, sum_qq;
        round_group(self, g, inverse, levels);
        for (int k = 0; k < n_runs; k++) on_grid[k] = choose_row(self, g, k, 1 / inverse, levels);
        sum_products(g, format->group, levels, &sum_xq, &sum_qq);
        if (!(sum_qq > 0 && sum_xq * sum_xq > best * sum_qq)) continue;
        g->scale = sum_xq / sum_qq;
        best = g->scale * sum_xq;
        memcpy(g->levels, levels, sizeof levels);
        memcpy(g->on_grid, on_grid, sizeof on_grid);
    }
}

// Step 3: rounds runs again.
static void round_again(const encoder *self, group *g)
{
    int size = self->search->size, n_runs = self->format->group / size;
    bool any = self->format->again == ALL;
    for (int k = 0; k < n_runs; k++) any |= !g->on_grid[k];
    if (!any || !(g->scale > 0)) return;
    float scale = g->scale, sum_xq, sum_qq;
    uint8_t rounded[32];
    round_group(self, g, 1 / scale, rounded);
    for (int k = 0; k < n_runs; k++) {
        if (self->format->again == MISSED && g->on_grid[k]) continue;
        choose_row(self, g, k, scale, rounded);
        memcpy(g->levels + k * size, rounded + k * size, (size_t)size);
    }
    sum_products(g, self->format->group, g->levels, &sum_xq, &sum_qq);
    if (sum_qq > 0) g->scale = sum_xq / sum_qq;
}

// Encodes a group. Returns false if it is zero.
static bool encode_group(const encoder *self, const float *x, group *g)
{
    const grid_format *format = self->format;
    for (int i = 0; i < format->group; i++) g->roots[i] = sqrtf(g->weights[i]);
    take_signs(format, x, g);
    memset(g->levels, 0, sizeof g->levels);
    memset(g->on_grid, format->again == MISSED, sizeof g->on_grid);   // used if no trial is better than zero
    float top = g->x[0];
    for (int i = 1; i < format->group; i++) top = g->x[i] > top ? g->x[i] : top;
    if (!(top >= format->too_small)) return false;
    g->scale = top / (float)(2 * format->n_levels - 1);
    if (format->fit_first) {
        uint8_t unused[32];
        g->scale = frit_fit_unsigned(g->x, g->weights, format->group, format->n_levels + 1, unused);
        top = g->scale * (float)format->n_levels;
        if (!(top > 0)) return false;
    }
    try_scales(self, g, top);
    round_again(self, g);
    if (g->scale < 0) {
        g->scale = -g->scale;
        for (int k = 0; k < format->group / 8; k++) g->signs[k] = (uint8_t)~g->signs[k];
    }
    return true;
}

// A group of zeros keeps row 0, no signs and scale 0. (The reference encoder of IQ3_S writes wrong bytes for a block
// with such a group; this one does not.)
static void encode_block(const encoder *self, const float *x, const float *importance, grid_block *out)
{
    const grid_format *format = self->format;
    int size = format->group, n_groups = 256 / size, n_runs = size / self->search->size;
    float mean = format->spread * frit_sum_of_squares(x, 256) / 256, scales[16] = {0}, largest = 0;
    memset(out, 0, sizeof *out);
    for (int j = 0; j < n_groups; j++) {
        group g;
        const float *from = x + j * size;
        if (importance) frit_weigh(from, importance + j * size, size, mean, g.weights);
        for (int i = 0; i < size && !importance; i++) g.weights[i] = format->plain_floor * mean + from[i] * from[i];
        if (!encode_group(self, from, &g)) continue;
        memcpy(out->signs + j * size / 8, g.signs, (size_t)size / 8);
        for (int k = 0; k < n_runs; k++) {
            frit_grid_near unused;
            int row = frit_grid_find(self->search, g.levels + k * self->search->size, &unused);
            out->rows[j * n_runs + k] = (uint16_t)row;
        }
        scales[j] = g.scale;
        largest = g.scale > largest ? g.scale : largest;
    }
    if (!(largest > 0)) {
        memset(out, 0, sizeof *out);
        return;
    }
    float d = largest / 31, inverse = 1 / d;
    out->d = frit_float_to_half(d * format->correction);
    for (int j = 0; j < n_groups; j++) {
        out->scales[j] = (uint8_t)frit_round_clamped(0.5f * (inverse * scales[j] - 1), 0, 15);
    }
}

// Packs the seven stored signs of four runs, and the scale.
static uint32_t signs_and_scale(const uint8_t signs[4], int scale)
{
    uint32_t word = (uint32_t)scale << 28;
    for (int k = 0; k < 4; k++) word |= (uint32_t)(signs[k] & 127) << 7 * k;
    return word;
}

void frit_encode_iq2_xxs(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_iq2_xxs *block = blocks;
    const encoder self = encoder_of(&iq2_xxs);
    for (int64_t i = 0; i < n; i += 256, block++) {
        grid_block from;
        encode_block(&self, values + i, importance ? importance + i : NULL, &from);
        block->d = from.d;
        for (int g = 0; g < 8; g++) {
            for (int k = 0; k < 4; k++) block->groups[g].qs[k] = (uint8_t)from.rows[g * 4 + k];
            block->groups[g].signs = signs_and_scale(from.signs + g * 4, from.scales[g]);
        }
    }
}

void frit_encode_iq2_xs(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_iq2_xs *block = blocks;
    const encoder self = encoder_of(&iq2_xs);
    for (int64_t i = 0; i < n; i += 256, block++) {
        grid_block from;
        encode_block(&self, values + i, importance ? importance + i : NULL, &from);
        block->d = from.d;
        for (int k = 0; k < 32; k++) block->qs[k] = (uint16_t)(from.rows[k] | (from.signs[k] & 127) << 9);
        for (int g = 0; g < 8; g++) block->scales[g] = (uint8_t)(from.scales[2 * g] | from.scales[2 * g + 1] << 4);
    }
}

void frit_encode_iq2_s(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_iq2_s *block = blocks;
    const encoder self = encoder_of(&iq2_s);
    for (int64_t i = 0; i < n; i += 256, block++) {
        grid_block from;
        encode_block(&self, values + i, importance ? importance + i : NULL, &from);
        block->d = from.d;
        memcpy(block->signs, from.signs, 32);
        for (int k = 0; k < 32; k++) block->qs[k] = (uint8_t)from.rows[k];
        for (int g = 0; g < 8; g++) {
            int high = 0;
            for (int k = 0; k < 4; k++) high |= from.rows[g * 4 + k] >> 8 << 2 * k;
            block->qh[g] = (uint8_t)high;
            block->scales[g] = (uint8_t)(from.scales[2 * g] | from.scales[2 * g + 1] << 4);
        }
    }
}

void frit_encode_iq3_xxs(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_iq3_xxs *block = blocks;
    const encoder self = encoder_of(&iq3_xxs);
    for (int64_t i = 0; i < n; i += 256, block++) {
        grid_block from;
        encode_block(&self, values + i, importance ? importance + i : NULL, &from);
        block->d = from.d;
        for (int k = 0; k < 64; k++) block->qs[k] = (uint8_t)from.rows[k];
        for (int g = 0; g < 8; g++) block->signs[g] = signs_and_scale(from.signs + g * 4, from.scales[g]);
    }
}

void frit_encode_iq3_s(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_iq3_s *block = blocks;
    const encoder self = encoder_of(&iq3_s);
    for (int64_t i = 0; i < n; i += 256, block++) {
        grid_block from;
        encode_block(&self, values + i, importance ? importance + i : NULL, &from);
        block->d = from.d;
        memcpy(block->signs, from.signs, 32);
        for (int k = 0; k < 64; k++) block->qs[k] = (uint8_t)from.rows[k];
        for (int g = 0; g < 8; g++) {
            int high = 0;
            for (int k = 0; k < 8; k++) high |= from.rows[g * 8 + k] >> 8 << k;
            block->qh[g] = (uint8_t)high;
        }
        for (int g = 0; g < 4; g++) block->scales[g] = (uint8_t)(from.scales[2 * g] | from.scales[2 * g + 1] << 4);
    }
}
