// SPDX-License-Identifier: MIT
// Launches of attention (kernels/attend.wgsl, attend_rows.wgsl, attend_sum.wgsl) and of writes to the cache.
#include "backend/webgpu/ops/attend.h"
#include "backend/webgpu/ops/launch.h"
#include "backend/webgpu/ops/product.h"
#include "backend/webgpu/step_input.h"
#include "backend/webgpu/weights/weights.h"

#include <string.h>

enum { MOST_DIM = 512, THREADS = 128, MOST_HEADS = 8, MOST_PARTS = 64, DECODE_ROWS = 8 };
// Positions that a group of threads attends to at a time: with few rows few, so that there are more groups.
enum { SPAN = 64, LONG_SPAN = 256 };

// False for keys without values (latent attention).
static bool has_values(const frit_node *written)
{
    const frit_node *storage = written ? frit_node_storage(written) : NULL;
    return !storage || storage->op != FRIT_OP_KV_WRITE || (storage->n_src > 1 && storage->src[1]);
}

bool frit_webgpu_cache_fits(const frit_node *node)
{
    const int64_t k_dim = frit_node_width(node->src[0]);
    if (k_dim > MOST_DIM || k_dim % 2) return false;
    if (node->op == FRIT_OP_KV_WRITE) return has_values(node) && frit_node_width(node->src[1]) <= MOST_DIM;
    const frit_node *extra = node->n_src > 2 ? node->src[2] : NULL;
    return frit_node_width(node) <= MOST_DIM && frit_node_width(node) % 2 == 0 &&
           (node->n_src < 2 || has_values(node->src[1])) &&
           (!extra || node->attend.ends_at > 0 || frit_node_storage(extra)->op == FRIT_OP_WEIGHT);
}

static int type_of(frit_dtype dtype)
{
    static const frit_dtype types[] = {FRIT_DTYPE_F32, FRIT_DTYPE_F16, FRIT_DTYPE_BF16, FRIT_DTYPE_Q8_0,
                                       FRIT_DTYPE_Q4_0};
    for (size_t i = 0; i < FRIT_COUNT(types); i++)
        if (types[i] == dtype) return (int)i;
    return -1;
}

// Parameters and definitions of kernels/cache.wgsl.
static frit_status bind_cache(const frit_exec *exec, const frit_cache_layer *layer, frit_webgpu_launch *l)
{
    const frit_cache_side *sides[] = {&layer->k, &layer->v};
    static const char *const names[][3] = {{"K_TYPE", "K_DIM", "HADAMARD_K"}, {"V_TYPE", "V_DIM", "HADAMARD_V"}};
    l->params[PARAM_CACHE_GROUP] = (uint32_t)layer->group;
    l->params[PARAM_CACHE_N_KV] = (uint32_t)layer->spec.n_head_kv;
    for (int i = 0; i < 2; i++) {
        const int type = type_of(sides[i]->dtype);
        const bool is_transposed = i == 0 && type < 3;
        if (type < 0)
            return frit_fail(FRIT_E_UNSUPPORTED,
                             "the cache has type %s; with webgpu it has f32, f16, bf16, q8_0 or q4_0",
                             frit_dtype_get(sides[i]->dtype)->name);
        if (sides[i]->transposed != is_transposed || sides[i]->page_bytes % 4 || sides[i]->offset % 4)
            return frit_fail(FRIT_E_INTERNAL, "the cache lies in another order than webgpu reads");
        frit_webgpu_define(&l->wanted, names[i][0], type);
        frit_webgpu_define(&l->wanted, names[i][1], sides[i]->dim);
        frit_webgpu_define(&l->wanted, names[i][2], sides[i]->hadamard);
        uint32_t *side = l->params + (i == 0 ? PARAM_CACHE_K_PAGE : PARAM_CACHE_V_PAGE);
        side[0] = (uint32_t)(sides[i]->page_bytes / 4);
        side[1] = (uint32_t)(sides[i]->offset / 4);
        side[2] = (uint32_t)sides[i]->row_bytes;
    }
    (void)exec;
    return FRIT_OK;
}

static const frit_gpu_buffer *cache_of(const frit_exec *exec)
{
    return &((const frit_webgpu_memory *)exec->cache->memory)->buffer;
}

frit_status frit_webgpu_cache_write_new(frit_exec *exec, const frit_node *node, frit_webgpu_launch **out)
{
    const frit_cache_layer *layer = &exec->cache->layers[node->layer];
    FRIT_TRY(frit_webgpu_launch_new(exec, node, "cache_write.wgsl", out));
    frit_webgpu_launch *l = *out;
    frit_webgpu_bind_buffer(l, 'w', cache_of(exec));
    FRIT_TRY(bind_cache(exec, layer, l));
    frit_webgpu_define(&l->wanted, "MOST_DIM", layer->k.dim > layer->v.dim ? layer->k.dim : layer->v.dim);
    l->params[PARAM_CACHE_WRITE_K] = frit_webgpu_offset(exec, node->src[0]);
    l->params[PARAM_CACHE_WRITE_V] = frit_webgpu_offset(exec, node->src[1]);
    l->n[0] = layer->spec.n_head_kv;
    l->n[1] = 2;
    l->grid = frit_webgpu_grid_rows;
    return FRIT_OK;
}

frit_status frit_webgpu_lower_cache_write(frit_exec *exec, const frit_fusion *fusion)
{
    frit_webgpu_launch *l;
    return frit_webgpu_cache_write_new(exec, fusion->nodes[0], &l);
}

// ------------------------------------------------------------------------------- attention

int32_t frit_webgpu_parts_of(const frit_batch *batch)
{
    if (batch->n_rows > DECODE_ROWS) return 1;
    const int64_t n = (frit_webgpu_longest(batch) + SPAN - 1) / SPAN + 1, most = MOST_PARTS / batch->n_rows;
    return (int32_t)(frit_webgpu_longest(batch) <= SPAN ? 1 : n < most ? n : most);
}

int32_t frit_webgpu_blocks_of(const frit_batch *batch)
{
    enum { MOST_SHORT = 4 };   // rows of a sequence, on average, that go row by row
    int32_t n = 0;
    if (batch->n_rows <= DECODE_ROWS || batch->n_rows <= MOST_SHORT * batch->n_seqs) return 0;
    for (int32_t i = 0; i < batch->n_seqs; i++)
        n += (batch->seqs[i].n_rows + FRIT_WEBGPU_BLOCK_ROWS - 1) / FRIT_WEBGPU_BLOCK_ROWS;
    return n;
}

static void grid_attend(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    grid[0] = step->n_blocks > 0 ? 0 : (uint32_t)step->n_parts;
    grid[1] = (uint32_t)l->n[0];
    grid[2] = (uint32_t)frit_webgpu_rows(l->node, step->batch);
}

// n[1]: values are transformed, so that every row has a sum.
static void grid_sum(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    const bool is_needed = step->n_parts > 1 || l->n[1];
    grid[0] = (uint32_t)l->n[0];
    grid[1] = is_needed ? (uint32_t)frit_webgpu_rows(l->node, step->batch) : 0;
    grid[2] = 1;
}

static void set_params(const frit_exec *exec, const frit_node *node, frit_webgpu_launch *l)
{
    const frit_attend *a = &node->attend;
    l->params[PARAM_SPAN_Q] = frit_webgpu_offset(exec, node->src[0]);
    l->params[PARAM_SPAN_Y] = frit_webgpu_offset(exec, node);
    l->params[PARAM_SPAN_WINDOW] = (uint32_t)a->window;
    l->params[PARAM_SPAN_CHUNK] = (uint32_t)a->chunk;
    l->params[PARAM_SPAN_KIND] = a->cross ? 2 : a->bidirectional ? 1 : 0;
    l->params[PARAM_SPAN_SCALE] = frit_webgpu_float(a->scale);
    l->params[PARAM_SPAN_SOFTCAP] = frit_webgpu_float(a->softcap);
    l->params[PARAM_SPAN_ALIBI] = frit_webgpu_float(a->alibi);
    l->params[PARAM_SPAN_REACH] = (uint32_t)a->reach;
    l->params[PARAM_SPAN_TEMP_SCALE] = frit_webgpu_float(a->temp_scale);
    l->params[PARAM_SPAN_TEMP_OFFSET] = frit_webgpu_float(a->temp_offset);
    l->params[PARAM_SPAN_TEMP_LENGTH] = (uint32_t)a->temp_length;
    if (a->ends_at == 0) return;
    l->params[PARAM_SPAN_ENDS] = frit_webgpu_offset(exec, node->src[2]) + (uint32_t)a->ends_at;
    l->params[PARAM_SPAN_ENDS_WIDTH] = (uint32_t)node->src[2]->shape[1];
}

static frit_status bind_gains(frit_exec *exec, const frit_node *node, frit_webgpu_launch *l)
{
    const frit_webgpu_tensor *gains;
    if (node->n_src < 3 || !node->src[2] || node->attend.ends_at > 0) return FRIT_OK;
    FRIT_TRY(frit_webgpu_tensor_get(exec->device, frit_node_storage(node->src[2])->tensor, false, &gains));
    frit_webgpu_define(&l->wanted, node->attend.reach > 0 ? "GAINS" : "SINKS", 1);
    frit_webgpu_bind_buffer(l, 'r', &gains->parts[0]);
    return FRIT_OK;
}

// Query, scores and, with short spans, partial scores of a head are in workgroup memory.
static int64_t heads_at_once(int64_t group, int64_t k_dim, int64_t span)
{
    enum { MOST_BYTES = 14 << 10 };
    int64_t n = group < MOST_HEADS ? group : MOST_HEADS;
    while (n > 1 && n * (k_dim + span + (span < LONG_SPAN ? LONG_SPAN : 0)) * 4 > MOST_BYTES) n--;
    return n;
}

// A launch with the bindings and parameters that all kernels of attention have.
static frit_status new_launch(frit_exec *exec, const frit_node *node, const char *file, frit_webgpu_launch **out)
{
    const frit_cache_layer *layer = &exec->cache->layers[node->attend.layer];
    const bool is_sum = strcmp(file, "attend_sum.wgsl") == 0;
    FRIT_TRY(frit_webgpu_launch_new(exec, node, file, out));
    if (!is_sum) frit_webgpu_bind_buffer(*out, 'r', cache_of(exec));
    frit_webgpu_bind_shared(*out, is_sum ? 'r' : 'w', FRIT_WEBGPU_PARTS);
    FRIT_TRY(bind_gains(exec, node, *out));
    FRIT_TRY(bind_cache(exec, layer, *out));
    frit_webgpu_define(&(*out)->wanted, "GROUP", node->src[0]->shape[1] / layer->spec.n_head_kv);
    set_params(exec, node, *out);
    return FRIT_OK;
}

// The rows of products that the sum of the parts makes the input for; NULL: none.
static const frit_node *packed_of(const frit_exec *exec, const frit_node *node)
{
    const frit_cache_layer *layer = &exec->cache->layers[node->attend.layer];
    if (exec->plan->graph->max_rows > DECODE_ROWS || layer->v.hadamard > 1 || layer->v.dim % 4 != 0) return NULL;
    return frit_webgpu_input_of_products(exec, node);
}

// Row by row.
static frit_status add_by_row(frit_exec *exec, const frit_node *node)
{
    const frit_cache_layer *layer = &exec->cache->layers[node->attend.layer];
    const int64_t n_kv = layer->spec.n_head_kv, group = node->src[0]->shape[1] / n_kv;
    const int64_t span = exec->plan->graph->max_rows > DECODE_ROWS ? LONG_SPAN : SPAN;
    const int64_t heads = heads_at_once(group, layer->k.dim, span), chunks = (group + heads - 1) / heads;
    frit_webgpu_launch *l;
    FRIT_TRY(new_launch(exec, node, "attend.wgsl", &l));
    frit_webgpu_define(&l->wanted, "PACKS", packed_of(exec, node) != NULL);
    frit_webgpu_define(&l->wanted, "HEADS", heads);
    frit_webgpu_define(&l->wanted, "SPAN", span);
    frit_webgpu_define(&l->wanted, "T_COUNT", (layer->v.dim / 2 + THREADS - 1) / THREADS);
    l->params[PARAM_SPAN_CHUNKS] = (uint32_t)chunks;
    l->n[0] = n_kv * chunks;
    l->grid = grid_attend;
    return FRIT_OK;
}

// n[1]: groups of threads for a block of rows.
static void grid_blocks(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    grid[0] = (uint32_t)l->n[0];
    grid[1] = (uint32_t)(step->n_blocks * l->n[1]);
    grid[2] = 1;
}

// By blocks of rows, in steps with prompts.
static frit_status add_by_blocks(frit_exec *exec, const frit_node *node)
{
    enum { QUERY_BYTES = 8 << 10 };   // of workgroup memory
    const frit_cache_layer *layer = &exec->cache->layers[node->attend.layer];
    const int64_t n_pairs = layer->v.dim / 2;
    int64_t n_rows = FRIT_WEBGPU_BLOCK_ROWS, n_groups = 1;
    while (n_rows * layer->k.dim * (int64_t)sizeof(float) > QUERY_BYTES) n_rows /= 2;
    while (2 * n_groups * n_pairs <= THREADS && 2 * n_groups <= n_rows) n_groups *= 2;
    frit_webgpu_launch *l;
    FRIT_TRY(new_launch(exec, node, "attend_rows.wgsl", &l));
    frit_webgpu_define(&l->wanted, "ROWS", n_rows);
    frit_webgpu_define(&l->wanted, "VALUE_GROUPS", n_groups);
    frit_webgpu_define(&l->wanted, "T_COUNT", (n_pairs + THREADS - 1) / THREADS);
    l->n[0] = node->src[0]->shape[1];
    l->n[1] = FRIT_WEBGPU_BLOCK_ROWS / n_rows;
    l->grid = grid_blocks;
    return FRIT_OK;
}

// Adds the parts of each head.
static frit_status add_sums(frit_exec *exec, const frit_node *node)
{
    const frit_cache_layer *layer = &exec->cache->layers[node->attend.layer];
    frit_webgpu_launch *l;
    FRIT_TRY(new_launch(exec, node, "attend_sum.wgsl", &l));
    l->n[0] = node->src[0]->shape[1];
    l->n[1] = layer->v.hadamard > 1;
    l->grid = grid_sum;
    return FRIT_OK;
}

// Adds the parts, and makes the input of products of the sums.
static frit_status add_packed_sums(frit_exec *exec, const frit_node *node, const frit_node *packed)
{
    frit_webgpu_launch *l;
    FRIT_TRY(new_launch(exec, node, "attend_sum.wgsl", &l));
    frit_webgpu_define(&l->wanted, "PACKS", l->n_bindings);
    frit_webgpu_define(&l->wanted, "IS_INT", 1);
    frit_webgpu_bind_shared(l, 'w', FRIT_WEBGPU_ACTS);
    l->n[0] = l->params[PARAM_ATTEND_SUM_BLOCKS] = (uint32_t)frit_webgpu_input_reserve(exec, packed, true);
    l->n[1] = 1;
    l->grid = grid_sum;
    return FRIT_OK;
}

frit_status frit_webgpu_lower_attend(frit_exec *exec, const frit_fusion *fusion)
{
    const frit_node *node = fusion->nodes[0], *packed = packed_of(exec, node);
    const frit_cache_layer *layer = &exec->cache->layers[node->attend.layer];
    const int64_t n_head = node->src[0]->shape[1], n_rows = exec->plan->graph->max_rows;
    FRIT_TRY(add_by_row(exec, node));
    if (n_rows > DECODE_ROWS) FRIT_TRY(add_by_blocks(exec, node));
    FRIT_TRY(packed ? add_packed_sums(exec, node, packed) : add_sums(exec, node));
    // Rows of small steps have parts; with transformed values every row has one.
    const uint64_t n_parts = (uint64_t)(MOST_PARTS > n_rows ? MOST_PARTS : n_rows);
    const uint64_t n_bytes = n_parts * (uint64_t)n_head * (uint64_t)(layer->v.dim + 2) * 4;
    if (n_bytes > exec->parts_bytes) exec->parts_bytes = n_bytes;
    return FRIT_OK;
}
