// SPDX-License-Identifier: MIT
// For pick.cu: shared state of a block of threads, and scans of one block of the row.
#pragma once
#include "args.h"
#include "weight.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, AHEAD = 8, TILE_OF_LANES = 2048, N_LEVELS = 3, N_LANES = 8 };
enum { DONE_OK, NOT_FINITE, EMPTY };   // frit_pick_status
enum { BAD = 1, INFINITE_OR_BAD = 2 };
enum { LIST_OF_NONE, LIST_OF_TOPS, LIST_OF_CHOICE };
enum {
    PASS_LOG,      // the largest unchanged logit
    PASS_LOG_SUM,
    PASS_CHANGE,   // checks that all logits are finite, before biases and penalties
    PASS_MAX,
    PASS_SPREAD,
    PASS_BINS,
    PASS_TIES,
    PASS_LIST,
    PASS_SUM,
    PASS_DONE
};

struct pick_block {   // shared memory of a block
    frit_gpu_pick_state s;
    u32 low[FRIT_GPU_PICK_BINS], high[FRIT_GPU_PICK_BINS];   // sums of bins; also numbers of lanes
    u64 items[FRIT_GPU_PICK_LIST];
    u64 sums[THREADS];
    double lanes[3][N_LANES];
    int flags, found;
    u64 at, bin;
    int is_last;
};

struct row_of {   // operands of a pick
    const frit_gpu_pick *pick;
    frit_gpu_pick_work *work;
    float *logits;
    int *token;          // the picked token, which the next step reads
    const int *before;   // tokens of the step before
    int n_vocab, block_size, n_blocks;
};

DEVICE int level_shift(int level)
{
    return level == 0 ? 21 : level == 1 ? 10 : 0;
}

DEVICE int level_bits(int level)
{
    return level == 2 ? 10 : 11;
}

// ------------------------------------------------------------------------------- scans of one block of the row

// Calls f(token, logit, logit or -infinity if masked) for the tokens of the block.
template <class F> DEVICE void each_logit(const row_of &r, const frit_gpu_pick_state &s, int block, F f)
{
    const int begin = block * r.block_size, end = min(begin + r.block_size, r.n_vocab);
    const u32 *mask = s.uses_mask ? (const u32 *)r.pick->mask : nullptr;
    for (int i = begin + (int)threadIdx.x; i < end; i += THREADS * AHEAD) {
        float x[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) x[k] = i + k * THREADS < end ? __ldcg(r.logits + i + k * THREADS) : 0;
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const int token = i + k * THREADS;
            if (token < end) f(token, x[k], mask && !(mask[token / 32] >> token % 32 & 1) ? -INFINITE : x[k]);
        }
    }
}

DEVICE bool stays(const frit_gpu_pick_state &s, int token, float x)
{
    return x > s.least || (x == s.least && token <= s.last);
}

DEVICE void clear_bins(pick_block &b)
{
    for (int i = threadIdx.x; i < FRIT_GPU_PICK_BINS; i += THREADS) b.low[i] = b.high[i] = 0;
    __syncthreads();
}

DEVICE void count(pick_block &b, u32 bin, u32 n)
{
    const u32 old = atomicAdd(&b.low[bin], n);
    if (old + n < old) atomicAdd(&b.high[bin], 1u);
}

DEVICE void give_bins(const row_of &r, pick_block &b)
{
    __syncthreads();
    for (int i = threadIdx.x; i < FRIT_GPU_PICK_BINS; i += THREADS) {
        const u64 n = (u64)b.high[i] << 32 | b.low[i];
        if (n) atomicAdd(&r.work->bins[i], n);
    }
    __syncthreads();
}

DEVICE bool wants_list(const frit_gpu_pick &p)
{
    return p.temp > 0 && p.top_k > 0 && p.top_k <= FRIT_GPU_PICK_BEST && !(p.top_n_sigma > 0);
}

DEVICE void scan_max(const row_of &r, pick_block &b, int block)
{
    const frit_gpu_pick_state &s = b.s;
    const bool counts = s.pass == PASS_LOG ? r.pick->n_top > 0 : s.pass == PASS_MAX && wants_list(*r.pick);
    u64 best = 0;
    int flags = 0;
    if (threadIdx.x == 0) b.flags = 0;
    if (counts) clear_bins(b);
    __syncthreads();
    each_logit(r, s, block, [&](int token, float raw, float x) {
        const u32 key = key_of(x);
        const u64 candidate = (u64)key << 32 | ~(u32)token;
        best = candidate > best ? candidate : best;
        if (!(raw < INFINITE)) flags |= BAD;
        if ((__float_as_uint(raw) & 0x7f800000u) == 0x7f800000u) flags |= INFINITE_OR_BAD;
        if (counts && stays(s, token, x)) count(b, key >> level_shift(0), 1);
    });
    if (counts) give_bins(r, b);
    for (int i = 16; i > 0; i /= 2) {
        const u64 other = __shfl_xor_sync(~0u, best, i);
        best = other > best ? other : best;
    }
    if (threadIdx.x % 32 == 0) b.sums[threadIdx.x / 32] = best;
    if (flags) atomicOr((u32 *)&b.flags, (u32)flags);
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 1; i < WARPS; i++) best = b.sums[i] > best ? b.sums[i] : best;
    r.work->block_best[block] = best;
    r.work->block_bad[block] = b.flags;
}

DEVICE void scan_bins(const row_of &r, pick_block &b, int block)
{
    const frit_gpu_pick_state &s = b.s;
    const int shift = level_shift(s.level), bits = level_bits(s.level);
    clear_bins(b);
    each_logit(r, s, block, [&](int token, float, float x) {
        const u32 key = key_of(x);
        if (!stays(s, token, x) || (s.level > 0 && key >> shift >> bits != s.prefix)) return;
        const u32 n = s.by_weight ? weight_of(__fsub_rn(x, s.max)) : 1;
        if (n) count(b, key >> shift & ((1u << bits) - 1), n);
    });
    give_bins(r, b);
}

DEVICE void scan_list(const row_of &r, const pick_block &b, int block)
{
    each_logit(r, b.s, block, [&](int token, float, float x) {
        if (!stays(b.s, token, x)) return;
        const u32 at = atomicAdd(&r.work->n_list, 1u);
        if (at < FRIT_GPU_PICK_LIST) r.work->list[at] = (u64)key_of(x) << 32 | ~(u32)token;
    });
}

// The weight of a token; 0 if the token was removed.
DEVICE u32 weigh(const frit_gpu_pick_state &s, int token, float x)
{
    if (!stays(s, token, x)) return 0;
    const float below = __fsub_rn(x, s.max);
    return weight_of(s.temp != 1 ? __fdiv_rn(below, s.temp) : below);
}

// Adds the threads' numbers into sums[0] of the block.
DEVICE void add_up(pick_block &b, u64 n)
{
    b.sums[threadIdx.x] = n;
    __syncthreads();
    for (int i = THREADS / 2; i > 0; i /= 2) {
        if ((int)threadIdx.x < i) b.sums[threadIdx.x] += b.sums[threadIdx.x + i];
        __syncthreads();
    }
}

DEVICE void scan_sum(const row_of &r, pick_block &b, int block)
{
    const frit_gpu_pick_state &s = b.s;
    u64 sum = 0;
    each_logit(r, s, block, [&](int token, float, float x) {
        sum += s.pass == PASS_TIES ? (u64)(x == s.least) : weigh(s, token, x);
    });
    add_up(b, sum);
    if (threadIdx.x == 0) r.work->block_sum[block] = b.sums[0];
}

// Sums of doubles in the CPU's order: a thread adds the numbers of a lane one after the other. Chunks of 32 are padded
// with -infinity.
DEVICE void scan_lanes(const row_of &r, pick_block &b, int block)
{
    const frit_gpu_pick_state &s = b.s;
    float *const x = (float *)b.low;
    const int begin = block * r.block_size, end = min(begin + r.block_size, r.n_vocab);
    const int chunks_end = begin + (end - begin + 31) / 32 * 32;
    const u32 *mask = s.uses_mask ? (const u32 *)r.pick->mask : nullptr;
    const bool is_log = s.pass == PASS_LOG_SUM;
    double sum = 0, squares = 0, n = 0;
    for (int first = begin; first < chunks_end; first += TILE_OF_LANES) {
        const int n_tile = min(TILE_OF_LANES, chunks_end - first);
        for (int i = threadIdx.x; i < n_tile; i += THREADS) {
            const int token = first + i;
            const bool is_there = token < end && !(mask && !(mask[token / 32] >> token % 32 & 1));
            const float logit = is_there ? __ldcg(r.logits + token) : -INFINITE;
            x[i] = is_log ? exp_of(__fsub_rn(logit, s.max)) : logit;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < n_tile && threadIdx.x < N_LANES; i += N_LANES) {
            const bool counts = is_log || x[i] > -INFINITE;
            const double v = is_log ? (double)x[i] : counts ? __dsub_rn((double)s.max, (double)x[i]) : 0;
            sum = __dadd_rn(sum, v);
            squares = __dadd_rn(squares, is_log ? 0 : __dmul_rn(v, v));
            n += counts ? 1 : 0;
        }
        __syncthreads();
    }
    if (threadIdx.x < N_LANES) {
        b.lanes[0][threadIdx.x] = sum;
        b.lanes[1][threadIdx.x] = squares;
        b.lanes[2][threadIdx.x] = n;
    }
    __syncthreads();
    if (threadIdx.x < 3) r.work->block_parts[block][threadIdx.x] = sum_of_lanes(b.lanes[threadIdx.x]);
}

DEVICE void scan(const row_of &r, pick_block &b, int block)
{
    switch (b.s.pass) {
    case PASS_LOG:
    case PASS_CHANGE:
    case PASS_MAX: scan_max(r, b, block); break;
    case PASS_LOG_SUM:
    case PASS_SPREAD: scan_lanes(r, b, block); break;
    case PASS_BINS: scan_bins(r, b, block); break;
    case PASS_LIST: scan_list(r, b, block); break;
    default: scan_sum(r, b, block);
    }
}
