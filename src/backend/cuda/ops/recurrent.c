// SPDX-License-Identifier: MIT
// Launches of kernels/recurrent.cu.
#include "backend/cuda/ops/recurrent.h"
#include "backend/cuda/exec.h"

enum { THREADS = 256, WARPS = THREADS / 32, MOST_N = 256 };   // MOST_N: numbers of a row of a head's state

typedef struct op_row {
    const char *kernel;
    bool has_heads;   // a warp has a row of a head's state; otherwise a thread has a channel
} op_row;

static const op_row rows[FRIT_OP_COUNT] = {
    [FRIT_OP_CONV] = {"recurrent_conv", false},  [FRIT_OP_SCAN] = {"recurrent_scan", true},
    [FRIT_OP_DELTA] = {"recurrent_delta", true}, [FRIT_OP_SHIFT] = {"recurrent_shift", false},
    [FRIT_OP_WKV] = {"recurrent_wkv", false},
};

// Keys of a node whose state has heads: [rows, groups, n].
static const frit_node *keys_of(const frit_node *node)
{
    return node->src[node->op == FRIT_OP_SCAN ? 3 : 1];
}

static int n_elements(const frit_node *node)
{
    int64_t n = 1;
    for (int d = 0; d < node->n_dims; d++) n *= node->shape[d];
    return (int)n;
}

bool frit_cuda_recurrent_fits(const frit_node *node)
{
    return !rows[node->op].has_heads || frit_cuda_width(keys_of(node)) <= MOST_N;
}

static frit_status run_recurrent(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const op_row *row = &rows[l->node->op];
    frit_recurrent_args args = l->recurrent;
    for (int i = 0; i < l->node->n_src; i++) args.x[i] = frit_cuda_resolve(step, l->x[i]);
    args.y = frit_cuda_resolve(step, l->y);
    args.seqs = step->arrays[FRIT_CUDA_SEQS];
    const int n = row->has_heads ? args.size[0] * args.size[1] : args.size[0], each = row->has_heads ? WARPS : THREADS;
    return frit_cuda_run_kernel(d, l->kernel, (unsigned)((n + each - 1) / each), (unsigned)step->batch->n_seqs, &args);
}

// Sizes: heads, dim, groups, n, then what the kernel of the op documents.
static void fill_heads(const frit_node *node, int *size)
{
    const frit_node *x = node->src[0], *keys = keys_of(node);
    size[0] = (int)x->shape[1], size[1] = (int)x->shape[2];
    size[2] = (int)keys->shape[1], size[3] = (int)keys->shape[2];
    if (node->op == FRIT_OP_SCAN) {
        size[4] = n_elements(node->src[2]) / size[0];
        return;
    }
    const frit_node *decay = node->src[3];
    const bool is_fixed = decay->op == FRIT_OP_WEIGHT;
    size[4] = is_fixed || decay->n_dims == 2 ? 1 : (int)decay->shape[2];
    size[5] = (node->state.interleaved ? 1 : 0) | (is_fixed ? 2 : 0);
}

frit_status frit_cuda_lower_recurrent(frit_exec *exec, const frit_node *node)
{
    const op_row *row = &rows[node->op];
    const frit_cache_layer *layer = &exec->cache->layers[node->state.layer];
    const uint64_t base = ((const frit_cuda_memory *)exec->cache->memory)->address;
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    for (int i = 0; i < node->n_src; i++)
        if (node->src[i]) FRIT_TRY(frit_cuda_address_of(exec, node->src[i], false, &l->x[i]));
    FRIT_TRY(frit_cuda_address_of(exec, node, false, &l->y));
    l->run = run_recurrent;
    l->recurrent = (frit_recurrent_args){
        .states = base + layer->states_offset + (uint64_t)node->state.offset * sizeof(float),
        .n_state = layer->spec.n_state,
    };
    int *size = l->recurrent.size;
    size[0] = (int)frit_cuda_width(node);
    if (row->has_heads) fill_heads(node, size);
    if (node->op == FRIT_OP_CONV) size[1] = n_elements(node->src[1]) / size[0];
    return frit_cuda_kernel_get_named(exec, "recurrent.cu", row->kernel, THREADS, 0, &l->kernel);
}
