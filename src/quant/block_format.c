// SPDX-License-Identifier: MIT
// Converts blocks to codes and scales, and back.
#include "quant/block_format.h"

#include "quant/blocks.h"
#include "quant/encode.h"
#include "quant/grid_format.h"
#include "quant/half.h"
#include "quant/levels.h"
#include "quant/block_write.h"
#include "quant/scales.h"

#include <string.h>

// ------------------------------------------------------------------------------------- reading bits

static void unpack_two_bits(const uint8_t qs[64], int8_t codes[256])
{
    for (int i = 0; i < 256; i++) codes[i] = (int8_t)(qs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3);
}

static void unpack_four_bits(const uint8_t qs[128], int8_t codes[256])
{
    for (int i = 0; i < 256; i++) codes[i] = (int8_t)(qs[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15);
}

// Adds bit `bit` to the codes.
static void unpack_one_bit(const uint8_t qh[32], int bit, int8_t codes[256])
{
    for (int i = 0; i < 256; i++) codes[i] = (int8_t)(codes[i] | (qh[i % 32] >> (i / 32) & 1) << bit);
}

static void unpack_nibbles(const uint8_t qs[16], int8_t *codes)
{
    for (int j = 0; j < 16; j++) {
        codes[j] = (int8_t)(qs[j] & 15);
        codes[j + 16] = (int8_t)(qs[j] >> 4);
    }
}

static void shift_codes(int8_t *codes, int n, int by)
{
    for (int i = 0; i < n; i++) codes[i] = (int8_t)(codes[i] + by);
}

// Codes as they are stored, shifted to begin at 0.
static void stored_codes(const frit_unpacked_block *from, int n, int low, uint8_t *codes)
{
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)(from->codes[i] - low);
}

static void set_units(frit_unpacked_block *out, int n_groups)
{
    for (int g = 0; g < n_groups; g++) out->scales[g] = out->mins[g] = 1;
}

// ------------------------------------------------------------------------------------- formats

static void unpack_q2_k(const void *block, frit_unpacked_block *out)
{
    const frit_block_q2_k *b = block;
    out->d = frit_half_to_float(b->d);
    out->dmin = frit_half_to_float(b->dmin);
    for (int g = 0; g < 16; g++) {
        out->scales[g] = b->scales[g] & 15;
        out->mins[g] = b->scales[g] >> 4;
    }
    unpack_two_bits(b->qs, out->codes);
}

static void pack_q2_k(const frit_unpacked_block *from, void *block)
{
    frit_block_q2_k *b = block;
    uint8_t codes[256];
    stored_codes(from, 256, 0, codes);
    b->d = frit_float_to_half(from->d);
    b->dmin = frit_float_to_half(from->dmin);
    for (int g = 0; g < 16; g++) b->scales[g] = (uint8_t)(from->scales[g] | from->mins[g] << 4);
    frit_write_two_bits(codes, b->qs);
}

static void unpack_q3_k(const void *block, frit_unpacked_block *out)
{
    const frit_block_q3_k *b = block;
    int8_t scales[16];
    out->d = frit_half_to_float(b->d);
    out->dmin = 0;
    frit_unpack_scales_q3_k(b->scales, scales);
    for (int g = 0; g < 16; g++) out->scales[g] = scales[g];
    unpack_two_bits(b->qs, out->codes);
    unpack_one_bit(b->qh, 2, out->codes);
    shift_codes(out->codes, 256, -4);
}

static void pack_q3_k(const frit_unpacked_block *from, void *block)
{
    frit_block_q3_k *b = block;
    uint8_t codes[256];
    int8_t scales[16];
    stored_codes(from, 256, -4, codes);
    for (int g = 0; g < 16; g++) scales[g] = (int8_t)from->scales[g];
    b->d = frit_float_to_half(from->d);
    frit_write_scales_q3_k(scales, b->scales);
    frit_write_two_bits(codes, b->qs);
    frit_write_one_bit(codes, 2, b->qh);
}

static void unpack_scales_q4_k(const uint8_t packed[12], frit_unpacked_block *out)
{
    uint8_t scales[8], mins[8];
    frit_unpack_scales_q4_k(packed, scales, mins);
    for (int g = 0; g < 8; g++) {
        out->scales[g] = scales[g];
        out->mins[g] = mins[g];
    }
}

static void pack_scales_q4_k(const frit_unpacked_block *from, uint8_t packed[12])
{
    uint8_t scales[8], mins[8];
    for (int g = 0; g < 8; g++) {
        scales[g] = (uint8_t)from->scales[g];
        mins[g] = (uint8_t)from->mins[g];
    }
    frit_write_scales_q4_k(scales, mins, packed);
}

static void unpack_q4_k(const void *block, frit_unpacked_block *out)
{
    const frit_block_q4_k *b = block;
    out->d = frit_half_to_float(b->d);
    out->dmin = frit_half_to_float(b->dmin);
    unpack_scales_q4_k(b->scales, out);
    unpack_four_bits(b->qs, out->codes);
}

static void pack_q4_k(const frit_unpacked_block *from, void *block)
{
    frit_block_q4_k *b = block;
    uint8_t codes[256];
    stored_codes(from, 256, 0, codes);
    b->d = frit_float_to_half(from->d);
    b->dmin = frit_float_to_half(from->dmin);
    pack_scales_q4_k(from, b->scales);
    frit_write_four_bits(codes, b->qs);
}

static void unpack_q5_k(const void *block, frit_unpacked_block *out)
{
    const frit_block_q5_k *b = block;
    out->d = frit_half_to_float(b->d);
    out->dmin = frit_half_to_float(b->dmin);
    unpack_scales_q4_k(b->scales, out);
    unpack_four_bits(b->qs, out->codes);
    unpack_one_bit(b->qh, 4, out->codes);
}

static void pack_q5_k(const frit_unpacked_block *from, void *block)
{
    frit_block_q5_k *b = block;
    uint8_t codes[256];
    stored_codes(from, 256, 0, codes);
    b->d = frit_float_to_half(from->d);
    b->dmin = frit_float_to_half(from->dmin);
    pack_scales_q4_k(from, b->scales);
    frit_write_four_bits(codes, b->qs);
    frit_write_one_bit(codes, 4, b->qh);
}

static void unpack_q6_k(const void *block, frit_unpacked_block *out)
{
    const frit_block_q6_k *b = block;
    out->d = frit_half_to_float(b->d);
    out->dmin = 0;
    for (int g = 0; g < 16; g++) out->scales[g] = b->scales[g];
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, unit = i / 32 % 4, l = i % 32;
        const int low = b->ql[half * 64 + unit % 2 * 32 + l] >> (unit / 2 * 4) & 15;
        out->codes[i] = (int8_t)((low | (b->qh[half * 32 + l] >> unit * 2 & 3) << 4) - 32);
    }
}

static void pack_q6_k(const frit_unpacked_block *from, void *block)
{
    frit_block_q6_k *b = block;
    uint8_t codes[256];
    stored_codes(from, 256, -32, codes);
    b->d = frit_float_to_half(from->d);
    for (int g = 0; g < 16; g++) b->scales[g] = (int8_t)from->scales[g];
    frit_write_q6_k(codes, b);
}

// ------------------------------------------------------------------------------------- blocks of 32

static void unpack_fifth_bits(uint32_t qh, int8_t *codes)
{
    for (int j = 0; j < 32; j++) codes[j] = (int8_t)(codes[j] | (qh >> j & 1) << 4);
}

static void unpack_q4_0(const void *block, frit_unpacked_block *out)
{
    const frit_block_q4_0 *b = block;
    out->d = frit_half_to_float(b->d);
    out->dmin = 0;
    set_units(out, 1);
    unpack_nibbles(b->qs, out->codes);
    shift_codes(out->codes, 32, -8);
}

static void pack_q4_0(const frit_unpacked_block *from, void *block)
{
    frit_block_q4_0 *b = block;
    uint8_t codes[32];
    stored_codes(from, 32, -8, codes);
    b->d = frit_float_to_half(from->d);
    frit_write_nibbles(codes, b->qs);
}

static void unpack_q4_1(const void *block, frit_unpacked_block *out)
{
    const frit_block_q4_1 *b = block;
    out->d = frit_half_to_float(b->d);
    out->dmin = -frit_half_to_float(b->m);
    set_units(out, 1);
    unpack_nibbles(b->qs, out->codes);
}

static void pack_q4_1(const frit_unpacked_block *from, void *block)
{
    frit_block_q4_1 *b = block;
    uint8_t codes[32];
    stored_codes(from, 32, 0, codes);
    b->d = frit_float_to_half(from->d);
    b->m = frit_float_to_half(-from->dmin);
    frit_write_nibbles(codes, b->qs);
}

static void unpack_q5_0(const void *block, frit_unpacked_block *out)
{
    const frit_block_q5_0 *b = block;
    out->d = frit_half_to_float(b->d);
    out->dmin = 0;
    set_units(out, 1);
    unpack_nibbles(b->qs, out->codes);
    unpack_fifth_bits(b->qh, out->codes);
    shift_codes(out->codes, 32, -16);
}

static void pack_q5_0(const frit_unpacked_block *from, void *block)
{
    frit_block_q5_0 *b = block;
    uint8_t codes[32];
    stored_codes(from, 32, -16, codes);
    b->d = frit_float_to_half(from->d);
    b->qh = frit_write_fifth_bits(codes);
    frit_write_nibbles(codes, b->qs);
}

static void unpack_q5_1(const void *block, frit_unpacked_block *out)
{
    const frit_block_q5_1 *b = block;
    out->d = frit_half_to_float(b->d);
    out->dmin = -frit_half_to_float(b->m);
    set_units(out, 1);
    unpack_nibbles(b->qs, out->codes);
    unpack_fifth_bits(b->qh, out->codes);
}

static void pack_q5_1(const frit_unpacked_block *from, void *block)
{
    frit_block_q5_1 *b = block;
    uint8_t codes[32];
    stored_codes(from, 32, 0, codes);
    b->d = frit_float_to_half(from->d);
    b->m = frit_float_to_half(-from->dmin);
    b->qh = frit_write_fifth_bits(codes);
    frit_write_nibbles(codes, b->qs);
}

static void unpack_iq4_nl(const void *block, frit_unpacked_block *out)
{
    const frit_block_iq4_nl *b = block;
    out->d = frit_half_to_float(b->d);
    out->dmin = 0;
    set_units(out, 1);
    unpack_nibbles(b->qs, out->codes);
}

static void pack_iq4_nl(const frit_unpacked_block *from, void *block)
{
    frit_block_iq4_nl *b = block;
    uint8_t codes[32];
    stored_codes(from, 32, 0, codes);
    b->d = frit_float_to_half(from->d);
    frit_write_nibbles(codes, b->qs);
}

static void unpack_iq4_xs(const void *block, frit_unpacked_block *out)
{
    const frit_block_iq4_xs *b = block;
    out->d = frit_half_to_float(b->d);
    out->dmin = 0;
    for (int g = 0; g < 8; g++) {
        const int low = b->scales_low[g / 2] >> g % 2 * 4 & 15, high = b->scales_high >> 2 * g & 3;
        out->scales[g] = (int16_t)((low | high << 4) - 32);
        unpack_nibbles(b->qs + 16 * g, out->codes + 32 * g);
    }
}

static void pack_iq4_xs(const frit_unpacked_block *from, void *block)
{
    frit_block_iq4_xs *b = block;
    uint8_t codes[256];
    unsigned low = 0, high = 0;
    stored_codes(from, 256, 0, codes);
    for (int g = 0; g < 8; g++) {
        low |= (unsigned)((from->scales[g] + 32) & 15) << 4 * g;
        high |= (unsigned)((from->scales[g] + 32) >> 4) << 2 * g;
        frit_write_nibbles(codes + 32 * g, b->qs + 16 * g);
    }
    b->d = frit_float_to_half(from->d);
    b->scales_high = (uint16_t)high;
    for (int k = 0; k < 4; k++) b->scales_low[k] = (uint8_t)(low >> 8 * k);
}

// Rows of formats without scales, whose d may change.
#define CODES(type_, block_, group_, low_, high_, scale_low_, scale_high_, min_high_, levels_, name)                   \
    {                                                                                                                  \
        .type = FRIT_DTYPE_##type_, .block = block_, .group = group_, .low = low_, .high = high_,                      \
        .scale_low = scale_low_, .scale_high = scale_high_, .scale_step = 1, .min_high = min_high_, .levels = levels_, \
        .unit = 1, .unpack = unpack_##name, .pack = pack_##name                                                        \
    }
// Rows of formats with magnitudes up to high_ and scales 1, 3, .. 31.
#define GRID(type_, group_, high_, unit_, even_, name)                                                           \
    {                                                                                                            \
        .type = FRIT_DTYPE_##type_, .block = 256, .group = group_, .low = -high_, .high = high_, .scale_low = 1, \
        .scale_high = 31, .scale_step = 2, .unit = unit_, .is_grid = true, .even_signs = even_,                  \
        .grid = FRIT_GRID_##type_, .unpack = frit_unpack_##name, .pack = frit_pack_##name                        \
    }

// clang-format off
static const frit_block_format formats[] = {
    CODES(Q2_K,   256, 16,   0,  3,    0,  15, 15, NULL, q2_k),
    CODES(Q3_K,   256, 16,  -4,  3,  -32,  31,  0, NULL, q3_k),
    CODES(Q4_K,   256, 32,   0, 15,    0,  63, 63, NULL, q4_k),
    CODES(Q5_K,   256, 32,   0, 31,    0,  63, 63, NULL, q5_k),
    CODES(Q6_K,   256, 16, -32, 31, -128, 127,  0, NULL, q6_k),
    CODES(Q4_0,    32, 32,  -8,  7,    1,   1,  0, NULL, q4_0),
    CODES(Q4_1,    32, 32,   0, 15,    1,   1,  1, NULL, q4_1),
    CODES(Q5_0,    32, 32, -16, 15,    1,   1,  0, NULL, q5_0),
    CODES(Q5_1,    32, 32,   0, 31,    1,   1,  1, NULL, q5_1),
    CODES(IQ4_NL,  32, 32,   0, 15,    1,   1,  0, frit_iq4_levels, iq4_nl),
    CODES(IQ4_XS, 256, 32,   0, 15,  -32,  31,  0, frit_iq4_levels, iq4_xs),
    GRID(IQ2_XXS, 32, 43, 0.125f, true,  iq2_xxs),
    GRID(IQ2_XS,  16, 43, 0.125f, true,  iq2_xs),
    GRID(IQ2_S,   16, 43, 0.125f, false, iq2_s),
    GRID(IQ3_XXS, 32, 62, 0.25f,  true,  iq3_xxs),
    GRID(IQ3_S,   32, 15, 1,      false, iq3_s),
};
// clang-format on

const frit_block_format *frit_block_format_get(frit_dtype type)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].type == type) return &formats[i];
    return NULL;
}

// ------------------------------------------------------------------------------------- numbers

// Searches the levels, which are ascending.
int frit_block_format_nearest(const frit_block_format *format, float x)
{
    if (!format->levels) return frit_round_clamped(x, format->low, format->high);
    int code = format->low;
    while (code < format->high && 2 * x > (float)(format->levels[code] + format->levels[code + 1])) code++;
    return code;
}

float frit_block_format_scale(const frit_unpacked_block *block, int g)
{
    return block->d * (float)block->scales[g];
}

float frit_block_format_min(const frit_unpacked_block *block, int g)
{
    return block->dmin * (float)block->mins[g];
}

static float round_to_half(float x)
{
    return frit_half_to_float(frit_float_to_half(frit_clamp(x, -65504, 65504)));
}

float frit_block_format_nearest_d(const frit_block_format *format, float wanted)
{
    return format->unit * round_to_half(wanted / format->unit);
}

// The nearest of scale_low, scale_low + scale_step, ...
static int nearest_scale(const frit_block_format *format, float wanted)
{
    const int step = format->scale_step, low = format->scale_low;
    return low + step * frit_round_clamped((wanted - (float)low) / (float)step, 0, (format->scale_high - low) / step);
}

void frit_block_format_set_scale(const frit_block_format *format, frit_unpacked_block *block, int g, float wanted)
{
    if (format->scale_low == format->scale_high)
        block->d = frit_block_format_nearest_d(format, wanted);
    else if (block->d != 0)
        block->scales[g] = (int16_t)nearest_scale(format, wanted / block->d);
}

void frit_block_format_set_min(const frit_block_format *format, frit_unpacked_block *block, int g, float wanted)
{
    if (format->min_high == 1)
        block->dmin = round_to_half(wanted);
    else if (format->min_high > 0 && block->dmin != 0)
        block->mins[g] = (int16_t)frit_round_clamped(wanted / block->dmin, 0, format->min_high);
}
