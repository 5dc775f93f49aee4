// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_unit_tmpl.h: a part of packed_tmpl.h: a unit of 32 columns and its products with a few
// tokens, four columns at a time.
#if !defined TOKEN_GROUP || !defined DIRECT_TOKENS || !defined ACCUMULATORS
#error "TOKEN_GROUP, DIRECT_TOKENS and ACCUMULATORS: see the table of packed_tmpl.h"
#endif
#if !defined MAX_TOKENS || !defined MAX_TOKENS_G16
#error "MAX_TOKENS and MAX_TOKENS_G16: see the table of packed_tmpl.h"
#endif
#if !defined QUADS_4BIT || !defined QUADS_5BIT || !defined QUADS_6BIT
#error "QUADS_4BIT, QUADS_5BIT and QUADS_6BIT: see the table of packed_tmpl.h"
#endif
#include "backend/cpu/tmpl/packed_codes_tmpl.h"

enum {
    UNITS = 8,   // units of 32 columns that are unpacked together
    UNIT_SCALES = 2 * TOKEN_GROUP + INT16_SUMS,
};

// 32 columns of LANES rows, ready to be multiplied, with one scale and min for all columns or for each 16.
typedef struct unit {
    vec codes[8];
    vec_f scales[UNIT_SCALES];     // G16_BYTE_SCALES: the last one is the factor of the byte scales
    vec_f mins[2 * TOKEN_GROUP];   // factors of the sums of the activations
} unit;

// The scales of the columns of a unit, the bias of the codes, and the mins.
typedef enum kind {
    G32_INT8,          // one scale; 8-bit codes (BIASED)
    G32_MINS,          // one scale and one min; codes below 32
    G32_MINS_4BIT,     // one scale and one min; codes below 16; only with INT16_SUMS
    G16_BIAS_32,       // a scale for each 16 columns; 32 was added to the codes, which are below 64
    G16_BIAS_64,       // a scale for each 16 columns; 64 was added to the codes, which are below 128
    G16_MINS,          // a scale and a min for each 16 columns; codes below 4; only without INT16_SUMS
    G16_BIAS_4,        // a scale for each 16 columns; 4 was added to the codes, which are below 8; only with INT16_SUMS
    G16_BYTE_SCALES,   // as G16_MINS with INT16_SUMS: scales and mins stay bytes (packed_bytes_tmpl.h)
    KIND_COUNT
} kind;

FRIT_INLINE bool is_used(kind k)
{
    return INT16_SUMS ? k != G16_MINS : k != G32_MINS_4BIT && k != G16_BIAS_4 && k != G16_BYTE_SCALES;
}

FRIT_INLINE kind with_mins(int bits)
{
    return INT16_SUMS && bits <= 4 ? G32_MINS_4BIT : G32_MINS;
}

FRIT_INLINE kind kind_32(type_32 type)
{
    return type.shift ? with_mins(type.bits) : G32_INT8;
}

FRIT_INLINE kind kind_256(type_256 type)
{
    if (type.group == 32) return type.bias ? G32_INT8 : with_mins(type.bits);
    if (type.bias >= 32) return type.bias == 64 ? G16_BIAS_64 : G16_BIAS_32;
    return type.bias ? G16_BIAS_4 : INT16_SUMS ? G16_BYTE_SCALES : G16_MINS;
}

FRIT_INLINE bool has_one_scale(kind k)
{
    return k == G32_INT8 || k == G32_MINS || k == G32_MINS_4BIT;
}

FRIT_INLINE bool has_min(kind k)   // one for all 32 columns
{
    return k == G32_MINS || k == G32_MINS_4BIT;
}

// Number of quads whose products are added as int16.
FRIT_INLINE int quads_at_once(kind k)
{
    if (k == G32_INT8 || k == G16_BIAS_64) return 1;
    if (k == G16_BIAS_32) return QUADS_6BIT;
    return k == G32_MINS_4BIT ? QUADS_4BIT : QUADS_5BIT;
}

// Activations of a few tokens.
typedef struct rows {
    const uint8_t *x;   // lines of the first token
    size_t stride;
} rows;

FRIT_INLINE const frit_q8_line *token(rows r, int j)
{
    return (const void *)(r.x + (size_t)j * r.stride);
}

FRIT_INLINE vec start_dots(const frit_q8_line *line, kind k, int group)
{
    if (k == G32_INT8) return start_int8(&line->minus_128);
    if (has_min(k) || k == G16_MINS) return zero();
    const vec minus_32 = broadcast_word(&line->minus_32[group]);
    return k == G16_BIAS_4 ? shift_right_signed(minus_32, 3) : shift_left(minus_32, k == G16_BIAS_64);
}

// dots[j] = start + the products of n_quads quads of codes with token j: 8 quads of the unit, or 4 of one `group`.
FRIT_INLINE void dot_quads(const vec *codes, kind k, int group, int n_quads, rows r, int n_x, vec *dots)
{
    const bool splits = n_x == 1 && ACCUMULATORS == 2;
    x_quads xs[MAX_TOKENS];
    vec other = zero();
    FRIT_UNROLL(16)
    for (int j = 0; j < n_x; j++) dots[j] = start_dots(token(r, j), k, group);
    FRIT_UNROLL(8)
    for (int q = 0; q < n_quads; q += quads_at_once(k)) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_x; j++) {
            vec *sum = splits && q % 2 ? &other : &dots[j];
            if (q % 4 == 0) xs[j] = four_quads(token(r, j)->codes + 16 * group + 4 * q);
            *sum = k == G32_INT8 ? dot_int8(*sum, codes[q], xs[j], q % 4)
                                 : dots_of(*sum, codes + q, xs[j], q % 4, quads_at_once(k));
            if (n_x <= DIRECT_TOKENS) keep_order(sum);
        }
    }
    if (splits) dots[0] = add_words(dots[0], other);
}

// The factors of a token's line, in all lanes.
typedef struct line_factors {
    vec_f scale, sums[2];   // sums of the activations: of all columns in [0], or of each 16
} line_factors;

FRIT_INLINE line_factors factors_of(const frit_q8_line *line, kind k)
{
    line_factors f = {.scale = splat_f(line->scale)};
    if (has_min(k)) f.sums[0] = splat_f(line->sum);
    for (int i = 0; k == G16_MINS && i < 2; i++) f.sums[i] = splat_f(line->sums_16[i]);
    return f;
}

// sum + a unit's product with a token. With two groups, `dots` is of the second, and `first_group` is the first one's
// dots times its scale.
FRIT_INLINE vec_f add_dots(const unit *u, kind k, vec_f first_group, vec dots, line_factors f, vec_f sum)
{
    if (has_one_scale(k))
        sum = mul_add(mul(to_float(dots), f.scale), u->scales[0], sum);
    else
        sum = mul_add(mul_add(to_float(dots), u->scales[1], first_group), f.scale, sum);
    if (has_min(k)) sum = mul_add(u->mins[0], f.sums[0], sum);
    for (int i = 0; k == G16_MINS && i < 2; i++) sum = mul_add(u->mins[i], f.sums[i], sum);
    return sum;
}

#include "backend/cpu/tmpl/packed_bytes_tmpl.h"

FRIT_INLINE void add_unit(const unit *u, kind k, rows r, int n_x, vec_f *sums)
{
    if (k == G16_BYTE_SCALES) {
        add_bytes_unit(u, r, n_x, sums);
        return;
    }
    vec dots[MAX_TOKENS];
    vec_f first_group[MAX_TOKENS];
    dot_quads(u->codes, k, 0, has_one_scale(k) ? 8 : 4, r, n_x, dots);
    if (!has_one_scale(k)) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_x; j++) first_group[j] = mul(to_float(dots[j]), u->scales[0]);
        dot_quads(u->codes + 4, k, 1, 4, r, n_x, dots);
    }
    FRIT_UNROLL(16)
    for (int j = 0; j < n_x; j++)
        sums[j] =
            add_dots(u, k, has_one_scale(k) ? zero_f() : first_group[j], dots[j], factors_of(token(r, j), k), sums[j]);
}

// ------------------------------------------------------------------------------- prefetching

// The weights to prefetch: the next 256 columns of n panels, in parts of a unit's bytes, interleaved: one part of each
// panel, then the next part of each. Memory is much faster at reading all panels at once than one after the other. Each
// unit that is multiplied prefetches one part, so requests never queue up.
typedef struct prefetch_plan {
    uintptr_t at, end;        // the next part, and its address in the panel after the last
    size_t stride, n_bytes;   // bytes from panel to panel, and of all panels
    size_t part_bytes;
} prefetch_plan;

FRIT_INLINE prefetch_plan make_prefetch_plan(uintptr_t first, size_t stride, int64_t n, size_t part_bytes)
{
    return (prefetch_plan){first, first + (size_t)n * stride, stride, (size_t)n * stride, part_bytes};
}

enum { UNROLLED_PREFETCH = 160 };   // bytes: loops over larger parts are not unrolled, which would slow memory down

// Prefetches a fixed number of lines for each part: a loop with a varying count mispredicts. `part_bytes` is a constant
// where units are multiplied as they are unpacked (docs/log/products.md).
FRIT_INLINE void prefetch_next(prefetch_plan *a, size_t part_bytes)
{
    const size_t n_bytes = part_bytes > UNROLLED_PREFETCH ? a->part_bytes : part_bytes;
    for (size_t i = 0; i < n_bytes; i += 64) prefetch((const uint8_t *)(a->at + i));
    a->at += a->stride;
    if (a->at != a->end) return;
    a->at += part_bytes - a->n_bytes;
    a->end += part_bytes;
}
