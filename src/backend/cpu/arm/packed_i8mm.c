// SPDX-License-Identifier: MIT
// Products of packed weights with the matrix products of ARMv8.6, for more tokens than two. SMMLA multiplies eight
// columns of two rows by the same of two tokens; a register of sums holds
//
//     row 0, token 0 | row 0, token 1 | row 1, token 0 | row 1, token 1
//
// So two quads of four rows are kept as eight columns of rows 0 and 1, then of 2 and 3, with scales that fit the sums,
// and the activations of two tokens as pairs of eight columns; the last one of an odd number is beside itself.
#include "backend/cpu/arm/dot_dotprod.h"

enum { MAX_TOKENS = 8, MAX_TOKENS_HALVES = 6, BLOCK_SUMS = 768, GRAIN = 2, DIRECT_TOKENS = 2, CHAINS = 1 };

static const char isa[] = "i8mm";

#include "backend/cpu/tmpl/packed_unit_tmpl.h"

enum { STRIPS = 1, PAIRS_ONLY_IN_ORDER = true };

FRIT_INLINE int pair_tokens(kind k)
{
    (void)k;
    return 0;
}

enum { KEPT_UNITS = 8, KEPT_PAIRS = 48 };   // of 256 columns, of the tokens of a block

// Two of frit_q8_line.
typedef struct pair {
    int8_t codes[4][2][8];
    float scale[2], sum[2], sums_16[2][2];
    int32_t minus_32[2][2];
} pair;

typedef struct kept_room {
    pair pairs[KEPT_PAIRS][KEPT_UNITS];
} kept_room;

typedef const pair (*kept_rows)[KEPT_UNITS];

// Of two halves that have factors of their own, or of one: those of rows 0 and 1, of rows 2 and 3, and so on.
FRIT_INLINE void keep_factors(vec_f factors[4], bool halves)
{
    const vec_f first = factors[0], second = factors[halves];
    factors[0] = vzip1q_f32(first, first);
    factors[1] = vzip2q_f32(first, first);
    if (!halves) return;
    factors[2] = vzip1q_f32(second, second);
    factors[3] = vzip2q_f32(second, second);
}

FRIT_INLINE void keep(unit *u, kind k)
{
    const bool halves = k != WHOLE_WIDE && k != WHOLE_MINS;
    FRIT_UNROLL(4)
    for (int q = 0; q < 8; q += 2) {
        const vec first = u->codes[q], second = u->codes[q + 1];
        u->codes[q] = vzip1q_u32(first, second);
        u->codes[q + 1] = vzip2q_u32(first, second);
    }
    keep_factors(u->scales, halves);
    if (k == WHOLE_MINS || k == HALVES_MINS) keep_factors(u->mins, halves);
}

static void keep_pair(const frit_q8_line *a, const frit_q8_line *b, pair *to)
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

static kept_rows keep_rows(kept_room *room, rows r, int64_t n_x, int n_units)
{
    for (int64_t j = 0; j < n_x; j += 2) {
        const frit_q8_line *a = token(r, (int)j), *b = j + 1 < n_x ? token(r, (int)j + 1) : a;
        for (int i = 0; i < n_units; i++) keep_pair(a + i, b + i, &room->pairs[j / 2][i]);
    }
    return room->pairs;
}

FRIT_INLINE kept_rows kept_from(kept_rows r, int64_t j)   // token j and those after it
{
    return r + j / 2;
}

FRIT_INLINE vec_f twice(const float two[2])   // first, second, first, second
{
    const float32x2_t both = vld1_f32(two);
    return vcombine_f32(both, both);
}

FRIT_INLINE int32x4_t twice_whole(const int32_t two[2])
{
    const int32x2_t both = vld1_s32(two);
    return vcombine_s32(both, both);
}

FRIT_INLINE int32x4_t start_pairs(const pair *p, kind k, int half)
{
    if (k != HALVES_BIASED && k != HALVES_WIDE) return vdupq_n_s32(0);
    const int32x4_t start = twice_whole(p->minus_32[half]);
    return k == HALVES_WIDE ? vaddq_s32(start, start) : start;
}

// dots[j] = start + eights [begin, end) of columns of a pair of rows times a pair of tokens, as sums[j] lie.
FRIT_INLINE void dot_pairs(const unit *u, kind k, int begin, int end, kept_rows x, int i, int n_sums, int32x4_t *dots)
{
    FRIT_UNROLL(16)
    for (int j = 0; j < n_sums; j++) dots[j] = start_pairs(&x[j / 2][i], k, begin / 2);
    FRIT_UNROLL(4)
    for (int e = begin; e < end; e++) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_sums; j++)
            dots[j] = vmmlaq_s32(dots[j], signed_bytes(u->codes[2 * e + j % 2]), vld1q_s8(x[j / 2][i].codes[e][0]));
    }
}

FRIT_INLINE void add_pairs(const unit *u, kind k, kept_rows x, int i, int n_sums, vec_f *sums)
{
    const bool whole = k == WHOLE_WIDE || k == WHOLE_MINS;
    int32x4_t dots[MAX_TOKENS];
    vec_f parts[MAX_TOKENS];
    dot_pairs(u, k, 0, whole ? 4 : 2, x, i, n_sums, dots);
    if (!whole) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_sums; j++) parts[j] = mul(vcvtq_f32_s32(dots[j]), u->scales[j % 2]);
        dot_pairs(u, k, 2, 4, x, i, n_sums, dots);
    }
    FRIT_UNROLL(16)
    for (int j = 0; j < n_sums; j++) {
        const pair *p = &x[j / 2][i];
        const vec_f dot = vcvtq_f32_s32(dots[j]), scale = twice(p->scale);
        if (whole)
            sums[j] = mul_add(mul(dot, scale), u->scales[j % 2], sums[j]);
        else
            sums[j] = mul_add(mul_add(dot, u->scales[2 + j % 2], parts[j]), scale, sums[j]);
        if (k == WHOLE_MINS) sums[j] = mul_add(u->mins[j % 2], twice(p->sum), sums[j]);
        for (int h = 0; k == HALVES_MINS && h < 2; h++)
            sums[j] = mul_add(u->mins[2 * h + j % 2], twice(p->sums_16[h]), sums[j]);
    }
}

// Adds the products of 256 columns and n_x tokens to their sums; n_x is a constant where this is inlined. `next` may
// be NULL.
FRIT_INLINE void tile(const unit *u, kind k, int n_strips, int n_units, kept_rows x, int n_x, vec_f *totals,
                      ahead *next)
{
    (void)n_strips;
    const int n_sums = (n_x + 1) / 2 * 2;
    vec_f sums[MAX_TOKENS];
    for (int j = 0; j < n_sums; j++) sums[j] = totals[j];
    for (int i = 0; i < n_units; i++) {
        if (next) bring(next, next->part_bytes);
        add_pairs(&u[i], k, x, i, n_sums, sums);
    }
    for (int j = 0; j < n_sums; j++) totals[j] = sums[j];
}

FRIT_INLINE void settle(vec_f *sums, int64_t n_x)
{
    for (int64_t j = 0; j < n_x; j += 2) {
        const vec_f low = sums[j], high = sums[j + 1];
        sums[j] = vuzp1q_f32(low, high);
        sums[j + 1] = vuzp2q_f32(low, high);
    }
}

#include "backend/cpu/tmpl/packed_rows.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

_Static_assert((int)KEPT_UNITS == (int)UNITS, "room for the units of a block");
_Static_assert(2 * (int)KEPT_PAIRS == (int)BLOCK_TOKENS, "and for its tokens");

void frit_install_i8mm(frit_kernels *k)
{
    install(k);
}
