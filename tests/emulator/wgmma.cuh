// SPDX-License-Identifier: MIT
// The functions of src/backend/cuda/kernels/include/wgmma.cuh for the host. Products are complete when they are asked
// for, so a kernel that uses registers too early is not found.
#pragma once
#include "ptx.cuh"

DEVICE u64 wgmma_rows(u32 address)
{
    emulated_since(90);
    if (address % 1024) {
        fprintf(stderr, "rows of a product of warpgroups are not at a multiple of 1,024 bytes\n");
        abort();
    }
    return address >> 4;
}

DEVICE u32 wgmma_unit(int row, int unit)
{
    return (u32)(row * 128 + (unit ^ row % 8) * 16);
}

DEVICE void wgmma_begin()
{
}
DEVICE void wgmma_commit()
{
}
template <int N> DEVICE void wgmma_wait()
{
}

template <int N> DEVICE void wgmma_results(frag (&)[N])
{
}

template <int N> DEVICE void wgmma_f16(frag (&d)[N], const u32 (&a)[4], u64 b)
{
    const int lane = (int)threadIdx.x % 32;
    const u32 at = (u32)b << 4;
    const char *const rows = shared + at / 1024 * 1024;
    const int unit = (int)(at % 128 / 16);
    for (int n = 0; n < N; n++) {
        const int row = n * 8 + lane / 4;
        const u32 low = *(const u32 *)(rows + wgmma_unit(row, unit) + lane % 4 * 4),
                  high = *(const u32 *)(rows + wgmma_unit(row, unit + 1) + lane % 4 * 4);
        d[n] = mma_f16(a[0], a[1], a[2], a[3], low, high, d[n]);
    }
}

DEVICE float emulated_e4m3(u32 code)
{
    const u32 exponent = code >> 3 & 15, mantissa = code & 7;
    const float value = exponent ? ldexpf(8.f + (float)mantissa, (int)exponent - 10) : ldexpf((float)mantissa, -9);
    return (code & 0x7f) == 0x7f ? NAN : code & 0x80 ? -value : value;
}

DEVICE u32 emulated_to_e4m3(float x)
{
    u32 best = 0;
    const float size = fabsf(x);
    if (x != x) return 0x7f;
    for (u32 code = 1; code < 0x7f; code++) {
        const float d = fabsf(emulated_e4m3(code) - size), e = fabsf(emulated_e4m3(best) - size);
        if (d < e || (d == e && code % 2 == 0)) best = code;
    }
    return best | (x < 0 ? 0x80 : 0);
}

DEVICE u32 four_e4m3(float a, float b, float c, float d)
{
    return emulated_to_e4m3(a) | emulated_to_e4m3(b) << 8 | emulated_to_e4m3(c) << 16 | emulated_to_e4m3(d) << 24;
}

// The lanes of a warp exchange their weights; each computes its four results of 8 rows of x.
template <int N> DEVICE void wgmma_e4m3(frag (&d)[N], const u32 (&a)[4], u64 b, int is_added)
{
    const int lane = (int)threadIdx.x % 32;
    const u32 at = (u32)b << 4;
    const char *const rows = shared + at / 1024 * 1024;
    const int unit = (int)(at % 128 / 16);
    float weights[2][32];   // [row lane / 4, and + 8][column]
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 4; i++) {
            const u32 four = __shfl_sync(~0u, a[i], lane / 4 * 4 + t);
            for (int k = 0; k < 4; k++) weights[i % 2][i / 2 * 16 + t * 4 + k] = emulated_e4m3(four >> k * 8 & 255);
        }
    for (int n = 0; n < N; n++)
        for (int j = 0; j < 4; j++) {
            const int row = n * 8 + lane % 4 * 2 + j % 2;
            float sum = is_added ? d[n].v[j] : 0;
            for (int k = 0; k < 32; k++) {
                const unsigned char code = (unsigned char)rows[wgmma_unit(row, unit + k / 16) + k % 16];
                sum += weights[j / 2][k] * emulated_e4m3(code);
            }
            d[n].v[j] = sum;
        }
}

DEVICE void fence_before_wgmma()
{
}
template <int N> DEVICE void take_registers()
{
}
template <int N> DEVICE void give_registers()
{
}

DEVICE void barrier_arrive(u32 barrier)
{
    emulated_arrive(barrier);
}

DEVICE void barrier_expect(u32 barrier, u32)
{
    emulated_arrive(barrier);
}
