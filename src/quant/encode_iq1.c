// SPDX-License-Identifier: MIT
// Encoders of IQ1_S and IQ1_M: x = scale * (q + shift), q in a grid of -1, 0 and 1, shift +-1/8.
//
// For each group of numbers with one scale:
// 1. The numbers are sorted. Some of the smallest become -1, some of the largest 1, and the others 0. Every such split
// is tried with every choice of shifts; the split whose least squares scale lowers the error most is kept.
// 2. Runs of eight that miss the grid get the best row near them. Then the scale is fitted again.
// The scales become three-bit codes c, scale = d * (2 c + 1).
//
// In a block that is not zero, a group of zeros gets row 0, which is -1 throughout, with the smallest scale: the
// formats have no zero.
#include <math.h>

#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/encode.h"
#include "quant/search/grid_search.h"
#include "quant/half.h"
#include "quant/levels.h"

typedef struct group {
    const float *x;
    float weights[32];
    int size;            // 32 or 16
    uint8_t order[32];   // indices of ascending numbers
    float scale;
    float shifts[4];      // by run of eight
    uint8_t levels[32];   // q + 1
    int rows[4];
} group;

static inline float value_of(int level, float shift)
{
    return (float)(level - 1) + shift;
}

// Sorts by insertion: equal numbers keep their order.
static void sort(group *g)
{
    for (int i = 0; i < g->size; i++) {
        int at = i;
        for (; at > 0 && g->x[g->order[at - 1]] > g->x[i]; at--) g->order[at] = g->order[at - 1];
        g->order[at] = (uint8_t)i;
    }
}

static void set_levels(group *g, int n_low, int n_low_and_middle)
{
    for (int j = 0; j < g->size; j++) g->levels[g->order[j]] = (uint8_t)((j >= n_low) + (j >= n_low_and_middle));
}

static void start(group *g, const float *x, int size, const float *importance, float mean)
{
    g->x = x;
    g->size = size;
    g->scale = 0;
    for (int k = 0; k < 4; k++) {
        g->shifts[k] = 0.125f;
        g->rows[k] = 0;
    }
    if (importance)
        frit_weigh(x, importance, size, mean, g->weights);
    else
        frit_weigh_by_square(x, size, g->weights);
}

// Step 1 for IQ1_S, with one shift for the group. The sums of a split are differences of prefix sums.
static bool split_s(group *g)
{
    float sum_x[33] = {0}, sum_w[33] = {0}, best = -1;
    int n = g->size, low = -1, middle = -1;
    sort(g);
    for (int j = 0; j < n; j++) {
        int i = g->order[j];
        sum_x[j + 1] = sum_x[j] + g->weights[i] * g->x[i];
        sum_w[j + 1] = sum_w[j] + g->weights[i];
    }
    for (int i = 0; i <= n; i++) {
        for (int j = i; j <= n; j++) {
            for (int sign = 0; sign < 2; sign++) {
                float shift = sign ? -0.125f : 0.125f;
                float a = value_of(0, shift), b = value_of(1, shift), c = value_of(2, shift);
                float xq = sum_x[i] * a + (sum_x[j] - sum_x[i]) * b + (sum_x[n] - sum_x[j]) * c;
                float qq = sum_w[i] * a * a + (sum_w[j] - sum_w[i]) * b * b + (sum_w[n] - sum_w[j]) * c * c;
                if (!(qq > 0 && xq * xq > best * qq)) continue;
                g->scale = xq / qq;
                best = g->scale * xq;
                low = i;
                middle = j;
                for (int k = 0; k < 4; k++) g->shifts[k] = shift;
            }
        }
    }
    if (low >= 0) set_levels(g, low, middle);
    return low >= 0;
}

// The contribution of a number to the sums of the four choices of shifts (++, +-, -+, --) at each level.
typedef struct terms {
    float xq[3][16][4], qq[3][16][4];
} terms;

static float shift_of(int choice, int run)
{
    return choice >> (1 - run) & 1 ? -0.125f : 0.125f;
}

static void prepare_terms(const group *g, terms *out)
{
    for (int level = 0; level < 3; level++) {
        for (int i = 0; i < 16; i++) {
            for (int choice = 0; choice < 4; choice++) {
                float q = value_of(level, shift_of(choice, i / 8)), wq = g->weights[i] * q;
                out->xq[level][i][choice] = wq * g->x[i];
                out->qq[level][i][choice] = wq * q;
            }
        }
    }
}

static void sum_terms(const terms *from, const uint8_t order[16], int low, int middle, float xq[4], float qq[4])
{
    for (int choice = 0; choice < 4; choice++) xq[choice] = qq[choice] = 0;
    for (int j = 0; j < 16; j++) {
        int level = (j >= low) + (j >= middle), i = order[j];
        for (int choice = 0; choice < 4; choice++) {
            xq[choice] += from->xq[level][i][choice];
            qq[choice] += from->qq[level][i][choice];
        }
    }
}

// Step 1 for IQ1_M, with a shift for each of the two runs.
static bool split_m(group *g)
{
    terms all;
    float best = -1;
    int low = -1, middle = -1;
    sort(g);
    prepare_terms(g, &all);
    for (int i = 0; i <= 16; i++) {
        for (int j = i; j <= 16; j++) {
            float xq[4], qq[4];
            sum_terms(&all, g->order, i, j, xq, qq);
            for (int choice = 0; choice < 4; choice++) {
                if (!(qq[choice] > 0 && xq[choice] * xq[choice] > best * qq[choice])) continue;
                g->scale = xq[choice] / qq[choice];
                best = g->scale * xq[choice];
                low = i;
                middle = j;
                for (int run = 0; run < 2; run++) g->shifts[run] = shift_of(choice, run);
            }
        }
    }
    if (low >= 0) set_levels(g, low, middle);
    return low >= 0;
}

// Adds a group's sums for codes with the values `factor` * (q + shift).
static void add_products(const frit_grid_search *search, const group *g, float factor, float *sum_xq, float *sum_qq)
{
    for (int i = 0; i < g->size; i++) {
        int level = search->levels[i % 8][g->rows[i / 8]];
        float q = value_of(level, g->shifts[i / 8]) * factor, wq = g->weights[i] * q;
        *sum_xq += wq * g->x[i];
        *sum_qq += wq * q;
    }
}

// Finds the row for the levels of a run. Returns false if they miss the grid.
static bool find_row(const frit_grid_search *search, group *g, int run)
{
    frit_grid_near near;
    g->rows[run] = frit_grid_find(search, g->levels + run * 8, &near);
    if (g->rows[run] >= 0) return true;
    const frit_grid_target target = {g->x + run * 8, g->weights + run * 8, g->scale, 1, g->shifts[run] - 1};
    g->rows[run] = near.rows[frit_grid_best(&near, 8, &target)];
    return false;
}

// Step 2, after a split was found.
static void choose_rows(const frit_grid_search *search, group *g)
{
    if (g->scale < 0) {
        g->scale = -g->scale;
        for (int i = 0; i < g->size; i++) g->levels[i] = (uint8_t)(2 - g->levels[i]);
        for (int run = 0; run < 4; run++) g->shifts[run] = -g->shifts[run];
    }
    bool missed = false;
    for (int run = 0; run < g->size / 8; run++) missed |= !find_row(search, g, run);
    if (!missed) return;
    float xq = 0, qq = 0;
    add_products(search, g, 1, &xq, &qq);
    if (xq > 0 && qq > 0) g->scale = xq / qq;
}

static bool is_small(const float *x, int n, float limit)
{
    return !(fabsf(frit_extreme(x, n)) >= limit);
}

static int scale_code(float scale, float d)
{
    return frit_round_clamped(0.5f * (1 / d * scale - 1), 0, 7);
}

static void encode_block_s(const frit_grid_search *search, const float *x, const float *importance,
                           frit_block_iq1_s *block)
{
    group groups[8];
    float mean = importance ? 2 * frit_sum_of_squares(x, 256) / 256 : 0, largest = 0;
    for (int k = 0; k < 8; k++) {
        group *g = &groups[k];
        start(g, x + k * 32, 32, importance ? importance + k * 32 : NULL, mean);
        if (is_small(g->x, 32, 1e-12f) || !split_s(g)) continue;
        choose_rows(search, g);
        largest = g->scale > largest ? g->scale : largest;
    }
    *block = (frit_block_iq1_s){0};
    if (!(largest > 0)) return;
    float d = largest / 15;
    block->d = frit_float_to_half(d * 1.125f);   // found by experiment
    for (int k = 0; k < 8; k++) {
        int qh = scale_code(groups[k].scale, d) << 12 | (groups[k].shifts[0] < 0) << 15;
        for (int run = 0; run < 4; run++) {
            block->qs[k * 4 + run] = (uint8_t)groups[k].rows[run];
            qh |= groups[k].rows[run] >> 8 << 3 * run;
        }
        block->qh[k] = (uint16_t)qh;
    }
}

// Fits d again, to all numbers of the block with their final codes.
static void encode_block_m(const frit_grid_search *search, const float *x, const float *importance,
                           frit_block_iq1_m *block)
{
    group groups[16];
    float mean = importance ? 2 * frit_sum_of_squares(x, 256) / 256 : 0, largest = 0, xq = 0, qq = 0;
    for (int k = 0; k < 16; k++) {
        group *g = &groups[k];
        start(g, x + k * 16, 16, importance ? importance + k * 16 : NULL, mean);
        if (is_small(g->x, 16, 1e-7f) || !split_m(g)) continue;
        choose_rows(search, g);
        largest = g->scale > largest ? g->scale : largest;
    }
    *block = (frit_block_iq1_m){0};
    if (!(largest > 0)) return;
    float d = largest / 15;
    for (int k = 0; k < 16; k++) {
        const group *g = &groups[k];
        int code = scale_code(g->scale, d), qh = 0;
        add_products(search, g, (float)(2 * code + 1), &xq, &qq);
        for (int run = 0; run < 2; run++) {
            block->qs[k * 2 + run] = (uint8_t)g->rows[run];
            qh |= (g->rows[run] >> 8 | (g->shifts[run] < 0) << 3) << 4 * run;
        }
        block->qh[k] = (uint8_t)qh;
        block->scales[k / 4] |= (uint16_t)(code << k % 4 * 3);
    }
    if (qq > 0) d = xq / qq;
    unsigned bits = frit_float_to_half(d * 1.1125f);   // found by experiment
    for (int k = 0; k < 4; k++) block->scales[k] |= (uint16_t)((bits >> 4 * k & 15) << 12);
}

void frit_encode_iq1_s(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_iq1_s *block = blocks;
    const frit_grid_search *search = frit_grid_search_get(FRIT_GRID_IQ1);
    for (int64_t i = 0; i < n; i += 256, block++) {
        encode_block_s(search, values + i, importance ? importance + i : NULL, block);
    }
}

void frit_encode_iq1_m(const float *values, void *blocks, int64_t n, const float *importance)
{
    frit_block_iq1_m *block = blocks;
    const frit_grid_search *search = frit_grid_search_get(FRIT_GRID_IQ1);
    for (int64_t i = 0; i < n; i += 256, block++) {
        encode_block_m(search, values + i, importance ? importance + i : NULL, block);
    }
}
