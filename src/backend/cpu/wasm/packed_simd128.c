// SPDX-License-Identifier: MIT
// Products of packed weights with WebAssembly's vectors of 128 bits: a register holds a word of four rows. Bytes are
// multiplied as int16, the even bytes of the words and the odd bytes.
#include "backend/cpu/wasm/simd128.h"
#include "backend/cpu/wasm/vec_simd128.h"

#define MAX_TOKENS     4
#define MAX_TOKENS_G16 3
#define BLOCK_SUMS     768
#define TOKEN_GROUP    1
#define DIRECT_TOKENS  2
#define ACCUMULATORS   2

static const char isa[] = "simd128";

typedef struct x_quads {
    vec even, odd;   // int16; a word is of one quad
} x_quads;

FRIT_INLINE vec even_signed(vec bytes)
{
    return wasm_i16x8_shr(wasm_i16x8_shl(bytes, 8), 8);
}

FRIT_INLINE vec odd_signed(vec bytes)
{
    return wasm_i16x8_shr(bytes, 8);
}

FRIT_INLINE x_quads four_quads(const int8_t *p)
{
    const vec bytes = load(p);
    return (x_quads){even_signed(bytes), odd_signed(bytes)};
}

FRIT_INLINE vec all_words(vec v, int i)   // word i; i is a constant where this is inlined
{
    switch (i) {
    case 0:
        return wasm_i32x4_shuffle(v, v, 0, 0, 0, 0);
    case 1:
        return wasm_i32x4_shuffle(v, v, 1, 1, 1, 1);
    case 2:
        return wasm_i32x4_shuffle(v, v, 2, 2, 2, 2);
    default:
        return wasm_i32x4_shuffle(v, v, 3, 3, 3, 3);
    }
}

FRIT_INLINE vec even_codes(vec codes)
{
    return bit_and(codes, splat_words(0x00ff00ff));
}

FRIT_INLINE vec odd_codes(vec codes)
{
    return wasm_u16x8_shr(codes, 8);
}

FRIT_INLINE vec add_products(vec sum, vec even, vec odd, x_quads x, int i)
{
    const vec products = add_words(dot_int16(even, all_words(x.even, i)), dot_int16(odd, all_words(x.odd, i)));
    return add_words(sum, products);
}

// A quad is added to 32-bit sums at once, because no instruction adds pairs of products as int16 in fewer operations.
#define QUADS_4BIT 1
#define QUADS_5BIT 1
#define QUADS_6BIT 1

FRIT_INLINE vec dots_of(vec sum, const vec *codes, x_quads x, int i, int n)
{
    (void)n;
    return add_products(sum, even_codes(codes[0]), odd_codes(codes[0]), x, i);
}

FRIT_INLINE vec dot_int8(vec sum, vec codes, x_quads x, int i)
{
    return add_products(sum, even_signed(codes), odd_signed(codes), x, i);
}

// Products of n quads, added as pairs of int16. Codes are below 8: 4 * 2 * 7 * 128 is below 2^15.
FRIT_INLINE vec pairs_of(const vec *codes, x_quads x, int i, int n)
{
    vec pairs = zero();
    FRIT_UNROLL(4)
    for (int q = 0; q < n; q++) {
        const vec even = wasm_i16x8_mul(even_codes(codes[q]), all_words(x.even, i + q));
        pairs = wasm_i16x8_add(pairs, even);
        pairs = wasm_i16x8_add(pairs, wasm_i16x8_mul(odd_codes(codes[q]), all_words(x.odd, i + q)));
    }
    return pairs;
}

#include "backend/cpu/tmpl/packed_tile_tmpl.h"
#include "backend/cpu/tmpl/packed_types.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

void frit_install_simd128_packed(frit_kernels *k)
{
    install(k);
}
