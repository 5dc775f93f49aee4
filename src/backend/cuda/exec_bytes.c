// SPDX-License-Identifier: MIT
// GPU memory that preparing a plan allocates beside weights and cache, computed from the plan's nodes.
#include "backend/cuda/exec_bytes.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/attend.h"
#include "backend/cuda/ops/cache.h"
#include "backend/cuda/ops/gemm_small.h"
#include "backend/cuda/ops/gemm_wgmma.h"
#include "backend/cuda/ops/precise.h"
#include "backend/cuda/ops/linear.h"
#include "backend/cuda/ops/rows.h"
#include "backend/cuda/picks.h"
#include "backend/cuda/weights/weights.h"
#include "base/check.h"

enum { ALIGNMENT = 512 };

static void add_bytes(uint64_t *sum, uint64_t n_bytes)
{
    if (!frit_align_u64(n_bytes, ALIGNMENT, &n_bytes) || !frit_add_u64(*sum, n_bytes, sum)) *sum = UINT64_MAX / 4;
}

static const frit_node *matrix_of(const frit_node *node)
{
    return frit_node_storage(node->src[1]);
}

// ------------------------------------------------------------------------------- work memory

// Bytes of the partial results that blocks of a gemv exchange.
static uint64_t partial_bytes(const frit_exec *exec, const frit_node *linear)
{
    enum { MOST_ROWS = 16, ONLY_ROWS = 8 };
    const int64_t most = linear->shape[0] < MOST_ROWS ? linear->shape[0] : MOST_ROWS;
    const int64_t n_rows = exec->device->is_deterministic ? ONLY_ROWS : most;
    const int n_tiles = (int)((frit_cuda_width(linear) + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS);
    return frit_cuda_product_partial_bytes(
        &(frit_cuda_product){.rows = (int)n_rows,
                             .k = (int)matrix_of(linear)->shape[1],
                             .segments = {{matrix_of(linear)->tensor->dtype, n_tiles}}},
        &exec->device->gpu);
}

// Work memory of gemm.c and heads.c. Products of a phase may run as one product, as queries, keys and values do, or
// gates with values, so all products of the phase count as one.
static uint64_t work_of(const frit_exec *exec, const frit_phase *phase)
{
    uint64_t n_bytes = 0, n = 0, k = 0, n_rows = 0, partial = 0;
    bool is_gemm = false, is_fp8 = false;
    for (int i = 0; i < phase->n_products; i++) {
        const frit_fusion *fusion = &phase->products[i];
        for (int j = 0; j < fusion->n_nodes; j++) {
            const frit_node *node = fusion->nodes[j];
            if (node->op != FRIT_OP_LINEAR || !frit_cuda_linear_fits(node)) continue;
            const uint64_t columns = (uint64_t)matrix_of(node)->shape[1], rows = (uint64_t)node->shape[0];
            n += ((uint64_t)frit_cuda_width(node) + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS * FRIT_TILE_ROWS;
            if (columns > k) k = columns;
            if (rows > n_rows) n_rows = rows;
            is_gemm = is_gemm || frit_cuda_is_gemm(exec, node);
            is_fp8 = is_fp8 || matrix_of(node)->tensor->dtype == FRIT_DTYPE_FP8_128;
            const uint64_t own = partial_bytes(exec, node);
            if (own > partial) partial = own;
        }
    }
    if (exec->is_precise) return n_rows * n * sizeof(float);
    const frit_cuda_gpu *gpu = &exec->device->gpu;
    uint64_t results = n_rows * n * sizeof(float);
    const uint64_t small = is_gemm ? frit_cuda_gemm_small_bytes(gpu, n, n_rows) : 0,
                   wgmma = is_gemm && frit_cuda_has_wgmma(gpu) ? frit_cuda_gemm_wgmma_bytes(gpu, n, n_rows) : 0;
    if (small > results) results = small;
    if (wgmma > results) results = wgmma;
    add_bytes(&n_bytes, results);
    if (!is_gemm) return n_bytes > partial ? n_bytes : partial;
    add_bytes(&n_bytes, frit_cuda_f16_input_bytes(exec->device, (int64_t)k, (int64_t)n_rows));
    add_bytes(&n_bytes, n_rows * sizeof(float));
    if (exec->device->has_fp8_inputs && is_fp8) {   // e4m3 and scales of 128
        add_bytes(&n_bytes, (n_rows + 7) / 8 * 8 * k);
        add_bytes(&n_bytes, (n_rows + 7) / 8 * 8 * (k / 128) * sizeof(float));
    }
    if (frit_cuda_gemm_is_wgmma(gpu, (int64_t)k)) return n_bytes;
    add_bytes(&n_bytes, FRIT_CUBLASLT_WORKSPACE_BYTES);
    add_bytes(&n_bytes, n * k * 2);   // weights as f16
    return n_bytes;
}

// ------------------------------------------------------------------------------- what a plan keeps

static bool is_same_source(const frit_node *a, const frit_node *b, int source)
{
    const frit_node *x = a->n_src > source ? a->src[source] : NULL, *y = b->n_src > source ? b->src[source] : NULL;
    return x && y ? frit_node_storage(x) == frit_node_storage(y) : x == y;
}

// True if an earlier rotation of the graph has the same table (heads.c).
static bool has_table(const frit_graph *g, int n, const frit_node *rope)
{
    for (int i = 0; i < n; i++) {
        const frit_node *other = g->nodes[i];
        if (other->op == FRIT_OP_ROPE && other->rope.dim == rope->rope.dim &&
            other->rope.magnitude == rope->rope.magnitude && is_same_source(other, rope, 2) &&
            is_same_source(other, rope, 3))
            return true;
    }
    return false;
}

static uint64_t n_kv_heads_of(const frit_graph *g, int32_t layer)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const frit_node *keys = g->nodes[i]->op == FRIT_OP_KV_WRITE ? g->nodes[i]->src[0] : NULL;
        if (keys && g->nodes[i]->layer == layer && keys->n_dims == 3) return (uint64_t)keys->shape[1];
    }
    return 1;
}

static uint64_t attend_work(const frit_exec *exec, const frit_node *attend)
{
    const frit_node *queries = attend->src[0];
    if (queries->n_dims != 3 || exec->is_precise) return 0;
    const frit_cuda_heads heads = {.n_heads = (int)queries->shape[1],
                                   .n_kv_heads = (int)n_kv_heads_of(exec->plan->graph, attend->attend.layer),
                                   .head_size = (int)queries->shape[2]};
    return frit_cuda_attend_work(exec, &heads, attend->attend.window, queries->shape[0]);
}

// Partial results of attention whose pages are divided among blocks (attend.c). All rows together have as many parts as
// there are blocks.
static void add_parts(const frit_exec *exec, const frit_node *attend, uint64_t *n_bytes)
{
    const frit_node *queries = attend->src[0];
    if (queries->n_dims != 3) return;
    const uint64_t n_heads = (uint64_t)queries->shape[1], size = (uint64_t)queries->shape[2],
                   n_kv_heads = n_kv_heads_of(exec->plan->graph, attend->attend.layer),
                   n_blocks = (uint64_t)exec->device->gpu.n_multiprocessors * (size > 128 ? 1 : 2);
    const uint64_t n_rows = queries->shape[0] < 256 ? (uint64_t)queries->shape[0] : 256;
    add_bytes(n_bytes, n_rows * n_heads * sizeof(uint32_t));   // counters of rows whose parts lie in the work memory
    if (exec->device->is_deterministic) return;
    add_bytes(n_bytes, n_blocks / n_kv_heads * n_heads * (size + 2) * sizeof(float));
    add_bytes(n_bytes, n_blocks * sizeof(uint32_t));
}

static uint64_t plan_bytes(const frit_exec *exec)
{
    const frit_graph *g = exec->plan->graph;
    uint64_t n_bytes = 0;
    add_bytes(&n_bytes, exec->plan->input_bytes);
    add_bytes(&n_bytes, (uint64_t)exec->device->gpu.n_multiprocessors * sizeof(uint32_t));   // counters of gemv.c
    for (int i = 0; i < g->n_nodes; i++) {
        const frit_node *node = g->nodes[i];
        if (node->op == FRIT_OP_ATTEND) add_parts(exec, node, &n_bytes);
        if (node->op == FRIT_OP_GLU) add_bytes(&n_bytes, 2 * sizeof(float));   // bounds of gemm.c
        if (node->op == FRIT_OP_ROUTE) add_bytes(&n_bytes, frit_cuda_route_bytes(node));
        if (node->op == FRIT_OP_CHOOSE) add_bytes(&n_bytes, frit_cuda_choose_bytes(node));
        if (node->op == FRIT_OP_ROPE && !has_table(g, i, node))
            add_bytes(&n_bytes, (uint64_t)g->max_rows * (uint64_t)node->rope.dim * sizeof(float));
    }
    return n_bytes;
}

// ------------------------------------------------------------------------------- all

static bool is_experts(const frit_node *node)
{
    return node->op == FRIT_OP_EXPERTS || node->op == FRIT_OP_EXPERTS_GLU || node->op == FRIT_OP_EXPERTS_MIX;
}

// A step's input. Buffers that are too small grow to 3/2 of what is needed.
static uint64_t input_bytes(const frit_graph *g)
{
    enum { WORDS = 4 };   // token, position, output row, sequence
    const uint64_t row = WORDS * sizeof(int32_t) + sizeof(frit_gpu_seq) + sizeof(frit_row_tile);
    return FRIT_CUDA_FLIGHTS * (uint64_t)g->max_rows * row * 3 / 2;
}

frit_status frit_cuda_exec_bytes(frit_device *base, frit_plan *plan, frit_exec_bytes *out)
{
    frit_cuda_device *d = (frit_cuda_device *)base;
    const frit_exec exec = {.device = d, .plan = plan, .is_precise = frit_cuda_is_precise(&d->gpu, plan->graph)};
    uint64_t work = 0;
    for (int i = 0; i < plan->phases.n; i++) {
        const uint64_t n_bytes = work_of(&exec, &plan->phases.list[i]);
        if (n_bytes > work) work = n_bytes;
    }
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const frit_node *node = plan->graph->nodes[i];
        const uint64_t n_bytes = is_experts(node)             ? frit_cuda_experts_bytes(node)
                                 : node->op == FRIT_OP_ATTEND ? attend_work(&exec, node)
                                                              : 0;
        if (n_bytes > work) work = n_bytes;
    }
    *out = (frit_exec_bytes){.own = plan_bytes(&exec)};
    add_bytes(&out->shared, plan->scratch_bytes);
    add_bytes(&out->shared, work);
    add_bytes(&out->shared, input_bytes(plan->graph));
    if (plan->graph->output) add_bytes(&out->shared, frit_cuda_picks_bytes(plan->graph->max_outs));
    if (!plan->streams) return FRIT_OK;
    uint64_t tiles, rest;
    FRIT_TRY(frit_cuda_plan_weights(plan, &tiles, &rest));
    for (int i = 0; i < FRIT_CUDA_STREAM_BUFFERS; i++) add_bytes(&out->shared, tiles);
    add_bytes(&out->own, rest);
    return FRIT_OK;
}
