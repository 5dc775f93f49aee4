// SPDX-License-Identifier: MIT
// backend/cpu/wasm/f16_simd128.h: conversion of four f16 numbers to f32.
#pragma once
#include "backend/cpu/kernels.h"

#include <wasm_simd128.h>

// The f16 bits are in the upper half of each word. Exact for all numbers, and computes with no subnormal f32 number.
FRIT_INLINE v128_t upper_f16s_to_f32(v128_t words)
{
    const v128_t sign = wasm_v128_and(words, wasm_u32x4_const_splat(0x80000000));
    const v128_t size = wasm_i32x4_add(words, words);   // without the sign
    // The exponent of f16 moves to that of f32 with 224 added, so that infinity and NaN have the largest exponent.
    const v128_t bits = wasm_i32x4_add(wasm_u32x4_shr(size, 4), wasm_u32x4_const_splat(0xe0u << 23));
    const v128_t normal = wasm_f32x4_mul(bits, wasm_f32x4_const_splat(0x1p-112f));
    // A subnormal f16 number becomes the mantissa of a number in [0.5, 1).
    const v128_t above_half = wasm_v128_or(wasm_u32x4_shr(size, 17), wasm_u32x4_const_splat(126u << 23));
    const v128_t subnormal = wasm_f32x4_sub(above_half, wasm_f32x4_const_splat(0.5f));
    const v128_t is_subnormal = wasm_u32x4_lt(size, wasm_u32x4_const_splat(1u << 27));
    return wasm_v128_or(sign, wasm_v128_bitselect(subnormal, normal, is_subnormal));
}
