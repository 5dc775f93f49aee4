// SPDX-License-Identifier: MIT
// Products of packed weights with WebAssembly's relaxed dot product, which multiplies signed bytes by bytes of 7 bits.
// Engines may differ only where a second factor is above 127, so the second factors are codes of weights.
#include "backend/cpu/wasm/vec_simd128.h"

#define MAX_TOKENS     6
#define MAX_TOKENS_G16 4
#define BLOCK_SUMS     768
#define TOKEN_GROUP    1
#define DIRECT_TOKENS  2
#define ACCUMULATORS   2

static const char isa[] = "relaxed";

typedef const int8_t *x_quads;

FRIT_INLINE x_quads four_quads(const int8_t *p)
{
    return p;
}

// Pairs of int16: the sums of two products of signed bytes by codes up to 127, below 2^15.
FRIT_INLINE vec pairs_of_bytes(vec activations, vec codes)
{
    return wasm_i16x8_relaxed_dot_i8x16_i7x16(activations, codes);
}

// The sums of pairs fit int16: 8 * 2 * 15 * 128, 4 * 2 * 31 * 128 and 2 * 2 * 63 * 128 are below 2^15.
#define QUADS_4BIT 8
#define QUADS_5BIT 4
#define QUADS_6BIT 2

FRIT_INLINE vec pairs_of(const vec *codes, x_quads x, int i, int n)
{
    vec pairs = pairs_of_bytes(broadcast_word(x + 4 * i), codes[0]);
    FRIT_UNROLL(8)
    for (int q = 1; q < n; q++)
        pairs = wasm_i16x8_add(pairs, pairs_of_bytes(broadcast_word(x + 4 * (i + q)), codes[q]));
    return pairs;
}

FRIT_INLINE vec dots_of(vec sum, const vec *codes, x_quads x, int i, int n)
{
    return add_words(sum, dot_int16(pairs_of(codes, x, i, n), wasm_i16x8_const_splat(1)));
}

// A code is (code & 127) - 128 * its sign bit.
FRIT_INLINE vec dot_int8(vec sum, vec codes, x_quads x, int i)
{
    const vec low = bit_and(codes, splat_bytes(127)), sign = bit_and(shift_right(codes, 7), splat_bytes(1));
    const vec activations = broadcast_word(x + 4 * i);
    sum = add_words(sum, dot_int16(pairs_of_bytes(activations, low), wasm_i16x8_const_splat(1)));
    return add_words(sum, dot_int16(pairs_of_bytes(activations, sign), wasm_i16x8_const_splat(-128)));
}

#include "backend/cpu/tmpl/packed_tile_tmpl.h"
#include "backend/cpu/tmpl/packed_types.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

void frit_install_relaxed(frit_kernels *k)
{
    install(k);
}
