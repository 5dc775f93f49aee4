// SPDX-License-Identifier: MIT
// backend/cpu/x86/dot_avx512vnni.h: products of bytes for packed_tmpl.h, in words of sixteen rows.
#pragma once
#include "backend/cpu/x86/vec/vec_avx512vnni.h"

enum {
    MAX_TOKENS = 12,
    MAX_TOKENS_HALVES = 8,
    BLOCK_SUMS = 512,
    GRAIN = 1,
    DIRECT_TOKENS = 4,
    CHAINS = 2,   // of one tile
    PAIRS_ONLY_IN_ORDER = true,
};

// The word at p in all words, by an instruction of its own: compilers would make it a part of each product.
FRIT_INLINE vec loaded_words(const int8_t *p)
{
    const int32_t *word = (const void *)p;
    vec words;
    __asm__("vpbroadcastd %1, %0" : "=v"(words) : "m"(*word));
    return words;
}

FRIT_INLINE vec dot_loaded(vec sum, vec codes, vec x)
{
    return _mm512_dpbusd_epi32(sum, codes, x);
}

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
