// SPDX-License-Identifier: MIT
// Products of packed weights with WebAssembly's relaxed dot product, which multiplies signed bytes by bytes of 7 bits.
// Engines may differ only where a second factor is above 127, so the second factors are codes of weights.
#include "backend/cpu/wasm/vec_simd128.h"

#define MAX_TOKENS     8
#define MAX_TOKENS_G16 6
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

FRIT_INLINE vec dot(vec sum, vec codes, x_quads x, int i)
{
    return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(broadcast_word(x + 4 * i), codes, sum);
}

FRIT_INLINE vec dots_of(vec sum, const vec *codes, x_quads x, int i, int n)
{
    (void)n;
    return dot(sum, codes[0], x, i);
}

// A code is (code & 127) - 128 * its sign bit.
FRIT_INLINE vec dot_int8(vec sum, vec codes, x_quads x, int i)
{
    const vec low = bit_and(codes, splat_bytes(127)), sign = bit_and(shift_right(codes, 7), splat_bytes(1));
    const vec activations = broadcast_word(x + 4 * i);
    sum = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(activations, low, sum);
    return sub_words(sum, shift_left(wasm_i32x4_relaxed_dot_i8x16_i7x16_add(activations, sign, zero()), 7));
}

// Products of n quads, added as pairs of int16. Codes are below 8: 4 * 2 * 7 * 128 is below 2^15.
FRIT_INLINE vec pairs_of(const vec *codes, x_quads x, int i, int n)
{
    vec pairs = zero();
    FRIT_UNROLL(4)
    for (int q = 0; q < n; q++)
        pairs = wasm_i16x8_add(pairs, wasm_i16x8_relaxed_dot_i8x16_i7x16(broadcast_word(x + 4 * (i + q)), codes[q]));
    return pairs;
}

#include "backend/cpu/tmpl/packed_tile_tmpl.h"
#include "backend/cpu/tmpl/packed_types.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

void frit_install_relaxed(frit_kernels *k)
{
    install(k);
}
