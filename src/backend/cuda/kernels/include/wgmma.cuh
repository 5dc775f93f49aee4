// SPDX-License-Identifier: MIT
// Products of a warpgroup, four warps, on sm_90: 64 x 16 numbers of f16 in registers times 16 x N in shared memory, or
// 64 x 32 numbers of e4m3 times 32 x N. They run asynchronously:
//
//     wgmma_begin();                          // registers are written
//     wgmma_f16(sums, a, rows);               // any number of products
//     wgmma_commit();                         // they are a group
//     ...                                     // a and sums must not be used
//     wgmma_wait<0>();                        // no group is under way
//     wgmma_results(sums);
//
// Warp w of the warpgroup has rows 16 w ... 16 w + 15 of the results. Each of its lanes has the fragments of 16 x 8
// that mma_f16 (ptx.cuh) has.
#pragma once
#include "ptx.cuh"

// The operand in shared memory: N rows of 64 f16 or 128 e4m3, 128 bytes each, at a multiple of 1,024 bytes. The 16-byte
// units of a row are exchanged, so that copies to eight rows touch all banks: unit u of row r lies where unit u ^ (r %
// 8) would. The next 16 columns of f16, or 32 columns of e4m3, are 2 further in the descriptor.
DEVICE u64 wgmma_rows(u32 address)
{
    return (u64)1 << 62 | (u64)(1024 / 16) << 32 | (u64)1 << 16 | (address & 0x3ffff) >> 4;
}

DEVICE u32 wgmma_unit(int row, int unit)
{
    return (u32)(row * 128 + (unit ^ row % 8) * 16);
}

DEVICE void wgmma_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

DEVICE void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most N groups are under way.
template <int N> DEVICE void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Call it after the wait for the results. Otherwise the compiler may move instructions that use them before the wait.
template <int N> DEVICE void wgmma_results(frag (&d)[N])
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) asm volatile("" : "+f"(d[n].v[i])::"memory");
}

// Operands 0 ... N / 2 - 1 of the instruction are the results.
#define TEN(tens)                                                                                                     \
    "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens "7, %" #tens \
    "8, %" #tens "9, "
#define TO_10        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
#define TO_30        TO_10 TEN(1) TEN(2)
#define TO_60        TO_30 TEN(3) TEN(4) TEN(5)
#define TO_90        TO_60 TEN(6) TEN(7) TEN(8)
#define TO_120       TO_90 TEN(9) TEN(10) TEN(11)
#define FRAGMENT(i)  "+f"(d[i].v[0]), "+f"(d[i].v[1]), "+f"(d[i].v[2]), "+f"(d[i].v[3])
#define FRAGMENTS(i) FRAGMENT(i), FRAGMENT(i + 1), FRAGMENT(i + 2), FRAGMENT(i + 3)

#define WGMMA_OF(NAME, KIND, N, results, a0, a1, a2, a3, rows, one, ...)                                           \
    DEVICE void NAME(frag(&d)[N / 8], const u32(&a)[4], u64 b, int is_added = 1)                                   \
    {                                                                                                              \
        asm volatile("{\n"                                                                                         \
                     ".reg .pred adds;\n"                                                                          \
                     "setp.ne.b32 adds, " one ", 0;\n"                                                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N KIND(1) " {" results "}, {" a0 ", " a1 ", " a2 ", " a3 \
                                                                    "}, " rows ", adds, 1, 1" KIND(0) ";\n"        \
                                                                                                      "}"          \
                     : __VA_ARGS__                                                                                 \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(is_added));                         \
    }
#define KIND_F16(is_shape)  KIND_F16_##is_shape
#define KIND_F16_1          "k16.f32.f16.f16"
#define KIND_F16_0          ", 0"
#define KIND_E4M3(is_shape) KIND_E4M3_##is_shape
#define KIND_E4M3_1         "k32.f32.e4m3.e4m3"
#define KIND_E4M3_0         ""
// wgmma_f16 and wgmma_e4m3: products of both kinds. is_added 0: d is overwritten.
#define WGMMA(N, ...)                             \
    WGMMA_OF(wgmma_f16, KIND_F16, N, __VA_ARGS__) \
    WGMMA_OF(wgmma_e4m3, KIND_E4M3, N, __VA_ARGS__)

// clang-format off
WGMMA(32, TO_10 "%10, %11, %12, %13, %14, %15", "%16", "%17", "%18", "%19", "%20", "%21", FRAGMENTS(0))
WGMMA(64, TO_30 "%30, %31", "%32", "%33", "%34", "%35", "%36", "%37", FRAGMENTS(0), FRAGMENTS(4))
WGMMA(96, TO_30 TEN(3) "%40, %41, %42, %43, %44, %45, %46, %47", "%48", "%49", "%50", "%51", "%52", "%53",
      FRAGMENTS(0), FRAGMENTS(4), FRAGMENTS(8))
WGMMA(128, TO_60 "%60, %61, %62, %63", "%64", "%65", "%66", "%67", "%68", "%69",
      FRAGMENTS(0), FRAGMENTS(4), FRAGMENTS(8), FRAGMENTS(12))
WGMMA(192, TO_90 "%90, %91, %92, %93, %94, %95", "%96", "%97", "%98", "%99", "%100", "%101",
      FRAGMENTS(0), FRAGMENTS(4), FRAGMENTS(8), FRAGMENTS(12), FRAGMENTS(16), FRAGMENTS(20))
WGMMA(256, TO_120 "%120, %121, %122, %123, %124, %125, %126, %127", "%128", "%129", "%130", "%131", "%132", "%133",
      FRAGMENTS(0), FRAGMENTS(4), FRAGMENTS(8), FRAGMENTS(12), FRAGMENTS(16), FRAGMENTS(20), FRAGMENTS(24),
      FRAGMENTS(28))
// clang-format on

// Four numbers as e4m3, rounded to the nearest; numbers beyond 448 become 448.
DEVICE u32 four_e4m3(float a, float b, float c, float d)
{
    u32 four;
    asm("{\n"
        ".reg .b16 low, high;\n"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
        "mov.b32 %0, {low, high};\n"
        "}"
        : "=r"(four)
        : "f"(a), "f"(b), "f"(c), "f"(d));
    return four;
}

// Moves registers between the warpgroups of a block. All warps of a warpgroup call it.
template <int N> DEVICE void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> DEVICE void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

DEVICE void barrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Announces n_bytes of copies that the phase of the barrier waits for, as one arrival.
DEVICE void barrier_expect(u32 barrier, u32 n_bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(n_bytes) : "memory");
}
