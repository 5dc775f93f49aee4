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
