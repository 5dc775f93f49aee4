// SPDX-License-Identifier: MIT
// Products of packed weights with the matrix products of ARMv8.6, for three tokens and more. SMMLA multiplies eight
// columns of two rows by eight columns of two tokens. A register of sums holds
//
//     row 0, token 0 | row 0, token 1 | row 1, token 0 | row 1, token 1
//
// Two quads of four rows are therefore rearranged to eight columns of rows 0 and 1, then of rows 2 and 3, with scales
// in the order of the sums. Activations are interleaved by pairs of tokens; the last token of an odd number is paired
// with itself.
#include "backend/cpu/arm/dot_dotprod.h"

#define MAX_TOKENS     8
#define MAX_TOKENS_G16 6
#define BLOCK_SUMS     768
#define TOKEN_GROUP    2
#define DIRECT_TOKENS  2
#define ACCUMULATORS   1

static const char isa[] = "i8mm";

#include "backend/cpu/tmpl/packed_unit_tmpl.h"

#define TILE_STRIPS         1
#define PAIRS_ONLY_IN_ORDER 1

FRIT_INLINE int pair_tokens(kind k)
{
    (void)k;
    return 0;
}

enum { PAIR_UNITS = 8, MAX_PAIRS = 48 };   // units of 256 columns; pairs of tokens of a block

// The frit_q8_line of two tokens, interleaved.
typedef struct pair {
    int8_t codes[4][2][8];
    float scale[2], sum[2], sums_16[2][2];
    int32_t minus_32[2][2];
} pair;

typedef struct tile_buffer {
    pair pairs[MAX_PAIRS][PAIR_UNITS];
} tile_buffer;

typedef const pair (*tile_input)[PAIR_UNITS];

// Rearranges the factors of one or two groups of columns in the order of the sums: rows 0 and 1, then rows 2 and 3.
FRIT_INLINE void interleave_factors(vec_f factors[4], bool has_two)
{
    const vec_f first = factors[0], second = factors[has_two];
    factors[0] = vzip1q_f32(first, first);
    factors[1] = vzip2q_f32(first, first);
    if (!has_two) return;
    factors[2] = vzip1q_f32(second, second);
    factors[3] = vzip2q_f32(second, second);
}

FRIT_INLINE void arrange_unit(unit *u, kind k)
{
    const bool has_two = k != G32_INT8 && k != G32_MINS;
    FRIT_UNROLL(4)
    for (int q = 0; q < 8; q += 2) {
        const vec first = u->codes[q], second = u->codes[q + 1];
        u->codes[q] = vzip1q_u32(first, second);
        u->codes[q + 1] = vzip2q_u32(first, second);
    }
    interleave_factors(u->scales, has_two);
    if (k == G32_MINS || k == G16_MINS) interleave_factors(u->mins, has_two);
}

static void interleave_tokens(const frit_q8_line *a, const frit_q8_line *b, pair *to)
{
    for (int i = 0; i < 2; i++) {
        const int64x2_t x = vreinterpretq_s64_s8(vld1q_s8(a->codes + 16 * i));
        const int64x2_t y = vreinterpretq_s64_s8(vld1q_s8(b->codes + 16 * i));
        vst1q_s8(to->codes[2 * i][0], vreinterpretq_s8_s64(vzip1q_s64(x, y)));
        vst1q_s8(to->codes[2 * i + 1][0], vreinterpretq_s8_s64(vzip2q_s64(x, y)));
        to->sums_16[i][0] = a->sums_16[i];
        to->sums_16[i][1] = b->sums_16[i];
        to->minus_32[i][0] = a->minus_32[i];
        to->minus_32[i][1] = b->minus_32[i];
    }
    to->scale[0] = a->scale;
    to->scale[1] = b->scale;
    to->sum[0] = a->sum;
    to->sum[1] = b->sum;
}

static tile_input arrange_tokens(tile_buffer *buffer, rows r, int64_t n_x, int n_units)
{
    for (int64_t j = 0; j < n_x; j += 2) {
        const frit_q8_line *a = token(r, (int)j), *b = j + 1 < n_x ? token(r, (int)j + 1) : a;
        for (int i = 0; i < n_units; i++) interleave_tokens(a + i, b + i, &buffer->pairs[j / 2][i]);
    }
    return buffer->pairs;
}

FRIT_INLINE tile_input input_from(tile_input r, int64_t j)
{
    return r + j / 2;
}

FRIT_INLINE vec_f twice(const float two[2])   // first, second, first, second
{
    const float32x2_t pair_f = vld1_f32(two);
    return vcombine_f32(pair_f, pair_f);
}

FRIT_INLINE int32x4_t twice_int(const int32_t two[2])
{
    const int32x2_t pair_i = vld1_s32(two);
    return vcombine_s32(pair_i, pair_i);
}

FRIT_INLINE int32x4_t start_pair_dots(const pair *p, kind k, int group)
{
    if (k != G16_BIAS_32 && k != G16_BIAS_64) return vdupq_n_s32(0);
    const int32x4_t start = twice_int(p->minus_32[group]);
    return k == G16_BIAS_64 ? vaddq_s32(start, start) : start;
}

// dots[j] = start + the products of column groups [begin, end) of eight, for two rows and two tokens.
FRIT_INLINE void dot_pairs(const unit *u, kind k, int begin, int end, tile_input x, int i, int n_sums, int32x4_t *dots)
{
    FRIT_UNROLL(16)
    for (int j = 0; j < n_sums; j++) dots[j] = start_pair_dots(&x[j / 2][i], k, begin / 2);
    FRIT_UNROLL(4)
    for (int e = begin; e < end; e++) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_sums; j++)
            dots[j] = vmmlaq_s32(dots[j], signed_bytes(u->codes[2 * e + j % 2]), vld1q_s8(x[j / 2][i].codes[e][0]));
    }
}

FRIT_INLINE void add_pairs(const unit *u, kind k, tile_input x, int i, int n_sums, vec_f *sums)
{
    const bool one_scale = k == G32_INT8 || k == G32_MINS;
    int32x4_t dots[MAX_TOKENS];
    vec_f parts[MAX_TOKENS];
    dot_pairs(u, k, 0, one_scale ? 4 : 2, x, i, n_sums, dots);
    if (!one_scale) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_sums; j++) parts[j] = mul(vcvtq_f32_s32(dots[j]), u->scales[j % 2]);
        dot_pairs(u, k, 2, 4, x, i, n_sums, dots);
    }
    FRIT_UNROLL(16)
    for (int j = 0; j < n_sums; j++) {
        const pair *p = &x[j / 2][i];
        const vec_f dot = vcvtq_f32_s32(dots[j]), scale = twice(p->scale);
        if (one_scale)
            sums[j] = mul_add(mul(dot, scale), u->scales[j % 2], sums[j]);
        else
            sums[j] = mul_add(mul_add(dot, u->scales[2 + j % 2], parts[j]), scale, sums[j]);
        if (k == G32_MINS) sums[j] = mul_add(u->mins[j % 2], twice(p->sum), sums[j]);
        for (int h = 0; k == G16_MINS && h < 2; h++)
            sums[j] = mul_add(u->mins[2 * h + j % 2], twice(p->sums_16[h]), sums[j]);
    }
}

// Adds the products of 256 columns and n_x tokens to their sums. n_x is a constant where this is inlined. `next` may
// be NULL.
FRIT_INLINE void tile(const unit *u, kind k, int n_strips, int n_units, tile_input x, int n_x, vec_f *totals,
                      prefetch_plan *next)
{
    (void)n_strips;
    const int n_sums = (n_x + 1) / 2 * 2;
    vec_f sums[MAX_TOKENS];
    for (int j = 0; j < n_sums; j++) sums[j] = totals[j];
    for (int i = 0; i < n_units; i++) {
        if (next) prefetch_next(next, next->part_bytes);
        add_pairs(&u[i], k, x, i, n_sums, sums);
    }
    for (int j = 0; j < n_sums; j++) totals[j] = sums[j];
}

FRIT_INLINE void deinterleave_sums(vec_f *sums, int64_t n_x)
{
    for (int64_t j = 0; j < n_x; j += 2) {
        const vec_f low = sums[j], high = sums[j + 1];
        sums[j] = vuzp1q_f32(low, high);
        sums[j + 1] = vuzp2q_f32(low, high);
    }
}

#include "backend/cpu/tmpl/packed_types.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

_Static_assert((int)PAIR_UNITS == (int)UNITS, "PAIR_UNITS is the number of units of 256 columns");
_Static_assert(2 * (int)MAX_PAIRS == (int)BLOCK_TOKENS, "MAX_PAIRS is the number of pairs of tokens of a block");

void frit_install_i8mm(frit_kernels *k)
{
    install(k);
}
