// SPDX-License-Identifier: MIT
// The cache in all types and layouts, slowly: writing, attention to all positions or to chosen ones, and choosing
// positions. attend.cu, attend_rows.cu and heads_rows.cu are faster for the usual types and shapes.
#include "cache_types.cuh"

#define INFINITE __uint_as_float(0x7f800000)

// ------------------------------------------------------------------------------- writing

#define MOST_DIM 1024

// Writes new keys, then new values. A warp has one head at one position; a block has 4 warps.
extern "C" __global__ void __launch_bounds__(128) plain_kv_write(const frit_cache_args a)
{
    __shared__ float rows[4][MOST_DIM];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, each = a.n_heads * (a.v ? 2 : 1);
    const long long at = (long long)blockIdx.x * 4 + warp, row = at / each;
    if (row >= a.n_rows) return;
    const int position = ((const int *)a.positions)[row], n = (int)(at % each), head = n % a.n_heads;
    const long long page = ((const int *)a.pages)[((const int *)a.seq_of)[row] * a.page_stride + position / 32];
    const frit_gpu_side &side = n < a.n_heads ? a.keys : a.values;
    const float *x = (const float *)(n < a.n_heads ? a.k : a.v) + (row * a.n_heads + head) * side.dim;
    float *own = rows[warp];
    for (int d = lane; d < side.dim; d += 32) own[d] = x[d];
    __syncwarp();
    hadamard<32>(own, side.dim, side.hadamard, lane, [] { __syncwarp(); });
    char *to = (char *)row_of(side, page, head, position);
    for (int d = 0; d < side.dim; d += 32)
        if (is_block(side.kind) || d + lane < side.dim) cache_store(side, to, d, own[d + lane]);
}

// ------------------------------------------------------------------------------- attention

#define SPAN 128   // positions at a time

// ALiBi: the slope of a head (graph.h).
DEVICE float slope_of(float alibi, int head, int n_heads)
{
    int n = 1;
    while (2 * n <= n_heads) n *= 2;
    const float step = -alibi / n;
    return exp2f(head < n ? step * (head + 1) : step / 2 * (2 * (head - n) + 1));
}

// A block of 128 threads for each row and head. SPAN positions at a time: a thread computes the score of one position,
// then some dimensions of the sum. With `chosen`, positions are those of the row's list.
extern "C" __global__ void __launch_bounds__(128, 4) plain_attend(const frit_attend_plain_args a)
{
    __shared__ float weights[SPAN], shared_max[4], shared_sum[4];
    __shared__ int positions[SPAN];
    extern __shared__ __align__(128) char shared[];
    const int row = blockIdx.x, head = blockIdx.y, thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int n_heads = gridDim.y, seq_of = ((const int *)a.seq_of)[row], position = ((const int *)a.positions)[row];
    const frit_gpu_seq seq = ((const frit_gpu_seq *)a.seqs)[seq_of];
    const int *pages = (const int *)a.pages + seq_of * a.page_stride;
    const int kv_head = head / (n_heads / a.n_kv_heads), k_dim = a.keys.dim, v_dim = a.values.dim;
    float *q = (float *)shared;
    for (int d = thread; d < k_dim; d += 128)
        q[d] = ((const float *)a.q)[((long long)row * n_heads + head) * k_dim + d];
    // The row sees positions [begin, end).
    int begin = 0, end = position + 1;
    if (a.is_cross) end = seq.n_source;
    if (a.is_bidirectional) {
        end = seq.n_past + seq.n_rows;
        if (a.window) begin = position - a.window / 2, end = min(end, position + a.window / 2 + 1);
    } else if (!a.is_cross) {
        if (a.window) begin = position - a.window + 1;
        if (a.chunk) begin = position / a.chunk * a.chunk;
        if (a.ends) end = max(end, (int)((const float *)a.ends)[(long long)row * a.ends_width + a.ends_at]);
    }
    begin = max(begin, 0);
    const float *chosen = a.chosen ? (const float *)a.chosen + (long long)row * a.n_chosen : 0;
    if (chosen) end = min(end, a.n_chosen);
    float scale = a.scale, largest = -INFINITE, total = 0, sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (a.temp_scale != 0) scale *= 1 + a.temp_scale * logf(1 + floorf((position + a.temp_offset) / a.temp_length));
    const float slope = slope_of(a.alibi, head, n_heads);
    __syncthreads();
    hadamard<128>(q, k_dim, a.keys.hadamard, thread, [] { __syncthreads(); });
    for (int first = begin; first < end; first += SPAN) {
        const int at = first + thread, p = chosen && at < end ? (int)chosen[at] : at;
        float score = -INFINITE;
        positions[thread] = p;
        if (at < end) {
            score = scale * cache_dot(a.keys, row_of(a.keys, pages[p / 32], kv_head, p), q);
            if (a.softcap != 0) score = a.softcap * tanhf(score / a.softcap);
            if (a.gains) {
                const int far = min(max(p - position, -a.reach), a.reach) + a.reach;
                score += ((const float *)a.gains)[head * (2 * a.reach + 1) + far];
            }
            if (a.alibi != 0) score -= slope * fabsf((float)(p - position));
        }
        float most = score;
#pragma unroll
        for (int i = 16; i > 0; i /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
        if (lane == 0) shared_max[warp] = most;
        __syncthreads();
        const float before = largest;
        for (int i = 0; i < 4; i++) largest = fmaxf(largest, shared_max[i]);
        const float shrink = before == -INFINITE ? 0 : expf(before - largest),
                    weight = at < end ? expf(score - largest) : 0;
        weights[thread] = weight;
        const float sum = warp_sum(weight);
        if (lane == 0) shared_sum[warp] = sum;
        __syncthreads();
        total = total * shrink + shared_sum[0] + shared_sum[1] + shared_sum[2] + shared_sum[3];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int d = thread + j * 128;
            if (d >= v_dim) continue;
            sums[j] *= shrink;
            for (int i = 0; i < SPAN && first + i < end; i++)
                sums[j] += weights[i] *
                           cache_load(a.values, row_of(a.values, pages[positions[i] / 32], kv_head, positions[i]), d);
        }
        __syncthreads();
    }
    if (a.sinks) {   // a sink is one more score, whose value is 0
        const float sink = ((const float *)a.sinks)[head], before = largest;
        largest = fmaxf(largest, sink);
        const float shrink = before == -INFINITE ? 0 : expf(before - largest);
        total = total * shrink + expf(sink - largest);
#pragma unroll
        for (int j = 0; j < 8; j++) sums[j] *= shrink;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; j++)
        if (thread + j * 128 < v_dim) q[thread + j * 128] = sums[j] / total;
    __syncthreads();
    hadamard<128>(q, v_dim, a.values.hadamard, thread, [] { __syncthreads(); });
    for (int d = thread; d < v_dim; d += 128) ((float *)a.out)[((long long)row * n_heads + head) * v_dim + d] = q[d];
}

// ------------------------------------------------------------------------------- choosing

struct chooser {   // of a row
    const frit_choose_args &a;
    const int *pages;
    const float *q, *w;
    int n_heads;

    DEVICE float score_of(int p) const
    {
        const char *row = row_of(a.keys, pages[p / 32], 0, p);
        float score = 0;
        for (int h = 0; h < n_heads; h++) score += w[h] * fmaxf(cache_dot(a.keys, row, q + h * a.keys.dim), 0);
        return score;
    }

    // An integer that orders as the score does.
    DEVICE u32 key(int p) const
    {
        const u32 bits = __float_as_uint(score_of(p) + 0.0f);   // -0 becomes 0
        return bits >> 31 ? ~bits : bits | 0x80000000u;
    }
};

// A heap of the best scores so far, the worst on top. It makes the same choice among equal scores as
// backend/cpu/ops/best.c.
struct best_heap {
    float *scores;
    int *ids;
    int n, most;

    DEVICE void put(int i, float score, int id)
    {
        scores[i] = score, ids[i] = id;
    }

    DEVICE void sift(int top, float score, int id)
    {
        int hole = top, child;
        while ((child = 2 * hole + 2) < n) {
            if (scores[child] > scores[child - 1]) child--;
            put(hole, scores[child], ids[child]);
            hole = child;
        }
        if (child == n) {
            put(hole, scores[child - 1], ids[child - 1]);
            hole = child - 1;
        }
        for (int parent; hole > top && scores[parent = (hole - 1) / 2] > score; hole = parent)
            put(hole, scores[parent], ids[parent]);
        put(hole, score, id);
    }

    DEVICE void offer(float score, int id)
    {
        if (n == most) {
            if (score > scores[0]) sift(0, score, id);
            return;
        }
        put(n++, score, id);
        if (n < most) return;
        for (int i = n / 2 - 1; i >= 0; i--) sift(i, scores[i], ids[i]);
    }
};

// Number of threads before this one in the block whose flag is set. all: number of all such threads.
DEVICE int place_among(bool flag, u32 *counts, int *all)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 flags = warp_or((u32)flag << lane);
    __syncthreads();
    if (lane == 0) counts[warp] = flags;
    __syncthreads();
    int before = __popc(flags & ((1u << lane) - 1));
    *all = 0;
    for (int i = 0; i < 8; i++) {
        if (i < warp) before += __popc(counts[i]);
        *all += __popc(counts[i]);
    }
    return before;
}

// Stores the n positions with the largest scores, ascending. A block for each row finds the n-th largest score, eight
// bits in each pass, and computes scores again in each pass. If more scores equal it than there is room for, one thread
// puts all scores into a heap.
extern "C" __global__ void __launch_bounds__(256, 2) plain_choose(const frit_choose_args a)
{
    extern __shared__ __align__(128) char shared[];
    __shared__ u32 counts[256], prefix, wanted, n_equals;
    __shared__ float scores[256];
    const int row = blockIdx.x, thread = threadIdx.x, dim = a.keys.dim;
    const int n_seen = ((const int *)a.positions)[row] + 1;
    const int *pages = (const int *)a.pages + ((const int *)a.seq_of)[row] * a.page_stride;
    float *q = (float *)shared, *y = (float *)a.y + (long long)row * a.n;
    for (int d = thread; d < a.n_heads * dim; d += 256)
        q[d] = ((const float *)a.q)[(long long)row * a.n_heads * dim + d];
    if (thread == 0) prefix = 0, wanted = a.n;
    __syncthreads();
    hadamard<256>(q, a.n_heads * dim, a.keys.hadamard, thread, [] { __syncthreads(); });
    const chooser c = {a, pages, q, (const float *)a.w + (long long)row * a.n_heads, a.n_heads};
    for (int shift = 24; shift >= 0 && n_seen > a.n; shift -= 8) {
        counts[thread] = 0;
        __syncthreads();
        for (int p = thread; p < n_seen; p += 256) {
            const u32 key = c.key(p);
            if (shift == 24 || key >> (shift + 8) == prefix) atomicAdd(&counts[key >> shift & 255], 1u);
        }
        __syncthreads();
        if (thread == 0) {
            int digit = 255;
            for (; counts[digit] < wanted; digit--) wanted -= counts[digit];
            prefix = prefix << 8 | digit;
            n_equals = counts[digit];
        }
        __syncthreads();
    }
    const u32 least = prefix;
    const bool is_all = n_seen <= a.n, has_ties = !is_all && n_equals > wanted;
    best_heap heap = {(float *)a.heaps + (long long)row * 2 * a.n, 0, 0, a.n};
    heap.ids = (int *)(heap.scores + a.n);
    for (int first = 0; first < n_seen && has_ties; first += 256) {
        if (first + thread < n_seen) scores[thread] = c.score_of(first + thread);
        __syncthreads();
        for (int i = 0; i < 256 && first + i < n_seen && thread == 0; i++) heap.offer(scores[i], first + i);
        __syncthreads();
    }
    int n_taken = 0;
    for (int first = 0; first < n_seen; first += 256) {
        const int p = first + thread;
        const u32 key = p < n_seen && !is_all ? c.key(p) : 0;
        int all_taken;
        bool is_taken = p < n_seen && (is_all || key > least || (key == least && !has_ties));
        for (int i = 0; i < a.n && has_ties && p < n_seen && key == least; i++) is_taken = is_taken || heap.ids[i] == p;
        const int at = n_taken + place_among(is_taken, counts, &all_taken);
        if (is_taken) y[at] = (float)p;
        n_taken += all_taken;
    }
    for (int i = n_taken + thread; i < a.n; i += 256) y[i] = -1;
}
