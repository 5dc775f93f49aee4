// SPDX-License-Identifier: MIT
// Finding graphs that need products in f32. Attention scores are exponents. If they are neither divided by the root of
// the head size nor computed from normed queries and keys (T5), they reach hundreds, and the rounding of activations to
// f16 or to 15 bits changes probabilities by percents. Errors of all products add up, so all of them are precise.
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/precise.h"

#include <math.h>

// True if queries have a norm: follows sources over rotations and factors, up to a product or a norm.
static bool is_normed(const frit_node *heads)
{
    const frit_node *node = frit_node_storage(heads);
    while (node->op == FRIT_OP_ROPE || node->op == FRIT_OP_SCALE || node->op == FRIT_OP_MUL)
        node = frit_node_storage(node->src[0]);
    return node->op != FRIT_OP_LINEAR;
}

bool frit_cuda_is_precise(const frit_cuda_gpu *gpu, const frit_graph *g)
{
    if (!frit_cuda_has_tensor_products(gpu)) return true;
    const float usual = 4;   // limit of scale * sqrt(head size), which usually is 1
    for (int i = 0; i < g->n_nodes; i++) {
        const frit_node *node = g->nodes[i];
        if (node->op != FRIT_OP_ATTEND || node->attend.softcap != 0 || is_normed(node->src[0])) continue;
        if (node->attend.scale * sqrtf((float)frit_cuda_width(node->src[0])) >= usual) return true;
    }
    return false;
}

frit_status frit_cuda_precise_kernel(frit_dtype dtype, int k, int n_tiles, frit_cuda_kernel *kernel)
{
    if (k < 32 || k % 32)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product has %d columns; expected a multiple of 32", k);
    if (!frit_tile_format_of(dtype))
        return frit_fail(FRIT_E_UNSUPPORTED, "type %s has no tiles for GPUs", frit_dtype_get(dtype)->name);
    *kernel = (frit_cuda_kernel){
        .file = "precise_rows.cu", .name = "precise_rows", .grid = {(unsigned)n_tiles, 1, 1}, .threads = 256};
    frit_cuda_define(kernel, "TYPE0", frit_dtype_get(dtype)->gguf_id);
    frit_cuda_define(kernel, "K", k);
    frit_cuda_define(kernel, "ROWS", FRIT_CUDA_PRECISE_ROWS);
    return FRIT_OK;
}
