// SPDX-License-Identifier: MIT
// Instructions that CUDA C offers only through NVIDIA's headers. Shared addresses have 32 bits.
#pragma once

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

#define DEVICE __device__ __forceinline__

DEVICE u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

// ------------------------------------------------------------------------------- numbers

DEVICE float half_to_float(u16 h)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}

DEVICE float low_half(u32 pair)
{
    return half_to_float((u16)pair);
}

DEVICE float high_half(u32 pair)
{
    return half_to_float((u16)(pair >> 16));
}

DEVICE u16 float_to_half(float x)
{
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}

DEVICE u32 pack_half2(float low, float high)
{
#if __CUDA_ARCH__ >= 800
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return float_to_half(low) | (u32)float_to_half(high) << 16;
#endif
}

// Pairs of numbers.
DEVICE u32 add_half2(u32 x, u32 y)
{
    u32 z;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    return z;
}

DEVICE u32 fma_half2(u32 x, u32 y, u32 z)
{
    u32 w;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(w) : "r"(x), "r"(y), "r"(z));
    return w;
}

// GPUs before sm_80 have no instruction for it: rounds to nearest, ties to even.
DEVICE u32 rounded_bf16(float x)
{
    const u32 bits = __float_as_uint(x);
    return x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

DEVICE u32 pack_bf16x2(float low, float high)
{
#if __CUDA_ARCH__ >= 800
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return rounded_bf16(low) | rounded_bf16(high) << 16;
#endif
}

DEVICE float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Selects bytes of a word. Selectors from 8 on repeat the sign of a byte, which __byte_perm cannot.
DEVICE u32 permute_signed(u32 word, u32 selector)
{
    u32 v;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(v) : "r"(word), "r"(selector));
    return v;
}

// The power of two that brings the largest magnitude to [2^10, 2^11), so that f16 activations keep eleven bits and
// never overflow.
DEVICE float half_scale(float largest)
{
    int exponent = (int)(__float_as_uint(largest) >> 23) - 127;
    if (largest == 0) exponent = 10;
    exponent = exponent < -100 ? -100 : exponent > 120 ? 120 : exponent;
    return __uint_as_float((u32)(127 + 10 - exponent) << 23);
}

// The largest number of a warp; numbers are not negative.
DEVICE float warp_max(float x)
{
    u32 bits = __float_as_uint(x);
#if __CUDA_ARCH__ >= 800
    bits = __reduce_max_sync(~0u, bits);
#else
#pragma unroll
    for (int i = 16; i > 0; i /= 2) {
        const u32 other = __shfl_xor_sync(~0u, bits, i);
        bits = other > bits ? other : bits;
    }
#endif
    return __uint_as_float(bits);
}

DEVICE float warp_sum(float x)
{
#pragma unroll
    for (int i = 16; i > 0; i /= 2) x += __shfl_xor_sync(~0u, x, i);
    return x;
}

// ------------------------------------------------------------------------------- products of 16 x 16 and 16 x 8

// Products and asynchronous copies need sm_80 (frit_cuda_has_tensor_products, driver.h).

struct frag {
    float v[4];   // lane l: row l / 4 of columns 2 (l % 4) and + 1, then row l / 4 + 8
};

DEVICE frag mma_f16(u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, const frag &c)
{
    frag d;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d.v[0]), "=f"(d.v[1]), "=f"(d.v[2]), "=f"(d.v[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(c.v[0]), "f"(c.v[1]), "f"(c.v[2]), "f"(c.v[3]));
    return d;
}

DEVICE frag mma_bf16(u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, const frag &c)
{
    frag d;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d.v[0]), "=f"(d.v[1]), "=f"(d.v[2]), "=f"(d.v[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(c.v[0]), "f"(c.v[1]), "f"(c.v[2]), "f"(c.v[3]));
    return d;
}

// Only rows 0..7: a1 and a3 are zero, and so are the results of rows 8..15, which are dropped.
struct half_frag {
    float v[2];   // lane l: row l / 4 of columns 2 (l % 4) and + 1
};

DEVICE half_frag mma_f16_half(u32 a0, u32 a2, u32 b0, u32 b1, const half_frag &c)
{
    half_frag d;
    float none0, none1;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%8,%5,%8}, {%6,%7}, {%9,%10,%11,%11};"
        : "=f"(d.v[0]), "=f"(d.v[1]), "=f"(none0), "=f"(none1)
        : "r"(a0), "r"(a2), "r"(b0), "r"(b1), "r"(0), "f"(c.v[0]), "f"(c.v[1]), "f"(0.f));
    (void)none0, (void)none1;
    return d;
}

struct int_frag {
    int v[4];
};

// Unsigned codes (SIGNED: signed codes) times signed activations, 32 columns.
template <bool SIGNED> DEVICE int_frag mma_8_bits(u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1)
{
    int_frag d;
    if (SIGNED)
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
            : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(0));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
            : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(0));
    return d;
}

// Codes times signed activations, 16 columns.
template <bool SIGNED> DEVICE int_frag mma_8_bits_half(u32 a0, u32 a1, u32 b0)
{
    int_frag d;
    if (SIGNED)
        asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
            : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
            : "r"(a0), "r"(a1), "r"(b0), "r"(0));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
            : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
            : "r"(a0), "r"(a1), "r"(b0), "r"(0));
    return d;
}

// ------------------------------------------------------------------------------- order of kernels

// Kernels of a stream may overlap: the next kernel starts, fetches weights, and waits for the results of this one.
DEVICE void let_next_kernel_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

DEVICE void wait_for_kernel_before()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ------------------------------------------------------------------------------- copies into shared memory

DEVICE void barrier_init(u32 barrier, u32 n_arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(n_arrivals) : "memory");
}

DEVICE void barrier_init_done()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

DEVICE void barrier_wait(u32 barrier, u32 parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// One thread starts a copy of n_bytes, a multiple of 16. The barrier's phase ends when the copy is complete.
DEVICE void copy_bulk(u32 to, const void *from, u32 n_bytes, u32 barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(n_bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(n_bytes), "r"(barrier)
                 : "memory");
}

// Copies n_bytes, a multiple of 16, which the barrier's phase expects already.
DEVICE void copy_bulk_more(u32 to, const void *from, u32 n_bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(n_bytes), "r"(barrier)
                 : "memory");
}

DEVICE void copy_16(u32 to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(__cvta_generic_to_global(from)) : "memory");
}

DEVICE void copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> DEVICE void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Prefetches into the L2 only.
DEVICE void prefetch_l2(const void *from)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

template <int N> DEVICE void threads_sync(int id)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(N) : "memory");
}

// ------------------------------------------------------------------------------- other GPUs

// What this thread has written to other GPUs is there before what it writes next.
DEVICE void fence_for_peers()
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

DEVICE void set_flag(u32 *flag, u32 value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// Waits until another GPU has set the flag to `value` or a later number; after eight seconds the kernel fails.
DEVICE void wait_for_flag(const u32 *flag, u32 value)
{
    u64 begin = 0;
    for (u32 n = 0;; n++) {
        u32 found;
        u64 now;
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
        if ((int)(found - value) >= 0) return;
        if (n % 1024) continue;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (begin == 0) begin = now;
        if (now - begin > 8000000000ull) __trap();
    }
}

// Sends two numbers to another GPU, each with a flag beside it: 16 bytes arrive as one.
DEVICE void send_with_flags(uint4 *to, u32 x, u32 y, u32 flag)
{
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(x), "r"(flag), "r"(y), "r"(flag)
                 : "memory");
}

// Waits for two numbers with this flag; after eight seconds the kernel fails.
DEVICE uint2 take_with_flags(const uint4 *from, u32 flag)
{
    u64 begin = 0;
    for (u32 n = 0;; n++) {
        u32 x, y, first, second;
        u64 now;
        asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x), "=r"(first), "=r"(y), "=r"(second)
                     : "l"(from)
                     : "memory");
        if (first == flag && second == flag) return make_uint2(x, y);
        if (n % 1024) continue;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (begin == 0) begin = now;
        if (now - begin > 8000000000ull) __trap();
    }
}
