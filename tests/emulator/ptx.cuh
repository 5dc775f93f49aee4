// SPDX-License-Identifier: MIT
// The functions of src/backend/cuda/kernels/include/ptx.cuh for the host, after NVIDIA's manual of PTX, which says
// which lane of a warp has which part of a matrix.
#pragma once

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

#define DEVICE inline

DEVICE u32 shared_address(const void *p)
{
    return (u32)((const char *)p - shared);
}

// ------------------------------------------------------------------------------- numbers

DEVICE float half_to_float(u16 h)
{
    const u32 sign = (u32)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000 | mantissa << 13);
    if (exponent) return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
    const float x = (float)mantissa * 0x1p-24f;
    return sign ? -x : x;
}

DEVICE float low_half(u32 pair)
{
    return half_to_float((u16)pair);
}

DEVICE float high_half(u32 pair)
{
    return half_to_float((u16)(pair >> 16));
}

// Rounds to nearest, ties to even; too large numbers become infinite.
DEVICE u16 float_to_half(float x)
{
    const u32 bits = __float_as_uint(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return 0x7fff;
    if (magnitude >= 0x47800000) return (u16)(sign | 0x7c00);
    if (magnitude < 0x38800000) return (u16)(sign | (u32)nearbyintf(fabsf(x) * 0x1p24f));
    const u32 rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (u16)(sign | ((rounded >> 13) - (112u << 10)));
}

DEVICE u32 pack_half2(float low, float high)
{
    return float_to_half(low) | (u32)float_to_half(high) << 16;
}

// Products of two f16 are exact in f32, so a sum is rounded once.
DEVICE u32 fma_half2(u32 x, u32 y, u32 z)
{
    const float low = (float)((double)low_half(x) * low_half(y) + low_half(z)),
                high = (float)((double)high_half(x) * high_half(y) + high_half(z));
    return pack_half2(low, high);
}

DEVICE u32 add_half2(u32 x, u32 y)
{
    return fma_half2(x, 0x3c003c00, y);
}

DEVICE u32 float_to_bf16(float x)
{
    const u32 bits = __float_as_uint(x);
    return x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

DEVICE u32 pack_bf16x2(float low, float high)
{
    return float_to_bf16(low) | float_to_bf16(high) << 16;
}

DEVICE float exp2_fast(float x)
{
    return exp2f(x);
}

DEVICE u32 permute_signed(u32 word, u32 selector)
{
    u32 v = 0;
    for (int i = 0; i < 4; i++) {
        const u32 n = selector >> 4 * i & 15, byte = (n & 7) < 4 ? word >> 8 * (n & 3) & 255 : 0;
        v |= (n & 8 ? byte & 128 ? 255 : 0 : byte) << 8 * i;
    }
    return v;
}

DEVICE float half_scale(float largest)
{
    int exponent = (int)(__float_as_uint(largest) >> 23) - 127;
    if (largest == 0) exponent = 10;
    exponent = exponent < -100 ? -100 : exponent > 120 ? 120 : exponent;
    return __uint_as_float((u32)(127 + 10 - exponent) << 23);
}

DEVICE float warp_max(float x)
{
    return __uint_as_float(emulated_largest(__float_as_uint(x)));
}

DEVICE float warp_sum(float x)
{
    for (int i = 16; i > 0; i /= 2) x += __shfl_xor_sync(~0u, x, i);
    return x;
}

// ------------------------------------------------------------------------------- products of 16 x 16 and 16 x 8

// Lane l has of A rows l / 4 and l / 4 + 8, of B column l / 4, of the result rows l / 4 (+ 8) and columns
// 2 (l % 4), + 1. A word has the numbers of UNIT columns from (l % 4) * UNIT on; the words after the first two are
// 4 UNIT columns further.

struct frag {
    float v[4];
};

struct emulated_operands {
    u32 a[4], b[2];
};

// Unpacks the words of a lane. Each lane does so once, before other lanes multiply by the numbers.
template <class T, int UNIT> struct emulated_numbers {
    T a[4][UNIT], b[2][UNIT];
};

template <int N, class T, int UNIT, class TOTAL>
DEVICE void emulated_add_products(const emulated_numbers<T, UNIT> &own, TOTAL *d)
{
    const auto *all = emulated_exchange(own);
    const int lane = now % 32;
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4, high = i / 2, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < N; k++) {
            const int from = k % (4 * UNIT) / UNIT, word = k / (4 * UNIT);
            const auto &a = *(const emulated_numbers<T, UNIT> *)all[row * 4 + from];
            const auto &b = *(const emulated_numbers<T, UNIT> *)all[column * 4 + from];
            d[i] += a.a[word * 2 + high][k % UNIT] * b.b[word][k % UNIT];
        }
    }
}

template <class NUMBER> DEVICE frag emulated_mma(const emulated_operands &words, const frag &c, NUMBER number)
{
    emulated_since(80);
    emulated_numbers<float, 2> own;
    for (int i = 0; i < 8; i++) own.a[i / 2][i % 2] = number((u16)(words.a[i / 2] >> i % 2 * 16));
    for (int i = 0; i < 4; i++) own.b[i / 2][i % 2] = number((u16)(words.b[i / 2] >> i % 2 * 16));
    frag d = c;
    emulated_add_products<16>(own, d.v);
    return d;
}

DEVICE float bf16_to_float(u16 b)
{
    return __uint_as_float((u32)b << 16);
}

DEVICE frag mma_f16(u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, const frag &c)
{
    return emulated_mma(emulated_operands{{a0, a1, a2, a3}, {b0, b1}}, c, half_to_float);
}

DEVICE frag mma_bf16(u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, const frag &c)
{
    return emulated_mma(emulated_operands{{a0, a1, a2, a3}, {b0, b1}}, c, bf16_to_float);
}

struct half_frag {
    float v[2];
};

DEVICE half_frag mma_f16_half(u32 a0, u32 a2, u32 b0, u32 b1, const half_frag &c)
{
    const frag d = mma_f16(a0, 0, a2, 0, b0, b1, frag{{c.v[0], c.v[1], 0, 0}});
    return half_frag{{d.v[0], d.v[1]}};
}

struct int_frag {
    int v[4];
};

template <bool SIGNED> DEVICE int emulated_byte(u32 word, int i)
{
    const u32 byte = word >> 8 * i & 255;
    return SIGNED ? (int)(signed char)byte : (int)byte;
}

template <bool SIGNED, int N> DEVICE int_frag emulated_int_mma(const emulated_operands &words)
{
    emulated_since(80);
    emulated_numbers<short, 4> own;
    for (int i = 0; i < 16; i++) own.a[i / 4][i % 4] = (short)emulated_byte<SIGNED>(words.a[i / 4], i % 4);
    for (int i = 0; i < 8; i++) own.b[i / 4][i % 4] = (short)emulated_byte<true>(words.b[i / 4], i % 4);
    int_frag d = {{0, 0, 0, 0}};
    emulated_add_products<N>(own, d.v);
    return d;
}

template <bool SIGNED> DEVICE int_frag mma_8_bits(u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1)
{
    return emulated_int_mma<SIGNED, 32>(emulated_operands{{a0, a1, a2, a3}, {b0, b1}});
}

template <bool SIGNED> DEVICE int_frag mma_8_bits_half(u32 a0, u32 a1, u32 b0)
{
    return emulated_int_mma<SIGNED, 16>(emulated_operands{{a0, a1, 0, 0}, {b0, 0}});
}

// ------------------------------------------------------------------------------- order of kernels

DEVICE void let_next_kernel_start()
{
}
DEVICE void wait_for_kernel_before()
{
}

// ------------------------------------------------------------------------------- copies into shared memory

DEVICE u64 *emulated_phases(u32 barrier)
{
    // Phases that have ended; from bit 32 on: arrivals of a phase; from bit 48 on: arrivals so far.
    return (u64 *)(shared + barrier);
}

DEVICE void barrier_init(u32 barrier, u32 n_arrivals)
{
    emulated_since(90);
    *emulated_phases(barrier) = (u64)n_arrivals << 32;
}

DEVICE void barrier_init_done()
{
}

DEVICE void barrier_wait(u32 barrier, u32 parity)
{
    const uint64_t *phases = (const uint64_t *)emulated_phases(barrier);
    if ((*phases & 1) != parity) return;
    fibers[now].waits = EMULATED_COPY;
    fibers[now].phases = phases;
    fibers[now].parity = parity;
    emulated_yield();
}

DEVICE void emulated_arrive(u32 barrier)
{
    u64 *state = emulated_phases(barrier), n_arrivals = *state >> 32 & 0xffff, phases = *state & 0xffffffff;
    *state += (u64)1 << 48;
    if (*state >> 48 == n_arrivals) *state = n_arrivals << 32 | (u32)(phases + 1);
}

DEVICE void copy_bulk(u32 to, const void *from, u32 n_bytes, u32 barrier)
{
    memcpy(shared + to, from, n_bytes);
    emulated_arrive(barrier);
}

DEVICE void copy_bulk_more(u32 to, const void *from, u32 n_bytes, u32)
{
    memcpy(shared + to, from, n_bytes);
}

DEVICE void copy_16(u32 to, const void *from)
{
    emulated_since(80);
    memcpy(shared + to, from, 16);
}

DEVICE void copy_commit()
{
}
template <int PENDING> DEVICE void copy_wait()
{
}
DEVICE void prefetch_l2(const void *)
{
}

template <int N> DEVICE void threads_sync(int id)
{
    emulated_block_sync(id, N);
}

// ------------------------------------------------------------------------------- other GPUs

// Each emulated GPU of a group runs on a thread of the host.
DEVICE void fence_for_peers()
{
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
}

DEVICE void set_flag(u32 *flag, u32 value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

DEVICE void wait_for_flag(const u32 *flag, u32 value)
{
    for (long long n = 0; (int)(__atomic_load_n(flag, __ATOMIC_ACQUIRE) - value) < 0; n++) {
        if (n > 100000000) fprintf(stderr, "emulator: a GPU waits for another one\n"), abort();
        sched_yield();
    }
}

// Numbers before flags, as a GPU that writes 16 bytes as one seems to.
DEVICE void send_with_flags(uint4 *to, u32 x, u32 y, u32 flag)
{
    to->x = x, to->z = y;
    set_flag(&to->y, flag);
    set_flag(&to->w, flag);
}

DEVICE uint2 take_with_flags(const uint4 *from, u32 flag)
{
    wait_for_flag(&from->y, flag);
    wait_for_flag(&from->w, flag);
    return make_uint2(from->x, from->z);
}
