// SPDX-License-Identifier: MIT
// Attention of single rows to cached keys and values, in pages of 32 positions (flash decoding). A block of threads has
// a part of a row's pages, one key/value head, and up to eight of its query heads, a query tile. The pages of a part
// are dealt to the warps. The last block of a query tile that arrives joins the parts.
//
//     keys of a page      [kv head][32 positions][HEAD]
//     values of a page    [kv head][HEAD][32 positions]; in blocks, as keys
//
// Keys and values are loaded straight into the fragments of a 16 x 8 product: 16 bytes of a lane are 8 dimensions of
// one key, or 8 positions of one dimension of the values, in f16. Lane t of four has positions 8 t ... 8 t + 7 of a
// page, so keys are read in the order of position_of. Scores are queries (8 of 16 rows) x keys, sums are dimensions x
// queries.
//
// In types with blocks, a lane has 4 codes of a position in a word. For keys these are dimensions 4 t ... 4 t + 3, and
// the same + 16; products with queries are multiplied by the scale afterwards. For values these are dimensions 4 g ...
// 4 g + 3 (g = lane / 4) of 8 positions, which are combined to pairs of positions. score_position orders positions so
// that the words of a warp lie in different banks.
//
// With ATTEND_STAGES > 0, each warp has a ring of that many pages in shared memory, which are copied ahead. In long
// contexts this keeps memory busy while scores and sums are computed.
//
// Defined before: HEADS, KV_HEADS, HEAD (a multiple of 32), KEY_TYPE, VALUE_TYPE (pages.cuh), PAGE_BYTES, SPLITS,
// ATTEND_WARPS (of a block), WINDOW (positions that a row sees, itself included; 0: all), HAS_SOFTCAP, HAS_SINKS, OUT
// (NUMBERS_F32 or NUMBERS_F16), SHARED_PARTS (0: none; otherwise a row's first pages may be read already, and their
// parts wait to be joined; WINDOW is 0 then).
#pragma once
#include "activation.cuh"
#include "args.h"
#include "pages.cuh"
#include "rows.cuh"
#include "slabs.cuh"

#ifndef ATTEND_STAGES
#define ATTEND_STAGES 0
#endif
#ifndef SHARED_PARTS
#define SHARED_PARTS 0
#endif
#include "shared_parts.cuh"

#define GROUP                (HEADS / KV_HEADS)        // query heads of a key/value head
#define QUERIES              (GROUP < 8 ? GROUP : 8)   // query heads of a tile
#define QUERY_TILES          ((GROUP + 7) / 8)         // of a key/value head; the last may have fewer queries
#define ALL_QUERY_TILES      (KV_HEADS * QUERY_TILES)
#define CHUNKS               (HEAD / 32)
#define KEYS_AT_ONCE         (HEAD > 128 || ATTEND_WARPS > 8 ? 2 : 4)   // groups of eight keys in registers
#define PART                 (HEAD + 2)                                 // sums of values, largest score, sum of weights
#define ATTEND_SHARED_FLOATS (ATTEND_WARPS * QUERIES * PART)
#define HEAD_BYTES           (KEY_BYTES + VALUE_BYTES)   // bytes of a head in a page

static_assert(HEADS % KV_HEADS == 0 && HEAD % 32 == 0, "query heads in groups, heads of whole chunks");

struct attention {
    float largest, total;   // of query head lane / 4
    frag sums[HEAD / 16];   // [dimension], of query heads lane % 4 * 2 and + 1
};

struct page_reader {
    template <class T> DEVICE T operator()(const T *from) const
    {
        return ATTEND_STAGES ? *from : __ldcg(from);
    }
};

// The position in the page of column `column` of the n-th product of queries with eight keys.
DEVICE int score_position(int n, int column)
{
    return VALUES_HAVE_BLOCKS ? n / 2 * 16 + column * 2 + n % 2 : position_of(n, column);
}

// True if the codes of a block begin at a multiple of 4. The parity of n is that of the position.
template <int TYPE> DEVICE bool is_aligned(int n, int block)
{
    return (n % 2 * (page_type<TYPE>::row_bytes / 2) + block) % 2 == 1;
}

// The words of 32 numbers of a query that lane t of four multiplies.
DEVICE uint4 query_words(const char *from, int t)
{
    if (!KEYS_HAVE_BLOCKS) return __ldcg((const uint4 *)from + t);
    const uint2 low = __ldcg((const uint2 *)from + t), high = __ldcg((const uint2 *)from + t + 4);
    return make_uint4(low.x, low.y, high.x, high.y);
}

// Scores of 32 positions: fragments of 8 positions each.
DEVICE void score_page(half_frag (&scores)[4], const u32 (&q)[CHUNKS][4], const char *keys, int lane)
{
    const char *from = keys + score_position(0, lane / 4) * page_type<KEY_TYPE>::row_bytes +
                       lane % 4 * (page_type<KEY_TYPE>::block_bytes / 4);
#pragma unroll
    for (int n = 0; n < 4; n += KEYS_AT_ONCE) {
        uint4 k[KEYS_AT_ONCE][CHUNKS];
#pragma unroll
        for (int i = 0; i < KEYS_AT_ONCE; i++)
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
                k[i][c] = eight_halves<KEY_TYPE>(
                    from + (score_position(n + i, 0) - score_position(0, 0)) * page_type<KEY_TYPE>::row_bytes +
                        c * page_type<KEY_TYPE>::block_bytes,
                    page_reader());
#pragma unroll
        for (int i = 0; i < KEYS_AT_ONCE; i++) {
            half_frag s = {{0, 0}};
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
                s = mma_f16_half(q[c][0], q[c][1], k[i][c].x, k[i][c].y, s);
                s = mma_f16_half(q[c][2], q[c][3], k[i][c].z, k[i][c].w, s);
            }
            scores[n + i] = s;
        }
    }
}

// Scores of 32 positions, for keys in blocks. Lanes have the codes of position score_position(n, lane / 4), and the
// scores of other positions.
DEVICE void score_blocks(half_frag (&scores)[4], const u32 (&q)[CHUNKS][4], const char *keys, int lane)
{
    typedef page_type<KEY_TYPE> type;
    const int t = lane % 4;
    const page_reader read;
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const char *row = keys + score_position(n, lane / 4) * type::row_bytes;
        const char *left = keys + score_position(n, t * 2) * type::row_bytes;
        const char *right = keys + score_position(n, t * 2 + 1) * type::row_bytes;
        half_frag s = {{0, 0}};
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const char *block = row + c * type::block_bytes;
            const bool aligned = VALUES_HAVE_BLOCKS ? is_aligned<KEY_TYPE>(n, c) : is_word(block + 2);
            const u32 low = four_codes<KEY_TYPE>(block, t, aligned, read),
                      high = four_codes<KEY_TYPE>(block, t + 4, aligned, read);
            half_frag of_codes = {{0, 0}};
            of_codes = mma_f16_half(q[c][0], q[c][1], code_halves<KEY_TYPE>(low, false),
                                    code_halves<KEY_TYPE>(low, true), of_codes);
            of_codes = mma_f16_half(q[c][2], q[c][3], code_halves<KEY_TYPE>(high, false),
                                    code_halves<KEY_TYPE>(high, true), of_codes);
            s.v[0] += half_to_float(read((const u16 *)(left + c * type::block_bytes))) * of_codes.v[0];
            s.v[1] += half_to_float(read((const u16 *)(right + c * type::block_bytes))) * of_codes.v[1];
        }
        scores[n] = s;
    }
}

// Adds values times weights to the sums. Fragments are [dimensions][positions]; dimension_of has the order of
// dimensions.
DEVICE void add_values(frag (&sums)[HEAD / 16], const u32 (&p)[4], const char *values, int lane)
{
    typedef page_type<VALUE_TYPE> type;
    const int t = lane % 4;
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
#pragma unroll
        for (int m = 0; m < 4; m += 2) {
            u32 v[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const char *a = values + score_position(m + i, t * 2) * type::row_bytes + c * type::block_bytes;
                const char *b = values + score_position(m + i, t * 2 + 1) * type::row_bytes + c * type::block_bytes;
                const bool aligned = is_aligned<VALUE_TYPE>(m + i, c);
                four_pairs<VALUE_TYPE>(v[i], a, b, lane / 4, aligned, aligned, page_reader());
            }
            sums[c * 2] = mma_f16(v[0][0], v[0][1], v[1][0], v[1][1], p[m], p[m + 1], sums[c * 2]);
            sums[c * 2 + 1] = mma_f16(v[0][2], v[0][3], v[1][2], v[1][3], p[m], p[m + 1], sums[c * 2 + 1]);
        }
}

// The dimension of sum v[i] of fragment d.
DEVICE int dimension_of(int d, int i, int lane)
{
    return VALUES_HAVE_BLOCKS ? d / 2 * 32 + lane / 4 * 4 + d % 2 * 2 + i / 2 : d * 16 + i / 2 * 8 + lane / 4;
}

// Undoes the Hadamard mixing of values in the sums.
DEVICE void mix_sums(frag (&sums)[HEAD / 16])
{
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            frag &a = sums[c * 2], &b = sums[c * 2 + 1];
            mix_two(a.v[i], a.v[i + 2]), mix_two(b.v[i], b.v[i + 2]);
            mix_two(a.v[i], b.v[i]), mix_two(a.v[i + 2], b.v[i + 2]);
        }
#pragma unroll
    for (int distance = 1; distance < MIXED / 32; distance *= 2)
#pragma unroll
        for (int d = 0; d < HEAD / 16; d++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (!(d / 2 & distance)) mix_two(sums[d].v[i], sums[d + 2 * distance].v[i]);
    const float scale = rsqrtf((float)MIXED);
#pragma unroll
    for (int d = 0; d < HEAD / 16; d++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float x = sums[d].v[i] * scale;
#pragma unroll
            for (int bit = 4; bit < 32; bit *= 2) x = mix_lanes(x, bit);
            sums[d].v[i] = x;
        }
}

// Adds a page of which the row sees positions [first, end).
DEVICE void add_page(attention &s, half_frag (&scores)[4], const char *values, int first, int end, int lane)
{
    const int t = lane % 4;
    const int row_bytes = page_type<VALUE_TYPE>::block_bytes;   // of a dimension
    const char *from = values + lane / 4 * row_bytes + t * (row_bytes / 4);
    const bool is_early = KEYS_AT_ONCE == 4 && !ATTEND_STAGES && !VALUES_HAVE_BLOCKS;
    uint4 early[is_early ? HEAD / 8 : 1];   // loaded while the weights are computed
    if constexpr (is_early) {
#pragma unroll
        for (int d = 0; d < HEAD / 8; d++) early[d] = eight_halves<VALUE_TYPE>(from + d * 8 * row_bytes, page_reader());
    }
    float largest = s.largest;
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int position = score_position(n, t * 2 + i);
            if (position >= end || (WINDOW && position < first)) scores[n].v[i] = -1e30f;
            largest = fmaxf(largest, scores[n].v[i]);
        }
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    const float shrink = exp2_fast(s.largest - largest);
    float total = 0;
    u32 p[4];
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const float a = exp2_fast(scores[n].v[0] - largest), b = exp2_fast(scores[n].v[1] - largest);
        total += a + b;
        p[n] = pack_half2(a, b);
    }
    s.largest = largest;
    s.total = s.total * shrink + total;
    const float shrink_0 = __shfl_sync(~0u, shrink, t * 8), shrink_1 = __shfl_sync(~0u, shrink, t * 8 + 4);
#pragma unroll
    for (int d = 0; d < HEAD / 16; d++) {
        s.sums[d].v[0] *= shrink_0, s.sums[d].v[1] *= shrink_1;
        s.sums[d].v[2] *= shrink_0, s.sums[d].v[3] *= shrink_1;
    }
    if constexpr (VALUES_HAVE_BLOCKS) {
        add_values(s.sums, p, values, lane);
    } else {
#pragma unroll
        for (int d = 0; d < HEAD / 16; d++) {
            uint4 v[2];
#pragma unroll
            for (int i = 0; i < 2; i++)
                v[i] = is_early ? early[is_early ? d * 2 + i : 0]
                                : eight_halves<VALUE_TYPE>(from + (d * 2 + i) * 8 * row_bytes, page_reader());
            s.sums[d] = mma_f16(v[0].x, v[1].x, v[0].y, v[1].y, p[0], p[1], s.sums[d]);
            s.sums[d] = mma_f16(v[0].z, v[1].z, v[0].w, v[1].w, p[2], p[3], s.sums[d]);
        }
    }
}

// Joins the sums of a block's warps for dimension d of a query. The result is not divided by the total weight.
DEVICE void join_warps(const float *parts, int d, float &sum, float &largest, float &total)
{
    largest = -1e30f;
#pragma unroll
    for (int i = 0; i < ATTEND_WARPS; i++) largest = fmaxf(largest, parts[i * QUERIES * PART + HEAD]);
    sum = total = 0;
#pragma unroll
    for (int i = 0; i < ATTEND_WARPS; i++) {
        const float *part = parts + i * QUERIES * PART;
        const float factor = exp2_fast(part[HEAD] - largest);
        sum += factor * part[d];
        total += factor * part[HEAD + 1];
    }
}

// Joins the parts of n blocks of threads, QUERIES * PART floats apart, for dimensions lane, lane + 32 ... The results
// are not divided by the total weight. Loads bypass the L1, because other blocks wrote the parts.
struct joined {
    float sums[CHUNKS], largest, total;
};

DEVICE joined join_blocks(const float *parts, int n, int lane)
{
    const int at_once = HEAD > 128 ? 4 : 8;
    joined j;
    j.largest = -1e30f, j.total = 0;
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) j.sums[c] = 0;
    for (int first = 0; first < n; first += at_once) {
        float largest[at_once], total[at_once], sums[at_once][CHUNKS], most = j.largest;
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            const float *part = parts + min(first + i, n - 1) * (QUERIES * PART);
            largest[i] = first + i < n ? __ldcg(part + HEAD) : -1e30f;
            total[i] = first + i < n ? __ldcg(part + HEAD + 1) : 0;
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) sums[i][c] = first + i < n ? __ldcg(part + c * 32 + lane) : 0;
        }
#pragma unroll
        for (int i = 0; i < at_once; i++) most = fmaxf(most, largest[i]);
        const float shrink = exp2_fast(j.largest - most);
        j.total *= shrink;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) j.sums[c] *= shrink;
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            const float factor = exp2_fast(largest[i] - most);
            j.total += factor * total[i];
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) j.sums[c] += factor * sums[i][c];
        }
        j.largest = most;
    }
    return j;
}

// The weight of a head's sink, which is one more score, whose value is 0.
DEVICE float sink_of(const frit_attend_args &a, int head, float largest)
{
    return HAS_SINKS ? exp2_fast(((const float *)a.sinks)[head] * 1.4426950408889634f - largest) : 0;
}

// column: of a row of all heads.
DEVICE void store_result(const frit_attend_args &a, int row, int column, float x)
{
    if (OUT == NUMBERS_F16)
        store_input((void *)a.out, a.slab_rows, row, column, HEADS * HEAD, x);
    else
        ((float *)a.out)[(long long)row * (HEADS * HEAD) + column] = x;
}

// The query heads of a tile, and their key/value head.
struct tile_heads {
    int kv, first, n;
};

DEVICE tile_heads heads_of_tile(int tile)
{
    const int kv = tile / QUERY_TILES, at = tile % QUERY_TILES * 8;
    return tile_heads{kv, kv * GROUP + at, min(QUERIES, GROUP - at)};
}

// The pages of a part, and the first page of this warp.
struct part_pages {
    int first, end, n_active;   // n_active: parts that have pages
    int n_shared;               // parts of shared pages
    int n_positions, page;      // page: number of this warp's first page
};

DEVICE const char *keys_of(const frit_attend_args &a, int page, int head)
{
    return (const char *)a.keys + (long long)page * PAGE_BYTES + head * KEY_BYTES;
}

DEVICE const char *values_of(const frit_attend_args &a, int page, int head)
{
    return (const char *)a.values + (long long)page * PAGE_BYTES + head * VALUE_BYTES;
}

DEVICE const int *pages_of_row(const frit_attend_args &a, int row)
{
    const int seq = a.seq_of ? __ldcg((const int *)a.seq_of + row) : row;
    return (const int *)a.pages + (long long)seq * a.page_stride;
}

DEVICE part_pages attend_pages(const frit_attend_args &a, int row, int split)
{
    const int warp = threadIdx.x / 32;
    const int *pages = pages_of_row(a, row);
    part_pages p;
    // Loads the page that is this warp's first in a short context, before the length is known.
    p.page = __ldcg(pages + min(split * ATTEND_WARPS + warp, a.page_stride - 1));
    p.n_positions = __ldcg((const int *)a.positions + row) + 1;
    // One block has all pages of a short context: joining parts through memory would take longer.
    const int n_shared = SHARED_PARTS ? __ldcg((const int *)a.n_shared + row) : 0;   // pages
    const int begin = WINDOW ? max(p.n_positions - WINDOW, 0) / 32 : n_shared, end = (p.n_positions + 31) / 32;
    p.n_shared = SHARED_PARTS ? n_shared_parts(n_shared) : 0;
    const int n_pages = end - begin, pages_each = max((n_pages + SPLITS - 1) / SPLITS, ATTEND_WARPS);
    p.n_active = (n_pages + pages_each - 1) / pages_each;
    p.first = begin + split * pages_each;
    p.end = min(p.first + pages_each, end);
    if ((begin > 0 || pages_each > ATTEND_WARPS) && p.first + warp < p.end) p.page = __ldcg(pages + p.first + warp);
    return p;
}

// Prefetches the first pages of each warp into the L2, while the keys and values of the newest position are still being
// computed.
DEVICE void attend_prefetch(const frit_attend_args &a, const part_pages &p, int row, int tile)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, head = tile / QUERY_TILES;
    const int *pages = pages_of_row(a, row);
    int page = p.page;
    for (int i = p.first + warp; i < p.end && i < p.first + 4 * ATTEND_WARPS; i += ATTEND_WARPS) {
        const char *keys = keys_of(a, page, head), *values = values_of(a, page, head);
        if (i + ATTEND_WARPS < p.end) page = __ldcg(pages + i + ATTEND_WARPS);
        for (int j = lane * 128; j < KEY_BYTES; j += 32 * 128) prefetch_l2(keys + j);
        for (int j = lane * 128; j < VALUE_BYTES; j += 32 * 128) prefetch_l2(values + j);
    }
}

// ------------------------------------------------------------------------------- a warp's ring of pages

struct page_ring {
    const char *pages;   // this warp's
    u32 barriers;
    int next, page;   // index of the next page to fetch, and its number, which is loaded ahead
    int n_fetched, n_read;
};

#if ATTEND_STAGES
// shared: the rings of all warps, then their barriers.
DEVICE page_ring pages_open(const part_pages &p, char *shared)
{
    const int warp = threadIdx.x / 32;
    page_ring r;
    r.pages = shared + warp * (ATTEND_STAGES * HEAD_BYTES);
    r.barriers = shared_address(shared + ATTEND_WARPS * ATTEND_STAGES * HEAD_BYTES) + warp * (ATTEND_STAGES * 8);
    r.next = p.first + warp;
    r.page = p.page;
    r.n_fetched = r.n_read = 0;
    if (threadIdx.x % 32 == 0) {
        for (int i = 0; i < ATTEND_STAGES; i++) barrier_init(r.barriers + i * 8, 2);
        barrier_init_done();
    }
    __syncwarp();
    return r;
}

// Starts copies of pages before `end`, as far as the ring has room.
DEVICE void pages_fill(page_ring &r, const frit_attend_args &a, const int *pages, int head, int end)
{
    while (r.next < end && r.n_fetched < r.n_read + ATTEND_STAGES) {
        const int stage = r.n_fetched % ATTEND_STAGES;
        const u32 to = shared_address(r.pages) + stage * HEAD_BYTES, barrier = r.barriers + stage * 8;
        const char *keys = keys_of(a, r.page, head), *values = values_of(a, r.page, head);
        r.next += ATTEND_WARPS;
        if (r.next < a.page_stride) r.page = __ldcg(pages + r.next);
        if (threadIdx.x % 32 == 0) {
            copy_bulk(to, keys, KEY_BYTES, barrier);
            copy_bulk(to + KEY_BYTES, values, VALUE_BYTES, barrier);
        }
        r.n_fetched++;
    }
}

// Waits for the oldest page. pages_next releases it.
DEVICE const char *pages_wait(const page_ring &r)
{
    const int stage = r.n_read % ATTEND_STAGES;
    barrier_wait(r.barriers + stage * 8, r.n_read / ATTEND_STAGES % 2);
    return r.pages + stage * HEAD_BYTES;
}

DEVICE void pages_next(page_ring &r, const frit_attend_args &a, const int *pages, int head, int end)
{
    __syncwarp();   // all lanes have read the page
    r.n_read++;
    pages_fill(r, a, pages, head, end);
}
#endif

// ------------------------------------------------------------------------------- a part

// Attention to the pages of a part. All threads of the block call it. shared: ATTEND_SHARED_FLOATS floats; is_last: a
// word of shared memory; ring: filled, with ATTEND_STAGES > 0.
DEVICE void attend_part(const frit_attend_args &a, const part_pages &p, int row, int tile, int split, float *shared,
                        int *is_last, page_ring *ring = nullptr)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const tile_heads heads = heads_of_tile(tile);
    const int *pages = pages_of_row(a, row);
    const int first = p.first, end = p.end, n_active = p.n_active, n_positions = p.n_positions;
    int page = p.page;

    u32 q[CHUNKS][4];
    {
        const int query = min(lane / 4, heads.n - 1);
        const char *from = (const char *)a.q + ((row * HEADS + heads.first + query) * HEAD) * 2;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const uint4 v = query_words(from + c * 64, lane % 4);
            q[c][0] = v.x, q[c][1] = v.y, q[c][2] = v.z, q[c][3] = v.w;
        }
    }
    attention s;
    s.largest = -1e30f, s.total = 0;
#pragma unroll
    for (int d = 0; d < HEAD / 16; d++) s.sums[d] = frag{{0, 0, 0, 0}};
    for (int i = first + warp; i < end; i += ATTEND_WARPS) {
#if ATTEND_STAGES
        const char *keys = pages_wait(*ring), *values = keys + KEY_BYTES;
#else
        const char *keys = keys_of(a, page, heads.kv), *values = values_of(a, page, heads.kv);
        if (i + ATTEND_WARPS < end) page = __ldcg(pages + i + ATTEND_WARPS);
#endif
        half_frag scores[4];
        if constexpr (KEYS_HAVE_BLOCKS)
            score_blocks(scores, q, keys, lane);
        else
            score_page(scores, q, keys, lane);
        if (HAS_SOFTCAP) {
#pragma unroll
            for (int n = 0; n < 4; n++)
#pragma unroll
                for (int j = 0; j < 2; j++) scores[n].v[j] = a.softcap * tanh_of(scores[n].v[j] * a.inverse_softcap);
        }
        const int seen_from = n_positions - WINDOW - i * 32;
        add_page(s, scores, values, seen_from, n_positions - i * 32, lane);
#if ATTEND_STAGES
        pages_next(*ring, a, pages, heads.kv, end);
#endif
    }
    s.total += __shfl_xor_sync(~0u, s.total, 1);
    s.total += __shfl_xor_sync(~0u, s.total, 2);
    if (VALUES_HAVE_BLOCKS) mix_sums(s.sums);
    float *own = shared + warp * QUERIES * PART;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int query = lane % 4 * 2 + i % 2;
        if (query >= QUERIES) continue;
#pragma unroll
        for (int d = 0; d < HEAD / 16; d++) own[query * PART + dimension_of(d, i, lane)] = s.sums[d].v[i];
    }
    if (lane % 4 == 0 && lane / 4 < QUERIES) {
        own[lane / 4 * PART + HEAD] = s.largest;
        own[lane / 4 * PART + HEAD + 1] = s.total;
    }
    __syncthreads();

    const int out = heads.first * HEAD;
    float *parts = (float *)a.partial + (long long)(row * ALL_QUERY_TILES + tile) * ALL_PARTS * QUERIES * PART;
    const bool is_alone = n_active == 1 && p.n_shared == 0;
    for (int i = threadIdx.x; i < heads.n * HEAD; i += ATTEND_WARPS * 32) {
        const int query = i / HEAD, d = i % HEAD;
        float sum, largest, total;
        join_warps(shared + query * PART, d, sum, largest, total);
        if (is_alone) {
            store_result(a, row, out + i, __fdividef(sum, total + sink_of(a, heads.first + query, largest)));
            continue;
        }
        float *to = parts + ((SHARED_PARTS + split) * QUERIES + query) * PART;
        to[d] = sum;
        if (d == 0) to[HEAD] = largest, to[HEAD + 1] = total;
    }
    if (is_alone) return;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 *arrived = (u32 *)a.arrived + row * ALL_QUERY_TILES + tile;
        *is_last = atomicAdd(arrived, 1u) == (u32)n_active - 1;
        if (*is_last) *arrived = 0;
    }
    __syncthreads();
    if (!*is_last) return;
    __threadfence();
    for (int query = warp; query < heads.n; query += ATTEND_WARPS) {
        const float *first_part = parts + ((SHARED_PARTS - p.n_shared) * QUERIES + query) * PART;
        const joined j = join_blocks(first_part, p.n_shared + n_active, lane);
        const float total = j.total + sink_of(a, heads.first + query, j.largest);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            store_result(a, row, out + query * HEAD + c * 32 + lane, __fdividef(j.sums[c], total));
    }
}
