// SPDX-License-Identifier: MIT
// Products of packed weights with the dot products of ARMv8.2: a register holds a word of four rows.
#include "backend/cpu/arm/dot_dotprod.h"

enum { MAX_TOKENS = 8, MAX_TOKENS_HALVES = 6, BLOCK_SUMS = 768, GRAIN = 1, DIRECT_TOKENS = 2, CHAINS = 1 };

static const char isa[] = "dotprod";

#include "backend/cpu/tmpl/packed_kept_tmpl.h"
#include "backend/cpu/tmpl/packed_rows.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

// Twelve chains, enough for four products a cycle; the codes change to keep a compiler from multiplying once.
static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    vec codes = same_words(*sink), sums[12];
    for (int i = 0; i < 12; i++) sums[i] = all_bytes(i);
    for (int64_t r = 0; r < n_rounds; r++) {
        FRIT_UNROLL(48)
        for (int i = 0; i < 48; i++) sums[i % 12] = dot(sums[i % 12], codes, signed_bytes(codes), 0);
        codes = add_bytes(codes, codes);
    }
    for (int i = 1; i < 12; i++) sums[0] = flip(sums[0], add_bytes(sums[i], all_bytes(i)));
    *sink ^= signed_words(sums[0])[0];
    return (double)n_rounds * 48 * 16 * 2;
}

void frit_install_dotprod(frit_kernels *k)
{
    install(k);
    k->probe_int8 = probe_int8;
}
