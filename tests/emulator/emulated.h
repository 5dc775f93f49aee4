// SPDX-License-Identifier: MIT
// emulator/emulated.h: features that CUDA C has and C++ lacks, so that kernels run on the host. The threads of a block
// are fibers, of which one runs at a time, and blocks run one after the other. nvrtc.c includes this file before a
// kernel; ptx.cuh of this folder replaces the ptx.cuh of the kernels.
//
// A fiber runs until it must wait for others: for its warp (__syncwarp and everything that exchanges numbers), for
// threads of its block, or for a barrier in shared memory. The fibers of a warp run until all of them wait for other
// warps or have ended; then the next warp runs. So only one of all possible schedules is tried, and asynchronous copies
// are complete when they are started.
#pragma once
#include <csetjmp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>
#include <ucontext.h>

#define EMULATED_EXPORT __attribute__((visibility("default")))
#define __CUDACC_RTC__
#define __CUDA_ARCH__ 900
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__

typedef unsigned int uint;
struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct int2 {
    int x, y;
};
struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

struct emulated_place {
    unsigned x, y, z;
};
static emulated_place threadIdx, blockIdx, blockDim, gridDim;

enum { EMULATED_MOST = 1024, EMULATED_SHARED = 256 << 10, EMULATED_STACK = 64 << 10 };
alignas(1024) static char shared[EMULATED_SHARED];   // extern __shared__ arrays of the running block

// ------------------------------------------------------------------------------- fibers

enum emulated_wait { EMULATED_READY, EMULATED_WARP, EMULATED_BLOCK, EMULATED_COPY, EMULATED_ENDED };

struct emulated_fiber {
    jmp_buf at, begin;   // where the fiber continues; where its next block begins
    ucontext_t start;    // context of its first block; later blocks jump to `begin`, which needs no system call
    bool is_started, has_begun;
    emulated_wait waits;
    int barrier;           // EMULATED_BLOCK: index of the block's barrier
    unsigned generation;   // of the barrier, or of the warp
    const uint64_t *phases;
    unsigned parity;
    char *stack;
};

struct emulated_barrier {
    unsigned generation;
    int n_arrived;
};

struct emulated_warp {
    emulated_barrier all;
    int n_alive;
    uint64_t exchanged[2][32]
                      [6];   // numbers that lanes exchange, alternating: a lane may write the next while others read
    unsigned n_exchanges[32];
};

static emulated_fiber fibers[EMULATED_MOST];
static emulated_warp warps[EMULATED_MOST / 32];
static emulated_barrier barriers[16];
static int n_fibers, n_alive, now;
static jmp_buf scheduler;
static ucontext_t scheduler_start;
static void (*emulated_kernel)(const void *args);
static const void *emulated_args;

static void emulated_yield()
{
    if (_setjmp(fibers[now].at) == 0) _longjmp(scheduler, 1);
}

static void emulated_begin()
{
    fibers[now].has_begun = true;
    _setjmp(fibers[now].begin);
    emulated_kernel(emulated_args);
    fibers[now].waits = EMULATED_ENDED;
    _longjmp(scheduler, 1);
}

static void emulated_warp_sync()
{
    emulated_warp &w = warps[now / 32];
    const unsigned generation = w.all.generation;
    if (++w.all.n_arrived >= w.n_alive) {
        w.all.n_arrived = 0;
        w.all.generation++;
        return;
    }
    fibers[now].waits = EMULATED_WARP;
    fibers[now].generation = generation;
    emulated_yield();
}

// A barrier of n threads; 0: of all threads that have not ended.
static void emulated_block_sync(int id, int n)
{
    emulated_barrier &b = barriers[id];
    const unsigned generation = b.generation;
    if (++b.n_arrived >= (n ? n : n_alive)) {
        b.n_arrived = 0;
        b.generation++;
        return;
    }
    fibers[now].waits = EMULATED_BLOCK;
    fibers[now].barrier = id;
    fibers[now].generation = generation;
    emulated_yield();
}

// True if a fiber can continue.
static bool emulated_is_ready(emulated_fiber &f, int i)
{
    if (f.waits == EMULATED_WARP && f.generation == warps[i / 32].all.generation) return false;
    if (f.waits == EMULATED_BLOCK && f.generation == barriers[f.barrier].generation) return false;
    if (f.waits == EMULATED_COPY && (*f.phases & 1) == f.parity) return false;
    return f.waits != EMULATED_ENDED;
}

// Checks the barriers, because the fiber that ended may have been the last one that others wait for.
static void emulated_end(int i)
{
    emulated_warp &w = warps[i / 32];
    n_alive--, w.n_alive--;
    if (w.n_alive > 0 && w.all.n_arrived >= w.n_alive) w.all.n_arrived = 0, w.all.generation++;
    if (n_alive > 0 && barriers[0].n_arrived >= n_alive) barriers[0].n_arrived = 0, barriers[0].generation++;
}

static void emulated_resume(int i)
{
    emulated_fiber &f = fibers[i];
    now = i;
    threadIdx = {(unsigned)i, 0, 0};
    f.waits = EMULATED_READY;
    if (_setjmp(scheduler) == 0) {
        if (f.is_started) _longjmp(f.at, 1);
        f.is_started = true;
        if (f.has_begun) _longjmp(f.begin, 1);
        getcontext(&f.start);
        f.start.uc_stack.ss_sp = f.stack;
        f.start.uc_stack.ss_size = EMULATED_STACK;
        f.start.uc_link = nullptr;
        makecontext(&f.start, emulated_begin, 0);
        setcontext(&f.start);
    }
    if (fibers[i].waits == EMULATED_ENDED) emulated_end(i);
}

static void emulated_run_block()
{
    memset(warps, 0, sizeof warps);
    memset(barriers, 0, sizeof barriers);
    n_alive = n_fibers;
    for (int i = 0; i < n_fibers; i++) {
        warps[i / 32].n_alive++;
        fibers[i].is_started = false;
        fibers[i].waits = EMULATED_READY;
        if (fibers[i].stack) continue;
        fibers[i].stack =
            (char *)mmap(nullptr, EMULATED_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fibers[i].stack == MAP_FAILED) abort();
    }
    while (n_alive > 0) {
        bool has_run = false;
        for (int w = 0; w * 32 < n_fibers; w++)
            for (bool again = true; again;) {
                again = false;
                for (int i = w * 32; i < w * 32 + 32 && i < n_fibers; i++)
                    if (emulated_is_ready(fibers[i], i)) emulated_resume(i), again = has_run = true;
            }
        if (has_run) continue;
        fprintf(stderr, "emulator: all threads of block %u, %u wait for each other\n", blockIdx.x, blockIdx.y);
        abort();
    }
}

// driver.c finds this function in the compiled kernel and calls it; `kernel` calls the kernel with the struct at args.
extern "C" EMULATED_EXPORT void emulated_launch(void (*kernel)(const void *), const void *args, const unsigned *grid,
                                                unsigned threads, unsigned shared_bytes)
{
    if (threads > EMULATED_MOST || shared_bytes > EMULATED_SHARED) abort();
    emulated_kernel = kernel;
    emulated_args = args;
    n_fibers = (int)threads;
    blockDim = {threads, 1, 1};
    gridDim = {grid[0], grid[1], grid[2]};
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                memset(shared, 0xff, shared_bytes);   // NaN
                blockIdx = {x, y, z};
                emulated_run_block();
            }
}

// ------------------------------------------------------------------------------- what lanes exchange

// Shares `value` with the warp and returns all lanes' values, which are valid until the lane has exchanged twice more.
template <class T> static inline const uint64_t (*emulated_exchange(const T &value))[6]
{
    static_assert(sizeof(T) <= 48, "a lane's slot has 48 bytes");
    emulated_warp &w = warps[now / 32];
    const unsigned which = w.n_exchanges[now % 32]++ & 1;
    memcpy(w.exchanged[which][now % 32], &value, sizeof value);
    emulated_warp_sync();
    return w.exchanged[which];
}

template <class T> static inline T emulated_of(const uint64_t (*all)[6], int lane)
{
    T value;
    memcpy(&value, all[lane], sizeof value);
    return value;
}

static inline void __syncwarp(unsigned = ~0u)
{
    emulated_warp_sync();
}
static inline void __syncthreads()
{
    emulated_block_sync(0, 0);
}
static inline void __threadfence()
{
}
static inline void __trap()
{
    abort();
}

template <class T> static inline T __shfl_xor_sync(unsigned, T value, int mask)
{
    const auto *all = emulated_exchange(value);
    return emulated_of<T>(all, (now % 32) ^ mask);
}

template <class T> static inline T __shfl_sync(unsigned, T value, int lane)
{
    const auto *all = emulated_exchange(value);
    return emulated_of<T>(all, lane % 32);
}

// An instruction that the emulated kind of GPU lacks ends the program when it runs.
static int emulated_arch()
{
    const char *text = getenv("FRIT_EMULATED_ARCH");
    return text ? atoi(text) : 90;
}

static const int emulated_own_arch = emulated_arch();   // the GPU of the module

static inline void emulated_since(int arch)
{
    if (emulated_own_arch >= arch) return;
    fprintf(stderr, "an instruction of sm_%d on sm_%d\n", arch, emulated_own_arch);
    abort();
}

static inline unsigned emulated_largest(unsigned value)
{
    const auto *all = emulated_exchange(value);
    unsigned most = 0;
    for (int i = 0; i < 32; i++) {
        const unsigned v = emulated_of<unsigned>(all, i);
        if (v > most) most = v;
    }
    return most;
}

static inline unsigned __reduce_max_sync(unsigned, unsigned value)
{
    emulated_since(80);
    return emulated_largest(value);
}

static inline int __any_sync(unsigned, int value)
{
    const auto *all = emulated_exchange(value);
    int any = 0;
    for (int i = 0; i < 32; i++) any |= emulated_of<int>(all, i) != 0;
    return any;
}

// ------------------------------------------------------------------------------- functions

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

template <class T> static inline T __ldcg(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcs(const T *p)
{
    return *p;
}
static inline unsigned __float_as_uint(float x)
{
    unsigned u;
    memcpy(&u, &x, 4);
    return u;
}
static inline float __uint_as_float(unsigned u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}
static inline float __fdividef(float x, float y)
{
    return x / y;
}
// nvrtc.c tells the compiler not to contract products and sums.
#define EMULATED_ROUNDED(type, prefix)                \
    static inline type prefix##add_rn(type x, type y) \
    {                                                 \
        return x + y;                                 \
    }                                                 \
    static inline type prefix##sub_rn(type x, type y) \
    {                                                 \
        return x - y;                                 \
    }                                                 \
    static inline type prefix##mul_rn(type x, type y) \
    {                                                 \
        return x * y;                                 \
    }                                                 \
    static inline type prefix##div_rn(type x, type y) \
    {                                                 \
        return x / y;                                 \
    }
EMULATED_ROUNDED(float, __f)
EMULATED_ROUNDED(double, __d)
#undef EMULATED_ROUNDED
static inline int __float2int_rn(float x)
{
    return (int)nearbyintf(x);
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s)
{
    const uint64_t both = (uint64_t)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned n = s >> (4 * i) & 15;
        r |= ((unsigned)(both >> (8 * (n & 7))) & 255) << (8 * i);
    }
    return r;
}
static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline void sincospif(float x, float *s, float *c)
{
    *s = (float)sin(M_PI * (double)x);
    *c = (float)cos(M_PI * (double)x);
}
template <class T> static inline T min(T a, T b)
{
    return b < a ? b : a;
}
template <class T> static inline T max(T a, T b)
{
    return a < b ? b : a;
}
static inline long long min(long long a, int b)
{
    return b < a ? b : a;
}
static inline unsigned atomicAdd(unsigned *p, unsigned v)
{
    const unsigned old = *p;
    *p += v;
    return old;
}
static inline int atomicAdd(int *p, int v)
{
    const int old = *p;
    *p += v;
    return old;
}
static inline float atomicAdd(float *p, float v)
{
    const float old = *p;
    *p += v;
    return old;
}
static inline unsigned atomicMax(unsigned *p, unsigned v)
{
    const unsigned before = *p;
    if (v > before) *p = v;
    return before;
}

static inline unsigned long long atomicMax(unsigned long long *p, unsigned long long v)
{
    const unsigned long long old = *p;
    if (v > old) *p = v;
    return old;
}
static inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long v)
{
    const unsigned long long old = *p;
    *p += v;
    return old;
}
static inline int atomicMin(int *p, int v)
{
    const int old = *p;
    if (v < old) *p = v;
    return old;
}
static inline unsigned atomicOr(unsigned *p, unsigned v)
{
    const unsigned old = *p;
    *p |= v;
    return old;
}
