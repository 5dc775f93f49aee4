// SPDX-License-Identifier: MIT
// Launches of kernels/recurrent.wgsl.
#include "backend/webgpu/ops/recurrent.h"
#include "backend/webgpu/ops/launch.h"
#include "backend/webgpu/weights/weights.h"

#include <stdio.h>

enum { THREADS = 64, LANES = 32, MOST_N = 256, MOST_SOURCES = 5 };   // MOST_N: numbers of a row of a head's state

typedef struct op_row {
    const char *define;   // NULL: no recurrent op
    bool has_heads;       // threads have a row of a head's state; otherwise a thread has a channel
} op_row;

static const op_row rows[FRIT_OP_COUNT] = {
    [FRIT_OP_CONV] = {"OP_CONV", false},   [FRIT_OP_SCAN] = {"OP_SCAN", true}, [FRIT_OP_DELTA] = {"OP_DELTA", true},
    [FRIT_OP_SHIFT] = {"OP_SHIFT", false}, [FRIT_OP_WKV] = {"OP_WKV", false},
};

// Keys of a node whose state has heads: [rows, groups, n].
static const frit_node *keys_of(const frit_node *node)
{
    return node->src[node->op == FRIT_OP_SCAN ? 3 : 1];
}

bool frit_webgpu_recurrent_fits(const frit_node *node)
{
    return node->n_src <= MOST_SOURCES && (!rows[node->op].has_heads || frit_node_width(keys_of(node)) <= MOST_N);
}

static void grid_seqs(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    grid[0] = (uint32_t)((l->n[0] + l->n[1] - 1) / l->n[1]);
    grid[1] = (uint32_t)step->batch->n_seqs;
    grid[2] = 1;
}

static frit_status bind_source(frit_exec *exec, frit_webgpu_launch *l, int i, const frit_node *source)
{
    const frit_node *storage = frit_node_storage(source);
    const frit_webgpu_tensor *tensor;
    char name[24];
    snprintf(name, sizeof name, "HAS_%d", i);
    frit_webgpu_define(&l->wanted, name, 1);
    if (storage->op != FRIT_OP_WEIGHT) {
        l->params[PARAM_RECURRENT_SOURCE0 + i] = frit_webgpu_offset(exec, source);
        return FRIT_OK;
    }
    FRIT_TRY(frit_webgpu_tensor_get(exec->device, storage->tensor, false, &tensor));
    snprintf(name, sizeof name, "AT%d", i);
    frit_webgpu_define(&l->wanted, name, 1);
    snprintf(name, sizeof name, "BINDING%d", i);
    frit_webgpu_define(&l->wanted, name, l->n_bindings);
    frit_webgpu_bind_buffer(l, 'r', &tensor->parts[0]);
    return FRIT_OK;
}

// Sizes: heads, dim, groups, n, numbers of a decay.
static void set_heads(const frit_node *node, frit_webgpu_launch *l)
{
    const frit_node *x = node->src[0], *keys = keys_of(node), *decay = node->src[3];
    const bool is_fixed = node->op == FRIT_OP_DELTA && frit_node_storage(decay)->op == FRIT_OP_WEIGHT;
    uint32_t *size = l->params + PARAM_RECURRENT_SIZE0;
    size[0] = (uint32_t)x->shape[1], size[1] = (uint32_t)x->shape[2];
    size[2] = (uint32_t)keys->shape[1], size[3] = (uint32_t)keys->shape[2];
    if (node->op == FRIT_OP_SCAN)
        size[4] = (uint32_t)(frit_node_elems(node->src[2]) / x->shape[1]);
    else
        size[4] = is_fixed || decay->n_dims == 2 ? 1 : (uint32_t)decay->shape[2];
    l->params[PARAM_RECURRENT_IS_INTERLEAVED] = node->state.interleaved;
    l->params[PARAM_RECURRENT_IS_FIXED] = is_fixed;
    frit_webgpu_define(&l->wanted, "COUNT", (keys->shape[2] + LANES - 1) / LANES);
    l->n[0] = x->shape[1] * x->shape[2];
    l->n[1] = THREADS / LANES;
}

frit_status frit_webgpu_lower_recurrent(frit_exec *exec, const frit_fusion *fusion)
{
    const frit_node *node = fusion->nodes[0];
    const frit_cache_layer *layer = &exec->cache->layers[node->state.layer];
    frit_webgpu_launch *l;
    FRIT_TRY(frit_webgpu_launch_new(exec, node, "recurrent.wgsl", &l));
    frit_webgpu_bind_buffer(l, 'w', &((const frit_webgpu_memory *)exec->cache->memory)->buffer);
    frit_webgpu_define(&l->wanted, rows[node->op].define, 1);
    for (int i = 0; i < node->n_src; i++)
        if (node->src[i]) FRIT_TRY(bind_source(exec, l, i, node->src[i]));
    l->params[PARAM_RECURRENT_Y] = frit_webgpu_offset(exec, node);
    l->params[PARAM_RECURRENT_STATES] = (uint32_t)(layer->states_offset / sizeof(float)) + (uint32_t)node->state.offset;
    l->params[PARAM_RECURRENT_N_STATE] = (uint32_t)layer->spec.n_state;
    l->params[PARAM_RECURRENT_SIZE0] = (uint32_t)frit_node_width(node);
    if (node->op == FRIT_OP_CONV)
        l->params[PARAM_RECURRENT_SIZE1] = (uint32_t)(frit_node_elems(node->src[1]) / frit_node_width(node));
    l->n[0] = frit_node_width(node);
    l->n[1] = THREADS;
    if (rows[node->op].has_heads) set_heads(node, l);
    l->grid = grid_seqs;
    return FRIT_OK;
}
