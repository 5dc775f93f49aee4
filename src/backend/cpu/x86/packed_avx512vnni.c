// SPDX-License-Identifier: MIT
// Products of packed weights with AVX-512 VNNI: a register holds a word of sixteen rows.
#include "backend/cpu/x86/vec_avx512vnni.h"

enum { MAX_TOKENS = 12, MAX_TOKENS_HALVES = 8, BLOCK_SUMS = 192, GRAIN = 1, DIRECT_TOKENS = 4 };   // of one tile

static const char isa[] = "avx512vnni";

// The broadcast of x is part of the instruction: compilers load it first, and the loads are as many as the products.
FRIT_INLINE vec dot(vec sum, vec codes, x_quads x, int i)
{
    const int32_t *word = (const void *)(x + 4 * i);
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(codes), "m"(*word));
    return sum;
}

FRIT_INLINE vec open_wide(vec codes)
{
    return codes;
}

FRIT_INLINE vec start_wide(const int32_t *minus_128)
{
    return all_words(minus_128);
}

FRIT_INLINE vec dot_wide(vec sum, vec codes, x_quads x, int i)
{
    return dot(sum, codes, x, i);
}

#include "backend/cpu/tmpl/packed_dots_tmpl.h"

#include "backend/cpu/tmpl/packed_kept_tmpl.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

// Twelve chains, enough for two products a cycle; x changes to keep a compiler from adding up once and multiplying.
static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    int32_t x = *sink;
    vec codes = _mm512_set1_epi32(x), sums[12];
    for (int i = 0; i < 12; i++) sums[i] = all_bytes(i);
    for (int64_t r = 0; r < n_rounds; r++) {
#pragma GCC unroll 48
        for (int i = 0; i < 48; i++) sums[i % 12] = _mm512_dpbusd_epi32(sums[i % 12], codes, codes);
        codes = _mm512_add_epi8(codes, codes);
    }
    for (int i = 1; i < 12; i++) sums[0] = flip(sums[0], add_bytes(sums[i], all_bytes(i)));
    *sink ^= _mm512_reduce_add_epi32(sums[0]);
    return (double)n_rounds * 48 * 64 * 2;
}

void frit_install_avx512vnni(frit_kernels *k)
{
    install(k);
    k->probe_int8 = probe_int8;
}
