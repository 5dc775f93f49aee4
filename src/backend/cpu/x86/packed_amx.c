// SPDX-License-Identifier: MIT
// Products of packed weights in AMX tiles.
//
// A panel holds words of 16 rows, as a tile does, so unpacking needs no shuffles: a register of codes, which is four
// columns of 16 rows, becomes two rows of a tile.
#include "backend/cpu/x86/tiles_amx.h"
#include "backend/cpu/x86/vec/vec_avx512vnni.h"

#include "backend/cpu/tmpl/packed_word_sums.h"

#include "backend/cpu/tmpl/packed_codes_tmpl.h"
#include "backend/cpu/x86/indexed_avx512vbmi_tmpl.h"

static const char isa[] = "amx";

// scale * code + shift for codes 0..255. Codes become floats without a conversion, as mantissa bits of 128 + code / 2.
typedef struct line {
    vec_f twice_scale, shift;
} line;

FRIT_INLINE line make_line(vec_f scale, vec_f shift)
{
    return (line){_mm512_add_ps(scale, scale), mul_sub_from(scale, splat_f(256), shift)};
}

FRIT_INLINE vec code_to_float(vec shifted_codes, line l)
{
    const vec biased = _mm512_ternarylogic_epi32(shifted_codes, splat_words(0x007f8000), splat_words(0x43000000), 0xea);
    return _mm512_castps_si512(mul_add(as_float(biased), l.twice_scale, l.shift));
}

// Both numbers rounded to bf16; `first` is in the lower 16 bits.
FRIT_INLINE vec round_pair(vec first, vec second)
{
    const vec round = splat_words(0x8000);
    return masked_or(shift_right(_mm512_add_epi32(first, round), 16), _mm512_add_epi32(second, round),
                     splat_words((int)0xffff0000));
}

FRIT_INLINE void put_quad(vec codes, line l, uint8_t *tile)   // two rows of the tile
{
    _mm512_storeu_si512(tile,
                        round_pair(code_to_float(shift_left(codes, 15), l), code_to_float(shift_left(codes, 7), l)));
    _mm512_storeu_si512(tile + 64,
                        round_pair(code_to_float(shift_right(codes, 1), l), code_to_float(shift_right(codes, 9), l)));
}

FRIT_INLINE vec byte_up(vec codes, int i)   // byte i of each word, shifted to the bits that `number` reads
{
    return i < 2 ? shift_left(codes, 15 - 8 * i) : shift_right(codes, 8 * i - 15);
}

// For FRIT_FORM_Q8_TRANSPOSED: quad c has column c of each of the unit's four spans of eight columns.
FRIT_INLINE void put_transposed(const vec *codes, line l, uint8_t *tile)
{
    FRIT_UNROLL(4)
    for (int span = 0; span < 4; span++) {
        FRIT_UNROLL(4)
        for (int k = 0; k < 4; k++)
            _mm512_storeu_si512(tile + 64 * (4 * span + k),
                                round_pair(code_to_float(byte_up(codes[2 * k], span), l),
                                           code_to_float(byte_up(codes[2 * k + 1], span), l)));
    }
}

FRIT_INLINE block_at block_of(const uint8_t *panel, int64_t i, int n_words, int rest_bytes)
{
    const uint8_t *words = panel + i * (64 * n_words + FRIT_PANEL_ROWS * rest_bytes);
    return (block_at){words, words + 64 * n_words};
}

FRIT_INLINE void fill_32(type_32 type, const frit_product *p, int64_t row, int64_t first, int64_t n, uint8_t *steps,
                         const block *m)
{
    const uint8_t *panel = p->w + (size_t)(row / FRIT_PANEL_ROWS) * p->w_stride;
    const int columns = 32 * type.units;
    int64_t step = 0;
    for (int64_t i = first / columns; i < (first + n) / columns; i++) {
        const block_at b = block_of(panel, i, type.n_words, type.rest_bytes);
        const vec_f scale = type.scale(b);
        const line l = make_line(scale, type.shift ? type.shift(b) : mul(scale, splat_f(-128)));
        FRIT_UNROLL(4)
        for (int unit = 0; unit < type.units; unit++, step++) {
            FRIT_UNROLL(8)
            for (int q = 0; q < 8; q++) put_quad(type.codes(b, 8 * unit + q), l, steps + step * STEP_BYTES + q * 128);
            after_step(m, step, 1);
        }
    }
}

FRIT_INLINE line line_256(type_256 type, const scales_256 *s, int g)
{
    const vec_f scale = mul(to_float(type.scale(s, g)), s->d);
    vec_f shift = zero_f();
    if (type.bias) shift = mul(scale, splat_f(-(float)type.bias));
    if (type.min) shift = mul_sub_from(to_float(type.min(s, g)), s->d_min, shift);
    return make_line(scale, shift);
}

FRIT_INLINE void fill_256(type_256 type, bool transposed, const frit_product *p, int64_t row, int64_t first, int64_t n,
                          uint8_t *steps, const block *m)
{
    const uint8_t *panel = p->w + (size_t)(row / FRIT_PANEL_ROWS) * p->w_stride;
    const int n_groups = 32 / type.group;
    for (int64_t i = first / 256, step = 0; i < (first + n) / 256; i++, step += 8, steps += 8 * STEP_BYTES) {
        const block_at b = block_of(panel, i, type.n_words, type.rest_bytes);
        const scales_256 scales = type.scales(b);
        vec carry[CARRIED];
        FRIT_UNROLL(8)
        for (int unit = 0; unit < 8; unit++) {
            vec codes[8];
            type.unpack(b, unit, carry, codes);
            if (transposed) put_transposed(codes, line_256(type, &scales, unit), steps + unit * STEP_BYTES);
            FRIT_UNROLL(2)
            for (int g = 0; !transposed && g < n_groups; g++) {
                const line l = line_256(type, &scales, unit * n_groups + g);
                FRIT_UNROLL(8)
                for (int q = g * 8 / n_groups; q < (g + 1) * 8 / n_groups; q++)
                    put_quad(codes[q], l, steps + unit * STEP_BYTES + q * 128);
            }
            after_step(m, step + unit, 1);
        }
    }
}

#define PACKED_32(name, dtype, at, words, rest_at, rest, recode, from, to, units, bits, scale_fn, shift_fn)         \
    static void fill_##name(const frit_product *p, int64_t row, int64_t first, int64_t n, uint8_t *steps,           \
                            const block *m)                                                                         \
    {                                                                                                               \
        fill_32((type_32){words, rest, units, bits, codes_##name, scale_fn, shift_fn}, p, row, first, n, steps, m); \
    }                                                                                                               \
    PRODUCT(name)

#define FILL_256(transposed, name, dtype, at, words, rest_at, rest, recode, from, to, group, bits, bias, scales_fn, \
                 scale_fn, min_fn)                                                                                  \
    static void fill_##name(const frit_product *p, int64_t row, int64_t first, int64_t n, uint8_t *steps,           \
                            const block *m)                                                                         \
    {                                                                                                               \
        const type_256 type = {words, rest, group, bits, bias, unpack_##name, scales_fn, scale_fn, min_fn};         \
        fill_256(type, transposed, p, row, first, n, steps, m);                                                     \
    }                                                                                                               \
    PRODUCT(name)

#define PACKED_256(...)     FILL_256(false, __VA_ARGS__)
#define TRANSPOSED_256(...) FILL_256(true, __VA_ARGS__)

#define PRODUCT(name)                                 \
    static void product_##name(const frit_product *p) \
    {                                                 \
        product_in_tiles(p, fill_##name, 1, true);    \
    }

#include "backend/cpu/pack/packed.def"
#include "backend/cpu/pack/packed_indexed.def"
#undef PACKED_32
#undef PACKED_256
#undef TRANSPOSED_256

void frit_install_amx(frit_kernels *k)
{
    frit_install_amx_attend(k);
#define PACKED_32(name, dtype, ...) \
    k->packed[FRIT_DTYPE_##dtype] = \
        (frit_product_kernel){product_##name, FRIT_FORM_BF16_TILES, isa, LAYOUT(FRIT_DTYPE_##dtype)};
#define PACKED_256     PACKED_32
#define TRANSPOSED_256 PACKED_32
#define LAYOUT         frit_interleave_get
#include "backend/cpu/pack/packed.def"
#undef LAYOUT
#define LAYOUT frit_interleave_indexed
#include "backend/cpu/pack/packed_indexed.def"
    frit_install_amx_float(k);
    frit_install_amx_probe(k);
}
