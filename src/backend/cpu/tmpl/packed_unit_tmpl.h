// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_unit_tmpl.h: the first part of packed_tmpl.h: a unit of 32 columns, and its products with a
// few tokens, four columns at a time. The including file defines them:
//
//     DIRECT_TOKENS  the most for whom codes are not kept but multiplied as they are unpacked: 2 to 4
//     CHAINS         with one token: in how many sums products are added up that do not wait for each other, 1 or 2
//     GRAIN          tokens that are multiplied together where codes are kept
//     keep_order     the vector is computed before what is written after it
//     four_quads     what `dot` wants to read of a token's sixteen codes
//     dot            sum + the products of each word's four bytes, codes 0..127, times quad i of these, signed
//     dots_of        the same for n quads from the i-th on, which some add up as int16 first: AT_ONCE_16, _32 or _64 of
//                    codes below that; packed_dots_tmpl.h has it for all others, without LOW_CODES
//     pairs_of       products of quads before they become words; dot_16 makes words of such pairs, each multiplied by
//                    a number of 16 bits, and two_bytes such numbers of bytes: with LOW_CODES
//     *_wide         the same for codes 0..255 with 128 added: open_wide prepares codes, start_wide begins the sum
#include "backend/cpu/tmpl/packed_codes_tmpl.h"

enum {
    UNITS = 8,   // of 32 columns, unpacked together
    UNIT_SCALES = 2 * GRAIN + LOW_CODES,
};

// 32 columns of LANES rows, ready to be multiplied. Scales and mins are there for all of them, or for each half.
typedef struct unit {
    vec codes[8];
    vec_f scales[UNIT_SCALES];   // all only where `keep` makes more of two; with HALVES_BYTES the last is for both
    vec_f mins[2 * GRAIN];       // what the sum of the activations is multiplied by
} unit;

// How the columns of a unit share scales, what was added to the codes, and whether there are mins.
typedef enum kind {
    WHOLE_WIDE,      // one scale; 128 was added
    WHOLE_MINS,      // one scale, one min; codes are below 32
    WHOLE_LOW,       // the same, and codes are below 16; only with LOW_CODES
    HALVES_BIASED,   // a scale for 16 columns; 32 was added, and codes are below 64
    HALVES_WIDE,     // a scale for 16 columns; 64 was added, and codes are below 128
    HALVES_MINS,     // a scale and a min for 16 columns; codes are below 4; not with LOW_CODES
    HALVES_LOW,      // a scale for 16 columns; 4 was added, and codes are below 8; only with LOW_CODES
    HALVES_BYTES,    // as HALVES_MINS, only with LOW_CODES: scales and mins stay bytes (packed_bytes_tmpl.h)
    KIND_COUNT
} kind;

FRIT_INLINE bool is_used(kind k)
{
    return LOW_CODES ? k != HALVES_MINS : k != WHOLE_LOW && k != HALVES_LOW && k != HALVES_BYTES;
}

FRIT_INLINE kind with_mins(int bits)
{
    return LOW_CODES && bits <= 4 ? WHOLE_LOW : WHOLE_MINS;
}

FRIT_INLINE kind kind_32(type_32 type)
{
    return type.shift ? with_mins(type.bits) : WHOLE_WIDE;
}

FRIT_INLINE kind kind_256(type_256 type)
{
    if (type.group == 32) return type.bias ? WHOLE_WIDE : with_mins(type.bits);
    if (type.bias >= 32) return type.bias == 64 ? HALVES_WIDE : HALVES_BIASED;
    return type.bias ? HALVES_LOW : LOW_CODES ? HALVES_BYTES : HALVES_MINS;
}

FRIT_INLINE bool is_whole(kind k)
{
    return k == WHOLE_WIDE || k == WHOLE_MINS || k == WHOLE_LOW;
}

FRIT_INLINE bool has_min(kind k)   // one
{
    return k == WHOLE_MINS || k == WHOLE_LOW;
}

// How many quads are multiplied together.
FRIT_INLINE int quads_at_once(kind k)
{
    if (k == WHOLE_WIDE || k == HALVES_WIDE) return 1;
    if (k == HALVES_BIASED) return AT_ONCE_64;
    return k == WHOLE_LOW ? AT_ONCE_16 : AT_ONCE_32;
}

// Activations of a few tokens.
typedef struct rows {
    const uint8_t *x;   // of the first token
    size_t stride;
} rows;

FRIT_INLINE const frit_q8_line *token(rows r, int j)
{
    return (const void *)(r.x + (size_t)j * r.stride);
}

FRIT_INLINE vec start_dots(const frit_q8_line *line, kind k, int half)
{
    if (k == WHOLE_WIDE) return start_wide(&line->minus_128);
    if (has_min(k) || k == HALVES_MINS) return zero();
    const vec minus_32 = all_words(&line->minus_32[half]);
    return k == HALVES_LOW ? right_signed(minus_32, 3) : left(minus_32, k == HALVES_WIDE);
}

// dots[j] = start + codes of n_quads quads times token j's, in the whole unit or one half.
FRIT_INLINE void dot_quads(const vec *codes, kind k, int half, int n_quads, rows r, int n_x, vec *dots)
{
    const bool splits = n_x == 1 && CHAINS == 2;
    x_quads xs[MAX_TOKENS];
    vec other = zero();
    FRIT_UNROLL(16)
    for (int j = 0; j < n_x; j++) dots[j] = start_dots(token(r, j), k, half);
    FRIT_UNROLL(8)
    for (int q = 0; q < n_quads; q += quads_at_once(k)) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_x; j++) {
            vec *sum = splits && q % 2 ? &other : &dots[j];
            if (q % 4 == 0) xs[j] = four_quads(token(r, j)->codes + 16 * half + 4 * q);
            *sum = k == WHOLE_WIDE ? dot_wide(*sum, codes[q], xs[j], q % 4)
                                   : dots_of(*sum, codes + q, xs[j], q % 4, quads_at_once(k));
            if (n_x <= DIRECT_TOKENS) keep_order(sum);
        }
    }
    if (splits) dots[0] = add_words(dots[0], other);
}

// What a token's line multiplies, in all lanes.
typedef struct line_factors {
    vec_f scale, sums[2];   // of all columns, or of each half
} line_factors;

FRIT_INLINE line_factors factors_of(const frit_q8_line *line, kind k)
{
    line_factors f = {.scale = all_f(line->scale)};
    if (has_min(k)) f.sums[0] = all_f(line->sum);
    for (int i = 0; k == HALVES_MINS && i < 2; i++) f.sums[i] = all_f(line->sums_16[i]);
    return f;
}

// sum + what a unit's dots are worth for a token; dots of halves come with the first half's times its scale.
FRIT_INLINE vec_f add_dots(const unit *u, kind k, vec_f first_half, vec dots, line_factors f, vec_f sum)
{
    if (is_whole(k))
        sum = mul_add(mul(to_float(dots), f.scale), u->scales[0], sum);
    else
        sum = mul_add(mul_add(to_float(dots), u->scales[1], first_half), f.scale, sum);
    if (has_min(k)) sum = mul_add(u->mins[0], f.sums[0], sum);
    for (int i = 0; k == HALVES_MINS && i < 2; i++) sum = mul_add(u->mins[i], f.sums[i], sum);
    return sum;
}

#include "backend/cpu/tmpl/packed_bytes_tmpl.h"

FRIT_INLINE void add_unit(const unit *u, kind k, rows r, int n_x, vec_f *sums)
{
    if (k == HALVES_BYTES) {
        add_bytes_unit(u, r, n_x, sums);
        return;
    }
    vec dots[MAX_TOKENS];
    vec_f first_half[MAX_TOKENS];
    dot_quads(u->codes, k, 0, is_whole(k) ? 8 : 4, r, n_x, dots);
    if (!is_whole(k)) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_x; j++) first_half[j] = mul(to_float(dots[j]), u->scales[0]);
        dot_quads(u->codes + 4, k, 1, 4, r, n_x, dots);
    }
    FRIT_UNROLL(16)
    for (int j = 0; j < n_x; j++)
        sums[j] = add_dots(u, k, is_whole(k) ? zero_f() : first_half[j], dots[j], factors_of(token(r, j), k), sums[j]);
}

// ------------------------------------------------------------------------------- what comes next

// Weights on their way to the cache: the next 256 columns of n panels, in parts of a unit's bytes, one of each panel by
// turns. Memory gives all of these streams at once much faster than one after the other; each unit that is multiplied
// brings one part, so that they never queue up before the products that wait for nothing.
typedef struct ahead {
    uintptr_t at, end;        // the next part; where one more than the last panel's would be
    size_t stride, n_bytes;   // from panel to panel, of all of them
    size_t part_bytes;
} ahead;

FRIT_INLINE ahead parts_ahead(uintptr_t first, size_t stride, int64_t n, size_t part_bytes)
{
    return (ahead){first, first + (size_t)n * stride, stride, (size_t)n * stride, part_bytes};
}

enum { FEW_BYTES = 160 };   // of a part, up to which its requests are written out: of larger ones memory gets slower

// As many lines for each part, whichever they begin in: a loop that runs now twice, now once, is not foreseen.
// `part_bytes` is a constant where units are multiplied as they are unpacked (docs/log/products.md).
FRIT_INLINE void bring(ahead *a, size_t part_bytes)
{
    const size_t n_bytes = part_bytes > FEW_BYTES ? a->part_bytes : part_bytes;
    for (size_t i = 0; i < n_bytes; i += 64) prefetch((const uint8_t *)(a->at + i));
    a->at += a->stride;
    if (a->at != a->end) return;
    a->at += part_bytes - a->n_bytes;
    a->end += part_bytes;
}
