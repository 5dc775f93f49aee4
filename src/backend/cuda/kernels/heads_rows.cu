// SPDX-License-Identifier: MIT
// Queries, keys and values after their product: adds partial results and bias, computes head norms and rotations,
// stores queries in the type QUERIES, and writes keys and values to the cache. If the cache type has blocks, queries
// are mixed as keys are (quant/hadamard.h). A warp for each head of a row. Grid: rows, ceil(heads / 8); 256 threads.
//
// Defined by the host: HEADS, KV_HEADS, HEAD (a multiple of 4; of 32, unless the cache is in f16), KEY_TYPE, VALUE_TYPE
// (FRIT_GPU_CACHE_F16 ...), PAGE_BYTES, ORDER (frit_cuda_row_order of queries and keys; values are in natural order),
// ROTATED (rotated dimensions of a head), ROTATES_NEOX (pairs are p and p + ROTATED / 2), HAS_BIAS, HAS_NORM, QUERIES
// (NUMBERS_F16 or NUMBERS_F32).
#include "cache.cuh"
#include "cache_types.cuh"
#include "parts.cuh"
#include "rows.cuh"

#define ORDER_ADJACENT 1
#define ORDER_NEOX   2
#define PAIRS_EACH    ((HEAD / 2 + 31) / 32)
#define IS_CODED      (KEY_TYPE != FRIT_GPU_CACHE_F16 || VALUE_TYPE != FRIT_GPU_CACHE_F16)

// Index of dimension d of a head in the results of the product.
DEVICE int place_of(int d)
{
    const int half = HEAD / 2, p = ORDER == ORDER_ADJACENT ? d / 2 : d % half;
    if (ORDER == ORDER_ADJACENT) return p / 8 * 16 + p % 8 + d % 2 * 8;
    if (ORDER == ORDER_NEOX) return p / 8 * 16 + p % 8 + d / half * 8;
    return d;
}

// The dimensions of pair i. Rotated pairs come first.
DEVICE void pair_of(int i, int &d, int &e)
{
    const bool is_halved = ROTATES_NEOX && i < ROTATED / 2;
    d = is_halved ? i : 2 * i;
    e = is_halved ? i + ROTATED / 2 : 2 * i + 1;
}

static_assert(!IS_CODED || (QUERIES == NUMBERS_F16 && HEAD % 32 == 0), "what is in other types has fast attention");

DEVICE int mixed_of(int type)
{
    return !is_block(type) ? 1 : (HEAD & -HEAD) < 256 ? HEAD & -HEAD : 256;
}

// Writes a head, which is in shared memory, to a cache that is not f16.
DEVICE void store_row(int type, bool is_by_dim, frit_gpu_ptr pages, long long page, int head, int position, float *row)
{
    const int lane = threadIdx.x % 32;
    frit_gpu_side side = {};
    side.pages = pages;
    side.page_bytes = PAGE_BYTES;
    side.kind = type;
    side.is_transposed = is_by_dim && !is_block(type);
    side.row_bytes = is_block(type) ? HEAD / 32 * block_bytes(type) : HEAD * block_bytes(type);
    hadamard<32>(row, HEAD, mixed_of(type), lane, [] { __syncwarp(); });
    char *to = (char *)row_of(side, page, head, position);
#pragma unroll
    for (int d = 0; d < HEAD; d += 32) cache_store(side, to, d, row[d + lane]);
}

extern "C" __global__ void __launch_bounds__(256) heads_rows(const frit_heads_args a)
{
    __shared__ float rows[8][IS_CODED ? HEAD : 1];
    const int row = blockIdx.x, head = blockIdx.y * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float *own = rows[threadIdx.x / 32];
    wait_for_kernel_before();
    let_next_kernel_start();   // attention, which may read old keys and values already
    if (head >= HEADS + 2 * KV_HEADS) return;
    const bool is_query = head < HEADS, is_key = !is_query && head < HEADS + KV_HEADS;
    const float *x = (const float *)a.x + (long long)row * ((HEADS + 2 * KV_HEADS) * HEAD) + head * HEAD;
    const int kind = is_query ? 0 : is_key ? 1 : 2, first = is_query ? 0 : is_key ? HEADS : HEADS + KV_HEADS;
    const float *bias = HAS_BIAS ? (const float *)a.bias[kind] + (head - first) * HEAD : nullptr;
    const bool has_bias = HAS_BIAS && a.bias[kind];
    const int position = ((const int *)a.positions)[row];
    const int seq = ((const int *)a.seqs)[row];
    const long long page = ((const int *)a.pages)[(long long)seq * a.page_stride + position / 32];
    const long long part = gridDim.x * (long long)((HEADS + 2 * KV_HEADS) * HEAD);
    const float row_scale = a.scales ? ((const float *)a.scales)[row] : 1;
    float v[PAIRS_EACH], w[PAIRS_EACH], squares = 0;
#pragma unroll
    for (int j = 0; j < PAIRS_EACH; j++) {
        const int i = j * 32 + lane;
        int d, e;
        v[j] = w[j] = 0;
        if (i >= HEAD / 2) continue;
        pair_of(i, d, e);
        const bool is_natural = !is_query && !is_key;
        v[j] = sum_of_parts(x + (is_natural ? d : place_of(d)), part, a.n_parts) * row_scale;
        w[j] = sum_of_parts(x + (is_natural ? e : place_of(e)), part, a.n_parts) * row_scale;
        if (has_bias) v[j] += bias[d], w[j] += bias[e];
        squares += v[j] * v[j] + w[j] * w[j];
    }
    if (!is_query && !is_key) {
        u16 *values = cache_values(a.values, page, head - HEADS - KV_HEADS) + position % 32;
#pragma unroll
        for (int j = 0; j < PAIRS_EACH; j++) {
            int d, e;
            pair_of(j * 32 + lane, d, e);
            if (j * 32 + lane >= HEAD / 2) continue;
            if (VALUE_TYPE != FRIT_GPU_CACHE_F16) {
                own[d] = v[j], own[e] = w[j];
                continue;
            }
            values[d * 32] = float_to_half(v[j]);
            values[e * 32] = float_to_half(w[j]);
        }
        if (VALUE_TYPE != FRIT_GPU_CACHE_F16) {
            __syncwarp();
            store_row(VALUE_TYPE, true, a.values, page, head - HEADS - KV_HEADS, position, own);
        }
        return;
    }
    const float norm = HAS_NORM ? rsqrtf(warp_sum(squares) / HEAD + a.epsilon) : 1;
    const float *weights = (const float *)(is_query ? a.query_norm : a.key_norm);
    const long long at = ((long long)row * HEADS + head) * HEAD;   // first number of the query
    u16 *out = is_query ? (u16 *)a.queries + at : cache_key(a.keys, page, head - HEADS, position);
    const float scale = is_query ? a.query_scale : 1;
#pragma unroll
    for (int j = 0; j < PAIRS_EACH; j++) {
        const int i = j * 32 + lane;
        int d, e;
        if (i >= HEAD / 2) continue;
        pair_of(i, d, e);
        if (HAS_NORM) v[j] *= norm * weights[d], w[j] *= norm * weights[e];
        float2 rotation = make_float2(1, 0);
        if (i < ROTATED / 2) rotation = ((const float2 *)a.rope)[(long long)row * (ROTATED / 2) + i];
        const float y = (v[j] * rotation.x - w[j] * rotation.y) * scale,
                    z = (v[j] * rotation.y + w[j] * rotation.x) * scale;
        if (is_query ? is_block(KEY_TYPE) : KEY_TYPE != FRIT_GPU_CACHE_F16) {
            own[d] = y, own[e] = z;
        } else if (QUERIES == NUMBERS_F32 && is_query) {
            ((float *)a.queries)[at + d] = y;
            ((float *)a.queries)[at + e] = z;
        } else {
            out[d] = float_to_half(y);
            out[e] = float_to_half(z);
        }
    }
    if (KEY_TYPE == FRIT_GPU_CACHE_F16 || (is_query && !is_block(KEY_TYPE))) return;
    __syncwarp();
    if (!is_query) return store_row(KEY_TYPE, false, a.keys, page, head - HEADS, position, own);
    hadamard<32>(own, HEAD, mixed_of(KEY_TYPE), lane, [] { __syncwarp(); });
#pragma unroll
    for (int d = lane; d < HEAD; d += 32) out[d] = float_to_half(own[d]);
}
