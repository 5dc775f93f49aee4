// SPDX-License-Identifier: MIT
// backend/cpu/x86/dot_avx512vnni.h: products of bytes for packed_tmpl.h, in words of sixteen rows.
#pragma once
#include "backend/cpu/x86/vec/vec_avx512vnni.h"

#define MAX_TOKENS          12
#define MAX_TOKENS_G16      8
#define BLOCK_SUMS          512
#define TOKEN_GROUP         1
#define DIRECT_TOKENS       4
#define ACCUMULATORS        2
#define PAIRS_ONLY_IN_ORDER 1

// The word at p in all words, by a separate instruction: compilers would make the broadcast a part of each product.
FRIT_INLINE vec broadcast_by_load(const int8_t *p)
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

// The broadcast of x is part of the instruction. Compilers would load x first, with one more instruction a product.
FRIT_INLINE vec dot(vec sum, vec codes, x_quads x, int i)
{
    const int32_t *word = (const void *)(x + 4 * i);
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(codes), "m"(*word));
    return sum;
}

FRIT_INLINE vec bias_to_signed(vec codes)
{
    return codes;
}

FRIT_INLINE vec start_int8(const int32_t *minus_128)
{
    return broadcast_word(minus_128);
}

FRIT_INLINE vec dot_int8(vec sum, vec codes, x_quads x, int i)
{
    return dot(sum, codes, x, i);
}
