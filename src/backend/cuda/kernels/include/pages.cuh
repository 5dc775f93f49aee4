// SPDX-License-Identifier: MIT
// Keys and values of a head in a page, in the cache types that attend.cu and attend_rows.cu read: numbers of 8 or 16
// bits in the layout of cache.cuh, or blocks of 32 numbers, an f16 scale and then codes, in the layout
//
//     keys, values    [kv head][32 positions][HEAD / 32 blocks]
//
// Blocks are Hadamard-mixed when they are written (quant/hadamard.h). Queries are mixed too, and sums of values are
// mixed back. READ is a function that loads a word from shared or global memory.
//
// Defined before: HEAD (a multiple of 32), KEY_TYPE, VALUE_TYPE (FRIT_GPU_CACHE_F16, _BF16, _F8, _Q8_0 or _Q4_0).
#pragma once
#include "args.h"
#include "cache.cuh"

template <int TYPE> struct page_type {
    static constexpr bool has_blocks = TYPE >= FRIT_GPU_CACHE_Q8_0;
    static constexpr int block_bytes = TYPE == FRIT_GPU_CACHE_Q8_0   ? 34
                                       : TYPE == FRIT_GPU_CACHE_Q4_0 ? 18
                                       : TYPE == FRIT_GPU_CACHE_F8   ? 32
                                                                     : 64;   // of 32 numbers
    static constexpr int row_bytes = HEAD / 32 * block_bytes;              // of a position, or of 32 numbers
    static constexpr int head_bytes = 32 * row_bytes;
    static constexpr u32 center = TYPE == FRIT_GPU_CACHE_Q8_0 ? 128 : 8;   // subtracted from codes
    static_assert(TYPE == FRIT_GPU_CACHE_F16 || TYPE == FRIT_GPU_CACHE_BF16 || TYPE == FRIT_GPU_CACHE_F8 ||
                      TYPE == FRIT_GPU_CACHE_Q8_0 || TYPE == FRIT_GPU_CACHE_Q4_0,
                  "attention has no fast kernel for this type");
};

#define KEYS_HAVE_BLOCKS   (page_type<KEY_TYPE>::has_blocks)
#define VALUES_HAVE_BLOCKS (page_type<VALUE_TYPE>::has_blocks)
#define KEY_BYTES          (page_type<KEY_TYPE>::head_bytes)     // keys of a head in a page
#define VALUE_BYTES        (page_type<VALUE_TYPE>::head_bytes)   // values of a head in a page

// ------------------------------------------------------------------------------- numbers without blocks

// Converts two e4m3, in the upper bytes of 16 bits each. Shifted into the fields of f16 they are 2^8 times too small.
DEVICE u32 halves_of_f8(u32 upper)
{
    return fma_half2((upper & 0x80008000) | (upper & 0x7f007f00) >> 1, 0x5c005c00, 0);   // times 256, exactly
}

// Converts two bf16. f16 has enough bits of mantissa; numbers beyond its range become its largest.
DEVICE u32 halves_of_bf16(u32 pair)
{
    const float low = __uint_as_float(pair << 16), high = __uint_as_float(pair & 0xffff0000);
    return pack_half2(fminf(fmaxf(low, -65504.f), 65504.f), fminf(fmaxf(high, -65504.f), 65504.f));
}

// Eight neighbouring numbers as f16.
template <int TYPE, class READ> DEVICE uint4 eight_halves(const char *from, READ read)
{
    if constexpr (TYPE == FRIT_GPU_CACHE_F8) {
        const uint2 v = read((const uint2 *)from);
        return make_uint4(halves_of_f8(__byte_perm(v.x, 0, 0x1404)), halves_of_f8(__byte_perm(v.x, 0, 0x3424)),
                          halves_of_f8(__byte_perm(v.y, 0, 0x1404)), halves_of_f8(__byte_perm(v.y, 0, 0x3424)));
    } else {
        const uint4 v = read((const uint4 *)from);
        if constexpr (TYPE == FRIT_GPU_CACHE_F16) return v;
        return make_uint4(halves_of_bf16(v.x), halves_of_bf16(v.y), halves_of_bf16(v.z), halves_of_bf16(v.w));
    }
}

// ------------------------------------------------------------------------------- blocks

// Loads four codes. Blocks begin at even addresses, with codes from byte 2 on. Reads only words that contain them.
template <class READ> DEVICE u32 word_at(const char *four, bool is_aligned, READ read)
{
    if (is_aligned) return read((const u32 *)four);
    return __byte_perm(read((const u32 *)(four - 2)), read((const u32 *)(four + 2)), 0x5432);
}

DEVICE bool is_word(const char *p)
{
    return ((u64)p & 2) == 0;
}

// Codes 4 i ... 4 i + 3 of a block, as unsigned bytes with `center` added.
template <int TYPE, class READ> DEVICE u32 four_codes(const char *block, int i, bool is_aligned, READ read)
{
    if (TYPE == FRIT_GPU_CACHE_Q8_0) return word_at(block + 2 + i * 4, is_aligned, read) ^ 0x80808080;
    return word_at(block + 2 + i % 4 * 4, is_aligned, read) >> i / 4 * 4 & 0x0f0f0f0f;
}

// Two of four codes as f16, with the center subtracted. An f16 of 1024 + code has the code in its last bits.
template <int TYPE> DEVICE u32 code_halves(u32 codes, bool is_upper)
{
    const u32 minus = 0xe400e400 + page_type<TYPE>::center * 0x10001;
    return add_half2(__byte_perm(codes, 0x64646464, is_upper ? 0x4342 : 0x4140), minus);
}

DEVICE u32 times_half2(u32 x, u32 y)
{
    return fma_half2(x, y, 0);
}

// Numbers 4 i ... 4 i + 3 of blocks at two positions, as pairs of one dimension.
template <int TYPE, class READ>
DEVICE void four_pairs(u32 (&pairs)[4], const char *a, const char *b, int i, bool a_is_aligned, bool b_is_aligned,
                       READ read)
{
    const u32 x = four_codes<TYPE>(a, i, a_is_aligned, read), y = four_codes<TYPE>(b, i, b_is_aligned, read);
    const u32 scales = read((const u16 *)a) | (u32)read((const u16 *)b) << 16;
    const u32 low = __byte_perm(x, y, 0x5140), high = __byte_perm(x, y, 0x7362);
    pairs[0] = times_half2(code_halves<TYPE>(low, false), scales);
    pairs[1] = times_half2(code_halves<TYPE>(low, true), scales);
    pairs[2] = times_half2(code_halves<TYPE>(high, false), scales);
    pairs[3] = times_half2(code_halves<TYPE>(high, true), scales);
}

// ------------------------------------------------------------------------------- mixing

// How many neighbouring numbers are mixed with each other (engine/kv/kv_layout.c).
#define MIXED ((HEAD & -HEAD) < 256 ? (HEAD & -HEAD) : 256)

DEVICE void mix_two(float &a, float &b)
{
    const float sum = a + b, difference = a - b;
    a = sum, b = difference;
}

// A step of the transform between numbers whose lanes differ in one bit.
DEVICE float mix_lanes(float x, int bit)
{
    const float other = __shfl_xor_sync(~0u, x, bit);
    return threadIdx.x & bit ? other - x : x + other;
}
