// SPDX-License-Identifier: MIT
// Attention of prompts. A block of threads computes up to 64 consecutive rows of a sequence for HEADS_AT_ONCE query
// heads that share keys, 16 rows of a head in each of its warps. Pages of keys and values are copied to shared memory
// two at a time, ahead of their use. The softmax is online: each row has the largest score so far, and sums relative to
// it.
//
// Keys are stored so that 16-byte units of neighbouring positions lie in different banks; values are conflict free
// as they are (cache.cuh). Pages of other types are copied as they are, and the block converts two of them to f16 in
// the same order. With two HALF_STAGES it converts the next two pages while the tensor cores multiply: the warps of the
// second head multiply first and then convert, those of the first head the other way round.
//
// With SHARED_PARTS, a tile has rows of several sequences that begin with the same pages (frit_shared_tile). A block
// computes a part of these pages, and writes sums that attend.cu joins with those of a row's own pages.
//
// Grid: tiles of rows, HEADS / HEADS_AT_ONCE; with SHARED_PARTS: tiles * SHARED_PARTS and so on; 128 * HEADS_AT_ONCE
// threads.
//
// Defined by the host: HEADS, KV_HEADS, HEAD (a multiple of 32), KEY_TYPE, VALUE_TYPE (pages.cuh), PAGE_BYTES, WINDOW
// (positions that a row sees, itself included; 0: all), HAS_SOFTCAP, HAS_SINKS, OUT (NUMBERS_F32, NUMBERS_F16 or
// NUMBERS_BF16), HEADS_AT_ONCE (1 or 2), HALF_STAGES (of two pages as f16; 0 if the cache is f16). SHARED_PARTS (0:
// none), and with it SPLITS (of attend.cu).
#include "activation.cuh"
#include "pages.cuh"
#include "rows.cuh"
#include "slabs.cuh"

#define CHUNKS     (HEAD / 32)
#define UNITS      (HEAD / 8)        // 16-byte units of a key
#define PART_BYTES (32 * HEAD * 2)   // bytes of the keys, or the values, of a head in a page
#define IS_CODED   (KEY_TYPE != FRIT_GPU_CACHE_F16 || VALUE_TYPE != FRIT_GPU_CACHE_F16)
#define COMING     (2 * (KEY_BYTES + VALUE_BYTES))   // bytes of two pages as they are in the cache
#define THREADS    (128 * HEADS_AT_ONCE)
#define NONE       (-1e30f)

#ifndef SHARED_PARTS
#define SHARED_PARTS 0
#define SPLITS       1
#endif
#include "shared_parts.cuh"

#define GROUP       (HEADS / KV_HEADS)
#define QUERIES     (GROUP < 8 ? GROUP : 8)   // as in attend.cuh
#define QUERY_TILES ((GROUP + 7) / 8)
#define PART        (HEAD + 2)

// Offset of unit u of the key at position p. Keys of an odd multiple of 64 bytes have no bank conflicts without it.
DEVICE int unit_at(int p, int u)
{
    return p * UNITS + (CHUNKS % 2 ? u : u ^ (p & 1) << 2);
}

struct row_state {
    float largest, total;
};

// Starts the copy of one of two pages. Pages after the last one are not copied.
DEVICE void fetch_page(const frit_attend_rows_args &a, const int *pages, int page, int head, u32 keys_to, u32 values_to)
{
    const long long at = (long long)pages[page] * PAGE_BYTES;
    const char *keys = (const char *)a.keys + at + head * KEY_BYTES;
    const char *values = (const char *)a.values + at + head * VALUE_BYTES;
#pragma unroll
    for (int i = 0; i < (KEY_BYTES / 16 + THREADS - 1) / THREADS; i++) {
        const int unit = i * THREADS + threadIdx.x;
        if (KEY_BYTES / 16 % THREADS && unit >= KEY_BYTES / 16) continue;
        copy_16(keys_to + (IS_CODED ? unit : unit_at(unit / UNITS, unit % UNITS)) * 16, keys + unit * 16);
    }
#pragma unroll
    for (int i = 0; i < (VALUE_BYTES / 16 + THREADS - 1) / THREADS; i++) {
        const int unit = i * THREADS + threadIdx.x;
        if (VALUE_BYTES / 16 % THREADS && unit >= VALUE_BYTES / 16) continue;
        copy_16(values_to + unit * 16, values + unit * 16);
    }
}

DEVICE void fetch_stage(const frit_attend_rows_args &a, const int *pages, int page, int end, int head, u32 to)
{
    if (page < end) fetch_page(a, pages, page, head, to, to + 2 * KEY_BYTES);
    if (page + 1 < end) fetch_page(a, pages, page + 1, head, to + KEY_BYTES, to + 2 * KEY_BYTES + VALUE_BYTES);
    copy_commit();
}

// ------------------------------------------------------------------------------- pages of other types

struct coded_reader {
    template <class T> DEVICE T operator()(const T *from) const
    {
        return *from;
    }
};

// Numbers 8 i ... 8 i + 7 of a key.
DEVICE uint4 eight_of_key(const char *key, int i)
{
    typedef page_type<KEY_TYPE> type;
    const coded_reader read;
    if constexpr (!type::has_blocks) {
        return eight_halves<KEY_TYPE>(key + i * (type::block_bytes / 4), read);
    } else {
        const char *block = key + i / 4 * type::block_bytes;
        const u32 scale = read((const u16 *)block) * 0x10001u;
        const u32 low = four_codes<KEY_TYPE>(block, i % 4 * 2, is_word(block + 2), read),
                  high = four_codes<KEY_TYPE>(block, i % 4 * 2 + 1, is_word(block + 2), read);
        return make_uint4(times_half2(code_halves<KEY_TYPE>(low, false), scale),
                          times_half2(code_halves<KEY_TYPE>(low, true), scale),
                          times_half2(code_halves<KEY_TYPE>(high, false), scale),
                          times_half2(code_halves<KEY_TYPE>(high, true), scale));
    }
}

DEVICE void decode_keys(const char *from, uint4 *to)
{
#pragma unroll 2
    for (int i = 0; i < (32 * UNITS + THREADS - 1) / THREADS; i++) {
        const int unit = i * THREADS + threadIdx.x, p = unit / UNITS, u = unit % UNITS;
        if (32 * UNITS % THREADS && unit >= 32 * UNITS) continue;
        to[unit_at(p, u)] = eight_of_key(from + p * page_type<KEY_TYPE>::row_bytes, u);
    }
}

// Transposes blocks of values to [dimension][position]. A thread has four dimensions at eight positions.
DEVICE void decode_values(const char *from, uint4 *to)
{
    typedef page_type<VALUE_TYPE> type;
    if constexpr (!type::has_blocks) {
#pragma unroll 2
        for (int i = threadIdx.x; i < 4 * HEAD; i += THREADS)
            to[i] = eight_halves<VALUE_TYPE>(from + i * (type::block_bytes / 4), coded_reader());
    } else {
        for (int i = threadIdx.x; i < HEAD; i += THREADS) {
            const int group = i % 4, four = i / 4;
            const char *block = from + group * 8 * type::row_bytes + four / 8 * type::block_bytes;
            u32 pairs[4][4];   // [pair of positions][dimension]
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const char *a = block + j * 2 * type::row_bytes, *b = a + type::row_bytes;
                four_pairs<VALUE_TYPE>(pairs[j], a, b, four % 8, is_word(a + 2), is_word(b + 2), coded_reader());
            }
#pragma unroll
            for (int d = 0; d < 4; d++)
                to[(four * 4 + d) * 4 + group] = make_uint4(pairs[0][d], pairs[1][d], pairs[2][d], pairs[3][d]);
        }
    }
}

// Converts two pages; the second may be after the last one.
DEVICE void decode_stage(const char *from, char *to, bool has_second)
{
    for (int i = 0; i < (has_second ? 2 : 1); i++) {
        decode_keys(from + i * KEY_BYTES, (uint4 *)(to + i * PART_BYTES));
        decode_values(from + 2 * KEY_BYTES + i * VALUE_BYTES, (uint4 *)(to + (2 + i) * PART_BYTES));
    }
}

// Converts the two pages after those of a stage.
DEVICE void decode_next(char *shared, int stage, int page, int end)
{
    const int next = stage ^ 1;
    decode_stage(shared + next * COMING, shared + 2 * COMING + next * (4 * PART_BYTES), page + 3 < end);
}

// Undoes the Hadamard mixing of values in the sums, fragments [rows][dimensions].
DEVICE void mix_sums(frag (&sums)[HEAD / 8])
{
#pragma unroll
    for (int distance = 1; distance < MIXED / 8; distance *= 2)
#pragma unroll
        for (int d = 0; d < HEAD / 8; d++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (!(d & distance)) mix_two(sums[d].v[i], sums[d + distance].v[i]);
    const float scale = rsqrtf((float)MIXED);
#pragma unroll
    for (int d = 0; d < HEAD / 8; d++) {
        mix_two(sums[d].v[0], sums[d].v[1]), mix_two(sums[d].v[2], sums[d].v[3]);
#pragma unroll
        for (int i = 0; i < 4; i++) sums[d].v[i] = mix_lanes(mix_lanes(sums[d].v[i] * scale, 1), 2);
    }
}

// ------------------------------------------------------------------------------- scores

// Scores of 64 positions, eight in each fragment, in the order of position_of within each page.
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

// Masks scores of positions that a row does not see. first: position of scores[0]; row: position of the lane's upper
// row; the lower row is 8 positions later. With SHARED_PARTS all rows see the positions up to `row`.
DEVICE void mask(frag (&scores)[8], int first, int row, int lane)
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int p = first + n / 4 * 32 + position_of(n % 4, lane % 4 * 2 + i % 2),
                      own = SHARED_PARTS ? row : row + i / 2 * 8;
            if (p > own || (WINDOW && p <= own - WINDOW)) scores[n].v[i] = NONE;
        }
}

// What a block computes: rows of a tile, and the pages that they see.
struct block_rows {
    int n_rows, seq, begin, end;
    int first_row, position;   // of the first row; with SHARED_PARTS: the last position of all rows
    const int *rows;           // with SHARED_PARTS
    int part, n_parts;
};

DEVICE block_rows rows_of_block(const frit_attend_rows_args &a)
{
    block_rows b;
    if (SHARED_PARTS) {
        const int n_most = SHARED_PARTS ? SHARED_PARTS : 1;
        const frit_shared_tile *tile = (const frit_shared_tile *)a.tiles + blockIdx.x / n_most;
        const int each = shared_pages_each(tile->n_pages);
        b.part = (int)blockIdx.x % n_most;
        b.n_parts = n_shared_parts(tile->n_pages);
        b.n_rows = tile->n_rows, b.seq = tile->seq, b.rows = tile->rows;
        b.begin = b.part * each, b.end = min(b.begin + each, tile->n_pages);
        b.first_row = 0, b.position = b.end * 32 - 1;
    } else {
        // Late positions take longest, so their blocks start first.
        const frit_row_tile tile = ((const frit_row_tile *)a.tiles)[gridDim.x - 1 - blockIdx.x];
        b.n_rows = tile.n_rows, b.seq = tile.seq, b.first_row = tile.row, b.position = tile.position;
        b.begin = WINDOW ? max(tile.position - WINDOW + 1, 0) / 32 : 0;
        b.end = (tile.position + tile.n_rows + 31) / 32;
        b.rows = nullptr, b.part = b.n_parts = 0;
    }
    return b;
}

// The step's row of row r of the block.
DEVICE int row_of(const block_rows &b, int r)
{
    return SHARED_PARTS ? b.rows[r] : b.first_row + r;
}

// The part of a row and a head in the memory that attend.cu joins.
DEVICE float *part_of(const frit_attend_rows_args &a, const block_rows &b, int row, int head)
{
    const int at = head % GROUP, tile = head / GROUP * QUERY_TILES + at / 8;
    const long long parts = (long long)(row * (KV_HEADS * QUERY_TILES) + tile) * ALL_PARTS;
    return (float *)a.partial + ((parts + SHARED_PARTS - b.n_parts + b.part) * QUERIES + at % 8) * PART;
}

extern "C" __global__ void __launch_bounds__(THREADS) attend_rows(const frit_attend_rows_args a)
{
    extern __shared__ __align__(128) char shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, of_head = threadIdx.x / 128,
              head = blockIdx.y * HEADS_AT_ONCE + of_head;
    const block_rows tile = rows_of_block(a);
    if (SHARED_PARTS && tile.part >= tile.n_parts) return;   // uniform over the block
    const int kv_head = head / (HEADS / KV_HEADS);
    const int *pages = (const int *)a.pages + (long long)tile.seq * a.page_stride;
    const int begin = tile.begin, end = tile.end;
    const u32 to = shared_address(shared);
    let_next_kernel_start();
    wait_for_kernel_before();
    fetch_stage(a, pages, begin, end, kv_head, to);
    if (HALF_STAGES == 2) {
        fetch_stage(a, pages, begin + 2, end, kv_head, to + COMING);
        copy_wait<1>();
        __syncthreads();
        decode_stage(shared, shared + 2 * COMING, begin + 1 < end);
    }

    u32 q[CHUNKS][8];   // four words of the upper row, four of the lower row
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = row_of(tile, min(warp * 16 + lane / 4 + i * 8, tile.n_rows - 1));
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
    const int lowest = tile.position + (SHARED_PARTS ? 0 : warp * 16), own = lowest + (SHARED_PARTS ? 0 : lane / 4);

    for (int page = begin, stage = 0; page < end; page += 2, stage ^= 1) {
        const int half_stage = HALF_STAGES == 2 ? stage : 0;
        const bool converts = HALF_STAGES == 2 && page + 2 < end;
        if (HALF_STAGES == 2) copy_wait<0>();
        __syncthreads();   // all warps have read the stage that is overwritten now
        if (HALF_STAGES == 2) {
            fetch_stage(a, pages, page + 4, end, kv_head, to + stage * COMING);
            if (converts && of_head == 0) decode_next(shared, stage, page, end);
        } else {
            fetch_stage(a, pages, page + 2, end, kv_head, to + (stage ^ 1) * COMING);
            copy_wait<1>();
            __syncthreads();
        }
        if (HALF_STAGES == 1) {
            decode_stage(shared + stage * COMING, shared + 2 * COMING, page + 1 < end);
            __syncthreads();
        }
        const char *keys = shared + (IS_CODED ? 2 * COMING + half_stage * (4 * PART_BYTES) : stage * COMING),
                   *values = keys + 2 * PART_BYTES;
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
            if (page + half >= end) continue;   // not copied: its memory may hold NaN
            const uint4 *from = (const uint4 *)(values + half * PART_BYTES);
#pragma unroll
            for (int d = 0; d < HEAD / 8; d++) {
                const uint4 v = from[(d * 8 + lane / 4) * 4 + lane % 4];
                const u32(*w)[2] = p + half * 4;
                sums[d] = mma_f16(w[0][0], w[0][1], w[1][0], w[1][1], v.x, v.y, sums[d]);
                sums[d] = mma_f16(w[2][0], w[2][1], w[3][0], w[3][1], v.z, v.w, sums[d]);
            }
        }
        if (converts && of_head == 1) decode_next(shared, stage, page, end);
    }
    if (VALUES_HAVE_BLOCKS) mix_sums(sums);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float total = state[i].total;
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        if (HAS_SINKS && !SHARED_PARTS)   // a sink is one more score, whose value is 0
            total += exp2_fast(((const float *)a.sinks)[head] * 1.4426950408889634f - state[i].largest);
        const float factor = __fdividef(1.f, total);
        const int r = warp * 16 + lane / 4 + i * 8;
        if (r >= tile.n_rows) continue;
        if (SHARED_PARTS) {
            float *part = part_of(a, tile, row_of(tile, r), head);
#pragma unroll
            for (int d = 0; d < HEAD / 8; d++)
                *(float2 *)(part + d * 8 + lane % 4 * 2) = make_float2(sums[d].v[i * 2], sums[d].v[i * 2 + 1]);
            if (lane % 4 == 0) part[HEAD] = state[i].largest, part[HEAD + 1] = total;
            continue;
        }
        const int out_row = tile.first_row + r, column = head * HEAD + lane % 4 * 2;
        const long long at = (long long)out_row * (HEADS * HEAD) + column;
#pragma unroll
        for (int d = 0; d < HEAD / 8; d++) {
            const float x = sums[d].v[i * 2] * factor, y = sums[d].v[i * 2 + 1] * factor;
            if (OUT == NUMBERS_F32) *(float2 *)((float *)a.out + at + d * 8) = make_float2(x, y);
            if (OUT == NUMBERS_F16)
                store_input_pair((void *)a.out, a.slab_rows, out_row, column + d * 8, HEADS * HEAD, pack_half2(x, y));
            if (OUT == NUMBERS_BF16) *(u32 *)((u16 *)a.out + at + d * 8) = pack_bf16x2(x, y);
        }
    }
}
