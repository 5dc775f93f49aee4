// SPDX-License-Identifier: MIT
// Nodes that are written in f16 for gemms, where their rows lie, and norms that write f16.
#include "backend/cuda/ops/f16_input.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/gemm_small.h"
#include "backend/cuda/ops/gemm_wgmma.h"
#include "backend/cuda/ops/linear.h"
#include "backend/cuda/ops/rows.h"

int frit_cuda_slab_rows(const frit_cuda_device *device, int64_t width, int64_t n_rows)
{
    const bool is_in_slabs = n_rows >= FRIT_CUDA_GEMM_WGMMA_FROM && frit_cuda_gemm_is_wgmma(&device->gpu, width);
    return is_in_slabs ? (int)(n_rows + 7) / 8 * 8 : 0;
}

uint64_t frit_cuda_f16_input_bytes(const frit_cuda_device *device, int64_t width, int64_t max_rows)
{
    const int64_t in_slabs = frit_cuda_slab_rows(device, width, max_rows);
    return (uint64_t)(in_slabs ? in_slabs : max_rows) * (uint64_t)width * sizeof(uint16_t);
}

static bool is_gemm_product(const frit_exec *exec, const frit_node *node)
{
    return node->op == FRIT_OP_LINEAR && frit_cuda_linear_fits(node) && frit_cuda_is_gemm(exec, node);
}

// Bytes of the f16 rows, scales and squares of a node.
static uint64_t input_bytes(const frit_exec *exec, const frit_node *node)
{
    return frit_cuda_f16_input_bytes(exec->device, frit_cuda_row_elems(node), node->shape[0]) +
           2 * (uint64_t)node->shape[0] * sizeof(float);
}

bool frit_cuda_feeds_gemm(const frit_exec *exec, const frit_node *node)
{
    const frit_graph *g = exec->plan->graph;
    int n_products = 0;
    if (exec->is_precise) return false;
    for (int i = 0; i < g->n_nodes; i++) {
        const frit_node *reader = g->nodes[i];
        if (reader->op == FRIT_OP_RESHAPE) continue;
        for (int s = 0; s < reader->n_src; s++) {
            if (!reader->src[s] || frit_node_storage(reader->src[s]) != node) continue;
            if (s > 0 || !is_gemm_product(exec, reader)) return false;
            n_products++;
        }
    }
    for (int i = 0; i < g->n_results; i++)
        if (frit_node_storage(g->results[i]) == node) return false;
    const uint64_t room = (uint64_t)node->shape[0] * (uint64_t)frit_cuda_row_elems(node) * sizeof(float);
    return n_products > 0 && (!g->output || frit_node_storage(g->output) != node) && input_bytes(exec, node) <= room;
}

// The f16 rows take about half of the memory of the node's f32. Scales, and the squares of a norm, follow them there.
// Results of attention are averages of cached values, so they fit into f16 without scales.
frit_cuda_f16_input frit_cuda_f16_input_of(const frit_exec *exec, const frit_node *node)
{
    const uint64_t at = exec->plan->offsets[node->id];
    const uint64_t n_bytes = frit_cuda_f16_input_bytes(exec->device, frit_cuda_row_elems(node), node->shape[0]);
    frit_cuda_f16_input input = {.rows = {FRIT_CUDA_SCRATCH, at}};
    if (node->op != FRIT_OP_ATTEND) input.scales = (frit_cuda_address){FRIT_CUDA_SCRATCH, at + n_bytes};
    if (node->op == FRIT_OP_RMS_NORM || node->op == FRIT_OP_LAYER_NORM)
        input.squares = (frit_cuda_address){FRIT_CUDA_SCRATCH, at + n_bytes + (uint64_t)node->shape[0] * sizeof(float)};
    return input;
}

// ------------------------------------------------------------------------------- norms

const frit_cuda_kernel *frit_cuda_f16_norm_kernel(const frit_cuda_f16_norm *norm, int64_t n_rows)
{
    return n_rows <= FRIT_CUDA_GEMM_SMALL_ROWS ? norm->small_kernel : norm->kernel;
}

static frit_status run_norm(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_cuda_f16_norm *norm = &l->norm;
    const int64_t n_rows = frit_cuda_rows(l->node, step->batch);
    const frit_norm_args args = {.x = frit_cuda_resolve(step, l->x[0]),
                                 .y = frit_cuda_resolve(step, norm->y.rows),
                                 .scales = frit_cuda_resolve(step, norm->y.scales),
                                 .squares = frit_cuda_resolve(step, norm->y.squares),
                                 .weight = frit_cuda_resolve(step, norm->weight),
                                 .bias = frit_cuda_resolve(step, norm->bias),
                                 .epsilon = norm->epsilon,
                                 .slab_rows = frit_cuda_slab_rows(d, frit_cuda_width(l->node), n_rows)};
    frit_cuda_kernel one = *frit_cuda_f16_norm_kernel(norm, n_rows);
    one.grid[0] = (unsigned)n_rows;
    if (one.grid[0] == 0) return FRIT_OK;
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

typedef struct range {
    frit_cuda_address begin;
    uint64_t n_bytes;
} range;

static bool overlap(range a, range b)
{
    return a.begin.where == b.begin.where && a.begin.at < b.begin.at + b.n_bytes && b.begin.at < a.begin.at + a.n_bytes;
}

// The launch that computes the rows of the norm, if it can compute the norm too; otherwise NULL. The memory of the norm
// must not overlap its operands: while one block writes its row of the norm, other blocks still read theirs.
static frit_cuda_launch *maker_of(frit_exec *exec, const frit_node *norm, const frit_cuda_f16_input *y)
{
    frit_cuda_launch *l = exec->n_launches > 0 ? &exec->launches[exec->n_launches - 1] : NULL;
    if (!l || !frit_cuda_gemm_can_norm(l, norm)) return NULL;
    const uint64_t scale_bytes = (uint64_t)norm->shape[0] * sizeof(float),
                   row_bytes = scale_bytes * (uint64_t)frit_cuda_width(norm);
    const range made = {y->rows, input_bytes(exec, norm)};
    const range read[] = {{l->x[3], row_bytes}, {l->y, row_bytes}, {l->gemm.x.scales, scale_bytes}};
    for (size_t i = 0; i < FRIT_COUNT(read); i++)
        if (overlap(made, read[i])) return NULL;
    return l;
}

frit_status frit_cuda_lower_f16_norm(frit_exec *exec, const frit_node *node)
{
    frit_cuda_f16_norm norm = {.y = frit_cuda_f16_input_of(exec, node), .epsilon = node->eps};
    frit_cuda_launch *l = maker_of(exec, node, &norm.y);
    frit_cuda_kernel kernel;
    frit_cuda_norm shape = {.width = (int)frit_cuda_width(node),
                            .is_layer = node->op == FRIT_OP_LAYER_NORM,
                            .has_weight = node->n_src > 1 && node->src[1],
                            .has_bias = node->n_src > 2 && node->src[2],
                            .out = FRIT_CUDA_F16,
                            .is_scaled = true,
                            .joins = l != NULL};
    FRIT_TRY(frit_cuda_norm_kernel(&shape, &kernel));
    FRIT_TRY(frit_cuda_kernel_get(exec->device, &kernel, &norm.kernel));
    shape.is_small = true;
    FRIT_TRY(frit_cuda_norm_kernel(&shape, &kernel));
    FRIT_TRY(frit_cuda_kernel_get(exec->device, &kernel, &norm.small_kernel));
    if (shape.has_weight) FRIT_TRY(frit_cuda_address_of(exec, node->src[1], false, &norm.weight));
    if (shape.has_bias) FRIT_TRY(frit_cuda_address_of(exec, node->src[2], false, &norm.bias));
    exec->is_f16_input[node->id] = true;
    if (l) {
        l->gemm.norm = norm;
        return FRIT_OK;
    }
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    l->run = run_norm;
    l->norm = norm;
    return frit_cuda_address_of(exec, node->src[0], false, &l->x[0]);
}
