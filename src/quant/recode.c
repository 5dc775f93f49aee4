// SPDX-License-Identifier: MIT
// Recodes blocks as quant/recode.h describes. Eight columns are processed at a time, a byte for each. Byte 0 is the
// lowest byte of the word, as on all processors that have kernels for the result.
#include "quant/recode.h"
#include "quant/blocks.h"
#include "quant/levels.h"
#include "quant/scales.h"

#include <string.h>

#define ALL_BYTES(value) ((uint64_t)0x0101010101010101 * (value))

// Two bits for each of 256 columns, one further bit, and a nibble for each group.
typedef struct codes_3 {
    uint64_t low[2][4], high[4];
    uint8_t scales[8];
} codes_3;

typedef struct codes_4 {
    uint64_t nibbles[4][4];
    uint8_t scales[4];
} codes_4;

static uint64_t eight(const void *bytes)
{
    uint64_t v;
    memcpy(&v, bytes, 8);
    return v;
}

static uint32_t four(const void *bytes)
{
    uint32_t v;
    memcpy(&v, bytes, 4);
    return v;
}

// Spreads the bits of a byte: byte j of the result is bit j, 0 or 1.
static uint64_t spread_bits(uint8_t bits)
{
    const uint64_t picked = ALL_BYTES(bits) & 0x8040201008040201;
    return (picked + ALL_BYTES(0x7f)) >> 7 & ALL_BYTES(1);
}

// Stores the low bits of a run; run r is columns 8 r to 8 r + 7.
static void put_low(codes_3 *c, int run, uint64_t codes)
{
    c->low[run / 16][run % 4] |= codes << (run / 4 % 4 * 2);
}

static void put_high(codes_3 *c, int run, uint64_t bits)
{
    c->high[run % 4] |= bits << run / 4;
}

static void put_nibbles(codes_4 *c, int run, uint64_t codes)
{
    c->nibbles[run / 8][run % 4] |= codes << (run / 4 % 2 * 4);
}

static void put_scale(uint8_t *scales, int group, unsigned nibble)
{
    scales[group / 2] = (uint8_t)(scales[group / 2] | nibble << group % 2 * 4);
}

// Writes the planes and `n` bytes of scales, then d.
static void write_3(const codes_3 *c, size_t n, frit_half d, uint8_t *out)
{
    memcpy(out, c->low, sizeof c->low);
    memcpy(out + sizeof c->low, c->high, sizeof c->high);
    memcpy(out + sizeof c->low + sizeof c->high, c->scales, n);
    memcpy(out + sizeof c->low + sizeof c->high + n, &d, 2);
}

static void write_4(const codes_4 *c, frit_half d, uint8_t *out)
{
    memcpy(out, c->nibbles, sizeof c->nibbles);
    memcpy(out + sizeof c->nibbles, c->scales, sizeof c->scales);
    memcpy(out + sizeof c->nibbles + sizeof c->scales, &d, 2);
}

// ------------------------------------------------------------------------------- few levels

void frit_recode_nvfp4(const void *block, uint8_t *out)
{
    const frit_block_nvfp4 *b = block;
    for (int i = 0; i < 4; i++, b++) {
        for (int g = 0; g < 4; g++) out[4 * i + g] = b->d[g] == 0x7f ? 0 : b->d[g] & 0x7f;
        memcpy(out + 16 + sizeof b->qs * i, b->qs, sizeof b->qs);
    }
}

void frit_recode_q1_0(const void *block, uint8_t *out)
{
    const frit_block_q1_0 *b = block;
    memset(out, 0, sizeof b->qs);
    for (int unit = 0; unit < 4; unit++) {
        for (int c = 0; c < 32; c++) {
            const int bit = b->qs[unit * 4 + c / 8] >> c % 8 & 1;
            out[unit * 4 + c % 4] = (uint8_t)(out[unit * 4 + c % 4] | bit << c / 4);
        }
    }
    memcpy(out + sizeof b->qs, &b->d, 2);
}

void frit_recode_q2_0(const void *block, uint8_t *out)
{
    const frit_block_q2_0 *b = block;
    memset(out, 0, sizeof b->qs);
    for (int unit = 0; unit < 2; unit++) {
        for (int c = 0; c < 32; c++) {
            const int code = b->qs[unit * 8 + c / 4] >> c % 4 * 2 & 3;
            out[unit * 8 + c % 8] = (uint8_t)(out[unit * 8 + c % 8] | code << c / 8 * 2);
        }
    }
    memcpy(out + sizeof b->qs, &b->d, 2);
}

// Stores n_digits digits of n_bytes bytes, as quant/low_bits.c reads them, from `column` on.
static int put_digits(const uint8_t *qs, int n_bytes, int n_digits, int column, uint8_t *out)
{
    uint8_t power = 1;
    for (int digit = 0; digit < n_digits; digit++, power = (uint8_t)(power * 3)) {
        for (int i = 0; i < n_bytes; i++, column++) {
            uint8_t *at = out + column / 128 * 32 + column % 32;
            *at = (uint8_t)(*at | ((uint8_t)(qs[i] * power) * 3 >> 8) << column % 128 / 32 * 2);
        }
    }
    return column;
}

void frit_recode_tq1_0(const void *block, uint8_t *out)
{
    const frit_block_tq1_0 *b = block;
    memset(out, 0, 64);
    int column = put_digits(b->qs, 32, 5, 0, out);
    column = put_digits(b->qs + 32, 16, 5, column, out);
    put_digits(b->qh, 4, 4, column, out);
    memcpy(out + 64, &b->d, 2);
}

// ------------------------------------------------------------------------------- grids: quant/iq.c

// Converts -1, 0, 1 to 0, 1, 2.
static uint64_t ternary(int index)
{
    return ((eight(frit_iq1_grid[index]) & ALL_BYTES(3)) + ALL_BYTES(1)) & ALL_BYTES(3);
}

void frit_recode_iq1_s(const void *block, uint8_t *out)
{
    const frit_block_iq1_s *b = block;
    codes_3 c = {0};
    for (int run = 0; run < 32; run++) {
        const int qh = b->qh[run / 4];
        put_low(&c, run, ternary(b->qs[run] | (qh >> run % 4 * 3 & 7) << 8));
    }
    for (int g = 0; g < 8; g++) put_scale(c.scales, g, b->qh[g] >> 12);
    memcpy(out, c.low, sizeof c.low);
    memcpy(out + sizeof c.low, c.scales, 4);
    memcpy(out + sizeof c.low + 4, &b->d, 2);
}

void frit_recode_iq1_m(const void *block, uint8_t *out)
{
    const frit_block_iq1_m *b = block;
    codes_3 c = {0};
    frit_half d = 0;
    for (int k = 0; k < 4; k++) d = (frit_half)(d | b->scales[k] >> 12 << 4 * k);
    for (int run = 0; run < 32; run++) {
        const int nibble = b->qh[run / 2] >> run % 2 * 4 & 15;
        put_low(&c, run, ternary(b->qs[run] | (nibble & 7) << 8));
        put_high(&c, run, nibble & 8 ? ALL_BYTES(1) : 0);
    }
    for (int g = 0; g < 16; g++) put_scale(c.scales, g, b->scales[g / 4] >> g % 4 * 3 & 7);
    write_3(&c, 8, d, out);
}

// Stores the magnitudes 8, 25 and 43 as 0, 1 and 2.
static void put_iq2(codes_3 *c, int run, const uint8_t grid[8], uint8_t signs)
{
    put_low(c, run, eight(grid) >> 4 & ALL_BYTES(3));
    put_high(c, run, spread_bits(signs));
}

void frit_recode_iq2_xxs(const void *block, uint8_t *out)
{
    const frit_block_iq2_xxs *b = block;
    codes_3 c = {0};
    for (int run = 0; run < 32; run++) {
        const uint32_t word = b->groups[run / 4].signs;
        put_iq2(&c, run, frit_iq2_xxs_grid[b->groups[run / 4].qs[run % 4]], frit_even_signs(word >> run % 4 * 7));
    }
    for (int g = 0; g < 8; g++) put_scale(c.scales, g, b->groups[g].signs >> 28);
    write_3(&c, 4, b->d, out);
}

void frit_recode_iq2_xs(const void *block, uint8_t *out)
{
    const frit_block_iq2_xs *b = block;
    codes_3 c = {0};
    for (int run = 0; run < 32; run++)
        put_iq2(&c, run, frit_iq2_xs_grid[b->qs[run] & 511], frit_even_signs(b->qs[run] >> 9));
    memcpy(c.scales, b->scales, sizeof c.scales);
    write_3(&c, 8, b->d, out);
}

void frit_recode_iq2_s(const void *block, uint8_t *out)
{
    const frit_block_iq2_s *b = block;
    codes_3 c = {0};
    for (int run = 0; run < 32; run++) {
        const int index = b->qs[run] | (b->qh[run / 4] >> run % 4 * 2 & 3) << 8;
        put_iq2(&c, run, frit_iq2_s_grid[index], b->signs[run]);
    }
    memcpy(c.scales, b->scales, sizeof c.scales);
    write_3(&c, 8, b->d, out);
}

// Stores eight columns from two rows of four. Shifting a magnitude right by `shift` gives its index.
static void put_iq3(codes_4 *c, int run, const uint8_t first[4], const uint8_t second[4], int shift, uint8_t signs)
{
    const uint64_t magnitudes = four(first) | (uint64_t)four(second) << 32;
    put_nibbles(c, run, (magnitudes >> shift & ALL_BYTES(7)) | spread_bits(signs) << 3);
}

void frit_recode_iq3_xxs(const void *block, uint8_t *out)
{
    const frit_block_iq3_xxs *b = block;
    codes_4 c = {0};
    for (int run = 0; run < 32; run++) {
        const uint8_t *qs = b->qs + 2 * run, signs = frit_even_signs(b->signs[run / 4] >> run % 4 * 7);
        put_iq3(&c, run, frit_iq3_xxs_grid[qs[0]], frit_iq3_xxs_grid[qs[1]], 3, signs);   // 4, 12, .. 62
    }
    for (int g = 0; g < 8; g++) put_scale(c.scales, g, b->signs[g] >> 28);
    write_4(&c, b->d, out);
}

void frit_recode_iq3_s(const void *block, uint8_t *out)
{
    const frit_block_iq3_s *b = block;
    codes_4 c = {0};
    for (int run = 0; run < 32; run++) {
        const uint8_t *qs = b->qs + 2 * run;
        const int high = b->qh[run / 4] >> run % 4 * 2;
        const uint8_t *first = frit_iq3_s_grid[qs[0] | (high & 1) << 8],
                      *second = frit_iq3_s_grid[qs[1] | (high >> 1 & 1) << 8];
        put_iq3(&c, run, first, second, 1, b->signs[run]);   // 1, 3, .. 15
    }
    memcpy(c.scales, b->scales, sizeof c.scales);
    write_4(&c, b->d, out);
}

// ------------------------------------------------------------------------------- indices

// Splits an index. The grid is sorted by the second half of its rows, so that sixteen adjacent rows have at most two
// different second halves. Kernels find the row by bits 10..4, written as a byte with bit 3 as its highest bit. Returns
// bits 2..0.
static unsigned part_iq1(int index, uint8_t *out)
{
    *out = (uint8_t)(index >> 4 | (index >> 3 & 1) << 7);
    return (unsigned)index & 7;
}

void frit_recode_iq1_s_index(const void *block, uint8_t *out)
{
    const frit_block_iq1_s *b = block;
    for (int g = 0; g < 8; g++) {
        const int qh = b->qh[g];
        unsigned low = (unsigned)qh & 0xf000;
        for (int l = 0; l < 4; l++)
            low |= part_iq1(b->qs[4 * g + l] | (qh >> l * 3 & 7) << 8, out + 4 * g + l) << 3 * l;
        out[32 + 2 * g] = (uint8_t)low;
        out[33 + 2 * g] = (uint8_t)(low >> 8);
    }
    memcpy(out + 48, &b->d, 2);
}

void frit_recode_iq1_m_index(const void *block, uint8_t *out)
{
    const frit_block_iq1_m *b = block;
    for (int i = 0; i < 16; i++) {
        const int qh = b->qh[i];
        unsigned nibbles = (unsigned)qh & 0x88;
        nibbles |= part_iq1(b->qs[2 * i] | (qh & 7) << 8, out + 2 * i);
        nibbles |= part_iq1(b->qs[2 * i + 1] | (qh >> 4 & 7) << 8, out + 2 * i + 1) << 4;
        out[32 + i] = (uint8_t)nibbles;
    }
    memcpy(out + 48, b->scales, sizeof b->scales);
}

void frit_recode_iq2_xs_index(const void *block, uint8_t *out)
{
    const frit_block_iq2_xs *b = block;
    for (int run = 0; run < 32; run++) {
        uint8_t *at = out + run / 4 * 8 + run % 4;
        at[0] = (uint8_t)b->qs[run];
        at[4] = (uint8_t)(b->qs[run] >> 9 | (b->qs[run] >> 8 & 1) << 7);
    }
    memcpy(out + 64, b->scales, sizeof b->scales);
    memcpy(out + 72, &b->d, 2);
}

// Writes the indices of the first halves of four runs, then of the second halves.
static void part_halves(const uint8_t qs[8], uint8_t out[8])
{
    for (int i = 0; i < 8; i++) out[i % 2 * 4 + i / 2] = qs[i];
}

void frit_recode_iq3_xxs_index(const void *block, uint8_t *out)
{
    const frit_block_iq3_xxs *b = block;
    for (int g = 0; g < 8; g++, out += 12) {
        part_halves(b->qs + 8 * g, out);
        memcpy(out + 8, &b->signs[g], 4);
    }
    memcpy(out, &b->d, 2);
}

// Moves bits 0, 2, 4 and 6 to 3, 2, 1 and 0, and the others to 7, 6, 5 and 4.
static uint8_t part_signs(uint8_t signs)
{
    unsigned parted = 0;
    for (int i = 0; i < 8; i++) parted |= (signs >> i & 1u) << (i % 2 * 4 + 3 - i / 2);
    return (uint8_t)parted;
}

void frit_recode_iq3_s_index(const void *block, uint8_t *out)
{
    const frit_block_iq3_s *b = block;
    for (int g = 0; g < 8; g++) {
        unsigned high = 0;
        part_halves(b->qs + 8 * g, out + 12 * g);
        for (int l = 0; l < 4; l++) out[12 * g + 8 + l] = part_signs(b->signs[4 * g + l]);
        for (int i = 0; i < 8; i++) high |= (b->qh[g] >> i & 1u) << (i % 2 * 4 + i / 2);
        out[96 + g] = (uint8_t)high;
    }
    memcpy(out + 104, b->scales, sizeof b->scales);
    memcpy(out + 108, &b->d, 2);
}
