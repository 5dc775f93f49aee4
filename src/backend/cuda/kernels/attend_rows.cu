// SPDX-License-Identifier: MIT
// Attention of many rows: prompts. A block of threads takes up to 64 consecutive positions of a run for one query head;
// each of its four warps has 16 of them. Pages of keys and values come two at a time into shared memory, ahead of
// their use. Softmax goes along with the products: of each row the largest score so far, and the sums under it.
//
// Keys are stored so that 16-byte units of neighbouring positions lie in different banks; values are conflict free
// as they are (cache.cuh).
//
// Grid: tiles of rows, HEADS; 128 threads.
//
// Defined by the host: HEADS, KV_HEADS, HEAD (a multiple of 32), PAGE_BYTES, WINDOW (positions that a row sees, itself
// included; 0: all), HAS_SOFTCAP, HAS_SINKS, OUT (NUMBERS_F32, NUMBERS_F16 or NUMBERS_BF16).
#include "activation.cuh"
#include "cache.cuh"
#include "rows.cuh"

#define CHUNKS     (HEAD / 32)
#define UNITS      (HEAD / 8)         // of 16 bytes, of a key
#define PART_BYTES (32 * HEAD * 2)    // keys, or values, of a page
#define STAGE      (4 * PART_BYTES)   // two pages: keys, keys, values, values
#define NONE       (-1e30f)

// Keys of 16 bytes: unit u of position p. Where a key has an odd number of 64 bytes, neighbours differ in banks anyway.
DEVICE int unit_at(int p, int u)
{
    return p * UNITS + (CHUNKS % 2 ? u : u ^ (p & 1) << 2);
}

struct row_state {
    float largest, total;
};

// One of two pages to its place; pages after the last are left out.
DEVICE void fetch_page(const frit_attend_rows_args &a, const int *pages, int page, int head, u32 to)
{
    const long long at = (long long)pages[page] * PAGE_BYTES + (long long)head * PART_BYTES;
    const char *keys = (const char *)a.keys + at, *values = (const char *)a.values + at;
#pragma unroll
    for (int i = 0; i < 32 * UNITS / 128; i++) {
        const int unit = i * 128 + threadIdx.x;
        copy_16(to + unit_at(unit / UNITS, unit % UNITS) * 16, keys + unit * 16);
        copy_16(to + 2 * PART_BYTES + unit * 16, values + unit * 16);
    }
}

DEVICE void fetch_stage(const frit_attend_rows_args &a, const int *pages, int page, int end, int head, u32 to)
{
    if (page < end) fetch_page(a, pages, page, head, to);
    if (page + 1 < end) fetch_page(a, pages, page + 1, head, to + PART_BYTES);
    copy_commit();
}

// Scores of 64 positions: eights of positions, in the order of position_of within each page.
DEVICE void score(frag (&scores)[8], const u32 (&q)[CHUNKS][8], const char *keys, int lane)
{
#pragma unroll
    for (int n = 0; n < 8; n++) {
        const uint4 *from = (const uint4 *)(keys + n / 4 * PART_BYTES);
        frag s = frag{{0, 0, 0, 0}};
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const uint4 k = from[unit_at(position_of(n % 4, lane / 4), c * 4 + lane % 4)];
            s = mma_f16(q[c][0], q[c][4], q[c][1], q[c][5], k.x, k.y, s);
            s = mma_f16(q[c][2], q[c][6], q[c][3], q[c][7], k.z, k.w, s);
        }
        scores[n] = s;
    }
}

// first: the position of scores[0]; row: the position of the lane's upper row, the lower one is 8 further.
DEVICE void mask(frag (&scores)[8], int first, int row, int lane)
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int p = first + n / 4 * 32 + position_of(n % 4, lane % 4 * 2 + i % 2), own = row + i / 2 * 8;
            if (p > own || (WINDOW && p <= own - WINDOW)) scores[n].v[i] = NONE;
        }
}

extern "C" __global__ void __launch_bounds__(128) attend_rows(const frit_attend_rows_args a)
{
    extern __shared__ __align__(128) char shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, head = blockIdx.y;
    // Late positions have the most to do: they come first.
    const frit_row_tile tile = ((const frit_row_tile *)a.tiles)[gridDim.x - 1 - blockIdx.x];
    const int kv_head = head / (HEADS / KV_HEADS);
    const int *pages = (const int *)a.pages + (long long)tile.seq * a.page_stride;
    const int begin = WINDOW ? max(tile.position - WINDOW + 1, 0) / 32 : 0,
              end = (tile.position + tile.n_rows + 31) / 32;
    const u32 to = shared_address(shared);
    let_next_kernel_start();
    wait_for_kernel_before();
    fetch_stage(a, pages, begin, end, kv_head, to);

    u32 q[CHUNKS][8];   // words of the upper row, of the lower one
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = tile.row + min(warp * 16 + lane / 4 + i * 8, tile.n_rows - 1);
        const uint4 *from = (const uint4 *)((const u16 *)a.q + ((long long)row * HEADS + head) * HEAD) + lane % 4;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const uint4 v = from[c * 4];
            q[c][i * 4] = v.x, q[c][i * 4 + 1] = v.y, q[c][i * 4 + 2] = v.z, q[c][i * 4 + 3] = v.w;
        }
    }
    frag sums[HEAD / 8];
#pragma unroll
    for (int d = 0; d < HEAD / 8; d++) sums[d] = frag{{0, 0, 0, 0}};
    row_state state[2] = {{NONE, 0}, {NONE, 0}};
    const int own = tile.position + warp * 16 + lane / 4, lowest = tile.position + warp * 16;

    for (int page = begin, stage = 0; page < end; page += 2, stage ^= 1) {
        __syncthreads();   // all warps are done with what is overwritten now
        fetch_stage(a, pages, page + 2, end, kv_head, to + (stage ^ 1) * STAGE);
        copy_wait<1>();
        __syncthreads();
        const char *keys = shared + stage * STAGE, *values = keys + 2 * PART_BYTES;
        frag scores[8];
        score(scores, q, keys, lane);
        if (HAS_SOFTCAP) {
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) scores[n].v[i] = a.softcap * tanh_of(scores[n].v[i] * a.inverse_softcap);
        }
        if (page * 32 + 63 > lowest || (WINDOW && page * 32 <= lowest + 15 - WINDOW))
            mask(scores, page * 32, own, lane);

        u32 p[8][2];
        bool has_grown = false;
        float shrink[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float largest = state[i].largest, total = 0;
#pragma unroll
            for (int n = 0; n < 8; n++) largest = fmaxf(largest, fmaxf(scores[n].v[i * 2], scores[n].v[i * 2 + 1]));
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
#pragma unroll
            for (int n = 0; n < 8; n++) {
                const float x = exp2_fast(scores[n].v[i * 2] - largest),
                            y = exp2_fast(scores[n].v[i * 2 + 1] - largest);
                total += x + y;
                p[n][i] = pack_half2(x, y);
            }
            shrink[i] = exp2_fast(state[i].largest - largest);
            has_grown = has_grown || largest > state[i].largest;
            state[i].largest = largest;
            state[i].total = state[i].total * shrink[i] + total;
        }
        if (__any_sync(~0u, has_grown)) {
#pragma unroll
            for (int d = 0; d < HEAD / 8; d++) {
                sums[d].v[0] *= shrink[0], sums[d].v[1] *= shrink[0];
                sums[d].v[2] *= shrink[1], sums[d].v[3] *= shrink[1];
            }
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (page + half >= end) continue;   // was not fetched: what is there may be no number
            const uint4 *from = (const uint4 *)(values + half * PART_BYTES);
#pragma unroll
            for (int d = 0; d < HEAD / 8; d++) {
                const uint4 v = from[(d * 8 + lane / 4) * 4 + lane % 4];
                const u32(*w)[2] = p + half * 4;
                sums[d] = mma_f16(w[0][0], w[0][1], w[1][0], w[1][1], v.x, v.y, sums[d]);
                sums[d] = mma_f16(w[2][0], w[2][1], w[3][0], w[3][1], v.z, v.w, sums[d]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float total = state[i].total;
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        if (HAS_SINKS)   // one more score, of a value 0
            total += exp2_fast(((const float *)a.sinks)[head] * 1.4426950408889634f - state[i].largest);
        const float factor = __fdividef(1.f, total);
        const int r = warp * 16 + lane / 4 + i * 8;
        if (r >= tile.n_rows) continue;
        const long long at = ((long long)(tile.row + r) * HEADS + head) * HEAD + lane % 4 * 2;
#pragma unroll
        for (int d = 0; d < HEAD / 8; d++) {
            const float x = sums[d].v[i * 2] * factor, y = sums[d].v[i * 2 + 1] * factor;
            if (OUT == NUMBERS_F32) *(float2 *)((float *)a.out + at + d * 8) = make_float2(x, y);
            if (OUT == NUMBERS_F16) *(u32 *)((u16 *)a.out + at + d * 8) = pack_half2(x, y);
            if (OUT == NUMBERS_BF16) *(u32 *)((u16 *)a.out + at + d * 8) = pack_bf16x2(x, y);
        }
    }
}
