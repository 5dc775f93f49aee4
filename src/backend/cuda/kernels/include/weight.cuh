// SPDX-License-Identifier: MIT
// The arithmetic of sample/weight.h. Intrinsics keep the compiler from contracting products and sums, so results equal
// those of CPUs.
#pragma once
#include "ptx.cuh"

#define INFINITE __uint_as_float(0x7f800000)
#define LARGEST  __uint_as_float(0x7f7fffff)

// e^x for x <= 0.
DEVICE float exp_of(float x)
{
    const float rounder = 12582912.0f;
    const u32 magnitude = __float_as_uint(x) & 0x7fffffffu;
    x = __uint_as_float((magnitude < 0x42ae0000u ? magnitude : 0x42ae0000u) | 0x80000000u);
    const float shifted = __fadd_rn(__fmul_rn(x, 1.44269504088896341f), rounder), n = __fsub_rn(shifted, rounder);
    const float r = __fsub_rn(__fsub_rn(x, __fmul_rn(n, 0.693359375f)), __fmul_rn(n, -2.12194440e-4f));
    float p = 1.9875691500e-4f;
    p = __fadd_rn(__fmul_rn(p, r), 1.3981999507e-3f);
    p = __fadd_rn(__fmul_rn(p, r), 8.3334519073e-3f);
    p = __fadd_rn(__fmul_rn(p, r), 4.1665795894e-2f);
    p = __fadd_rn(__fmul_rn(p, r), 1.6666665459e-1f);
    p = __fadd_rn(__fmul_rn(p, r), 5.0000001201e-1f);
    p = __fadd_rn(__fadd_rn(__fmul_rn(p, __fmul_rn(r, r)), r), 1);
    return __fmul_rn(p, __uint_as_float((__float_as_uint(shifted) << 23) + (127u << 23)));
}

// The weight of x = logit - max, or of x / temperature, as an integer in units of 2^-30.
DEVICE u32 weight_of(float x)
{
    return (u32)(int)__fadd_rn(__fmul_rn(exp_of(x), 1073741824.0f), 0.5f);
}

DEVICE double sum_of_lanes(const double *lanes)
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// An integer that orders as the logit does; -0 equals 0.
DEVICE u32 key_of(float logit)
{
    const u32 bits = __float_as_uint(__fadd_rn(logit, 0.0f));
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

DEVICE float logit_of(u32 key)
{
    return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

// The logit of a token that occurred `count` times.
DEVICE float penalized(float logit, u32 count, float factor, float frequency, float presence)
{
    logit = logit > 0 ? __fdiv_rn(logit, factor) : __fmul_rn(logit, factor);
    logit = __fsub_rn(logit, __fadd_rn(__fmul_rn((float)count, frequency), presence));
    return logit > LARGEST ? LARGEST : logit;
}

// A number below n: the upper 64 bits of drawn * n.
DEVICE u64 number_below(u64 drawn, u64 n)
{
    const u64 low = 0xffffffffu, a = drawn >> 32, b = drawn & low, c = n >> 32, d = n & low;
    const u64 middle = (a * d & low) + (b * c & low) + (b * d >> 32);
    return a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32);
}
