// SPDX-License-Identifier: MIT
// Products of packed weights with the dot products of ARMv8.2: a register holds a word of four rows.
#include "backend/cpu/arm/dot_dotprod.h"

#define MAX_TOKENS     8
#define MAX_TOKENS_G16 6
#define BLOCK_SUMS     768
#define TOKEN_GROUP    1
#define DIRECT_TOKENS  2
#define ACCUMULATORS   1

static const char isa[] = "dotprod";

#include "backend/cpu/tmpl/packed_tile_tmpl.h"
#include "backend/cpu/tmpl/packed_types.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

// Twelve accumulators keep four products a cycle busy. The codes change so that the compiler cannot hoist the products.
static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    vec codes = splat_words(*sink), sums[12];
    for (int i = 0; i < 12; i++) sums[i] = splat_bytes(i);
    for (int64_t r = 0; r < n_rounds; r++) {
        FRIT_UNROLL(48)
        for (int i = 0; i < 48; i++) sums[i % 12] = dot(sums[i % 12], codes, signed_bytes(codes), 0);
        codes = add_bytes(codes, codes);
    }
    for (int i = 1; i < 12; i++) sums[0] = bit_xor(sums[0], add_bytes(sums[i], splat_bytes(i)));
    *sink ^= signed_words(sums[0])[0];
    return (double)n_rounds * 48 * 16 * 2;
}

void frit_install_dotprod(frit_kernels *k)
{
    install(k);
    k->probe_int8 = probe_int8;
}
