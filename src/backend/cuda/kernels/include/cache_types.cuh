// SPDX-License-Identifier: MIT
// Reading and writing all types of keys and values: single numbers, and blocks of 32 numbers with a scale
// (quant/blocks.h). All lanes of a warp call the functions of blocks; lane i has number i.
#pragma once
#include "args.h"
#include "ptx.cuh"

DEVICE bool is_block(int kind)
{
    return kind >= FRIT_GPU_CACHE_Q8_0;
}

// Bytes of a block of 32 numbers, or of a number in types without blocks.
DEVICE int block_bytes(int kind)
{
    switch (kind) {
    case FRIT_GPU_CACHE_F32: return 4;
    case FRIT_GPU_CACHE_F16: return 2;
    case FRIT_GPU_CACHE_BF16: return 2;
    case FRIT_GPU_CACHE_F8: return 1;
    case FRIT_GPU_CACHE_Q8_0: return 34;
    case FRIT_GPU_CACHE_Q4_1: return 20;
    case FRIT_GPU_CACHE_Q5_0: return 22;
    case FRIT_GPU_CACHE_Q5_1: return 24;
    default: return 18;   // Q4_0, IQ4_NL
    }
}

DEVICE float level_of(int code)   // iq4_nl
{
    const u64 eight = code < 8 ? 0xf6eaddcfbfad9881ull : 0x7159453526190d01ull;
    return (float)(signed char)(eight >> code % 8 * 8);
}

// ------------------------------------------------------------------------------- reading

struct block_scale {
    float d, m;   // numbers are d * code + m
};

DEVICE float half_at(const unsigned char *b)
{
    return half_to_float(*(const u16 *)b);
}

DEVICE block_scale scale_of(int kind, const unsigned char *b)
{
    const bool has_min = kind == FRIT_GPU_CACHE_Q4_1 || kind == FRIT_GPU_CACHE_Q5_1;
    return {half_at(b), has_min ? half_at(b + 2) : 0};
}

// Number i of a block, before it is multiplied by the scale.
DEVICE float code_of(int kind, const unsigned char *b, int i)
{
    const int shift = i / 16 * 4, j = i % 16;
    switch (kind) {
    case FRIT_GPU_CACHE_Q8_0: return (float)((const signed char *)b)[2 + i];
    case FRIT_GPU_CACHE_Q4_0: return (float)((b[2 + j] >> shift & 15) - 8);
    case FRIT_GPU_CACHE_Q4_1: return (float)(b[4 + j] >> shift & 15);
    case FRIT_GPU_CACHE_Q5_0: return (float)((b[6 + j] >> shift & 15 | (b[2 + i / 8] >> i % 8 & 1) << 4) - 16);
    case FRIT_GPU_CACHE_Q5_1: return (float)(b[8 + j] >> shift & 15 | (b[4 + i / 8] >> i % 8 & 1) << 4);
    default: return level_of(b[2 + j] >> shift & 15);
    }
}

// e4m3, as in quant/float.c.
DEVICE float f8_to_float(u32 code)
{
    const float value = half_to_float((u16)((code & 0x80) << 8 | (code & 0x7f) << 7)) * 256;
    return (code & 0x7f) == 0x7f ? __uint_as_float(0x7fc00000) : value;
}

// A head's numbers at a position. at(d): number d, in types without blocks.
DEVICE const char *row_of(const frit_gpu_side &s, long long page, int head, int position)
{
    const long long row = s.is_transposed ? (long long)head * 32 * s.row_bytes + position % 32 * block_bytes(s.kind)
                                          : (long long)(head * 32 + position % 32) * s.row_bytes;
    return (const char *)s.pages + page * s.page_bytes + row;
}

DEVICE float cache_load(const frit_gpu_side &s, const char *row, int d)
{
    const int at = s.is_transposed ? d * 32 : d;
    if (s.kind == FRIT_GPU_CACHE_F32) return ((const float *)row)[at];
    if (s.kind == FRIT_GPU_CACHE_F16) return half_to_float(((const u16 *)row)[at]);
    if (s.kind == FRIT_GPU_CACHE_BF16) return __uint_as_float((u32)((const u16 *)row)[at] << 16);
    if (s.kind == FRIT_GPU_CACHE_F8) return f8_to_float(((const unsigned char *)row)[at]);
    const unsigned char *b = (const unsigned char *)row + d / 32 * block_bytes(s.kind);
    const block_scale scale = scale_of(s.kind, b);
    return scale.d * code_of(s.kind, b, d % 32) + scale.m;
}

// The sum of q[d] times number d of the row.
DEVICE float cache_dot(const frit_gpu_side &s, const char *row, const float *q)
{
    float sum = 0;
    if (!is_block(s.kind)) {
        for (int d = 0; d < s.dim; d++) sum += q[d] * cache_load(s, row, d);
        return sum;
    }
    const int bytes = block_bytes(s.kind);
    for (int d = 0; d < s.dim; d += 32) {
        const unsigned char *b = (const unsigned char *)row + d / 32 * bytes;
        const block_scale scale = scale_of(s.kind, b);
        float codes = 0, all = 0;
        for (int i = 0; i < 32; i++) codes += q[d + i] * code_of(s.kind, b, i), all += q[d + i];
        sum += scale.d * codes + scale.m * all;
    }
    return sum;
}

// ------------------------------------------------------------------------------- writing

DEVICE u32 warp_or(u32 x)
{
#pragma unroll
    for (int i = 16; i > 0; i /= 2) x |= __shfl_xor_sync(~0u, x, i);
    return x;
}

DEVICE float warp_most(float x)
{
#pragma unroll
    for (int i = 16; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
    return x;
}

// The number with the largest magnitude, from the first lane that has it.
DEVICE float warp_extreme(float x)
{
    const float most = warp_most(fabsf(x)), largest = warp_most(x);
    return largest == most ? most : -most;
}

DEVICE float inverse_of(float d)
{
    return d != 0 ? 1 / d : 0;
}

DEVICE int clamped(float x, int low, int high)   // truncated
{
    return (int)fminf(fmaxf(x, (float)low), (float)high);
}

DEVICE int nearest_level(float x)
{
    int best = 0;
    for (int i = 1; i < 16; i++)
        if (fabsf(x - level_of(i)) < fabsf(x - level_of(best))) best = i;
    return best;
}

// Writes four bits of each lane's code, and the fifth bits as a word if the type has them, from `at` on, after the
// scales.
DEVICE void store_codes(unsigned char *at, int code, bool has_fifth)
{
    const int lane = threadIdx.x % 32, other = (int)__shfl_xor_sync(~0u, (u32)code, 16);
    if (has_fifth) {
        const u32 fifth = warp_or((u32)(code >> 4 & 1) << lane);
        if (lane < 2) ((u16 *)at)[lane] = (u16)(fifth >> 16 * lane);
        at += 4;
    }
    if (lane < 16) at[lane] = (unsigned char)((code & 15) | (other & 15) << 4);
}

// x = d * (code - half). The number with the largest magnitude becomes code 0.
DEVICE void store_symmetric(unsigned char *b, float x, int half)
{
    const float d = warp_extreme(x) / (float)-half;
    const int code = clamped(x * inverse_of(d) + ((float)half + 0.5f), 0, 2 * half - 1);
    if (threadIdx.x % 32 == 0) *(u16 *)b = float_to_half(d);
    store_codes(b + 2, code, half == 16);
}

// x = d * code + m. The smallest number becomes code 0 and the largest becomes `top`.
DEVICE void store_offset(unsigned char *b, float x, int top)
{
    const float min = -warp_most(-x), d = (warp_most(x) - min) / (float)top;
    const int code = clamped((x - min) * inverse_of(d) + 0.5f, 0, top);
    if (threadIdx.x % 32 == 0) ((u16 *)b)[0] = float_to_half(d), ((u16 *)b)[1] = float_to_half(min);
    store_codes(b + 4, code, top == 31);
}

DEVICE void store_q8_0(unsigned char *b, float x)
{
    const float d = warp_most(fabsf(x)) / 127, scaled = x * inverse_of(d);
    if (threadIdx.x % 32 == 0) *(u16 *)b = float_to_half(d);
    ((signed char *)b)[2 + threadIdx.x % 32] =
        (signed char)clamped(scaled + (scaled < 0 ? -0.5f : 0.5f), -128, 127);
}

// The scale with the least error, weighted by squares, as in quant/encode_iq4.c.
DEVICE void store_iq4_nl(unsigned char *b, float x)
{
    const float extreme = warp_extreme(x);
    float d = 0, best = 0;
    for (int trial = -8; trial <= 7 && fabsf(extreme) >= 1e-15f; trial++) {
        const bool is_first = trial == -8;
        const float level = level_of(nearest_level(x * (is_first ? 127 / extreme : (trial - 127) / extreme)));
        const float sum = warp_sum(x * x * level * x), squares = warp_sum(x * x * level * level);
        if (squares > 0 && (is_first || sum * sum > best * squares)) d = sum / squares, best = d * sum;
    }
    if (threadIdx.x % 32 == 0) *(u16 *)b = float_to_half(d);
    store_codes(b + 2, nearest_level(x * inverse_of(d)), false);
}

DEVICE unsigned char float_to_f8(float x)
{
    const u32 bits = __float_as_uint(x), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return (unsigned char)(sign | 0x7f);
    if (magnitude < 0x3c800000) return (unsigned char)(sign | (__float_as_uint(fabsf(x) * 512 + 8388608.f) & 15));
    const u32 code = magnitude > 0x43e00000 ? 0x7e : ((magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20) - 120 * 8;
    return (unsigned char)(sign | code);
}

// Writes number `lane` of a block, or of 32 numbers from d on in types without blocks.
DEVICE void cache_store(const frit_gpu_side &s, char *row, int d, float x)
{
    unsigned char *b = (unsigned char *)row + d / 32 * block_bytes(s.kind);
    const int at = (d + threadIdx.x % 32) * (s.is_transposed ? 32 : 1);
    switch (s.kind) {
    case FRIT_GPU_CACHE_F32: ((float *)row)[at] = x; break;
    case FRIT_GPU_CACHE_F16: ((u16 *)row)[at] = float_to_half(x); break;
    case FRIT_GPU_CACHE_BF16: ((u16 *)row)[at] = (u16)pack_bf16x2(x, 0); break;
    case FRIT_GPU_CACHE_F8: ((unsigned char *)row)[at] = float_to_f8(x); break;
    case FRIT_GPU_CACHE_Q8_0: store_q8_0(b, x); break;
    case FRIT_GPU_CACHE_Q4_0: store_symmetric(b, x, 8); break;
    case FRIT_GPU_CACHE_Q4_1: store_offset(b, x, 15); break;
    case FRIT_GPU_CACHE_Q5_0: store_symmetric(b, x, 16); break;
    case FRIT_GPU_CACHE_Q5_1: store_offset(b, x, 31); break;
    default: store_iq4_nl(b, x);
    }
}

// ------------------------------------------------------------------------------- outliers

// The transform of quant/hadamard.h, by N threads, of which this is number i. wait() is a barrier of the N threads.
template <int N, typename WAIT> DEVICE void hadamard(float *x, int n, int block, int i, WAIT wait)
{
    for (int distance = 1; distance < block; distance *= 2) {
        for (int j = i; j < n / 2; j += N) {
            float *a = x + j / distance * 2 * distance + j % distance, *b = a + distance;
            const float sum = *a + *b, difference = *a - *b;
            *a = sum, *b = difference;
        }
        wait();
    }
    if (block == 1) return;
    const float scale = 1 / sqrtf((float)block);
    for (int j = i; j < n; j += N) x[j] *= scale;
    wait();
}
