// SPDX-License-Identifier: MIT
// Queries, keys and values: one product for all three, then bias, head norms, rotation and cache writes. A gemv rotates
// and writes the cache itself if heads have neither bias nor norm. Otherwise heads_rows.cu follows the product.
#include "backend/cuda/ops/heads.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/cache.h"
#include "backend/cuda/ops/linear.h"
#include "backend/cuda/ops/rows.h"
#include "backend/cuda/weights/weights.h"
#include "format/rows.h"

#include <math.h>
#include <stdlib.h>

enum { QUERIES, KEYS, VALUES };

// ------------------------------------------------------------------------------- which phases

static const frit_node *bias_of(const frit_node *linear)
{
    return linear->n_src > 2 ? linear->src[2] : NULL;
}

static const frit_tensor *matrix_of(const frit_node *linear)
{
    return frit_node_storage(linear->src[1])->tensor;
}

static bool is_product(const frit_phase *phase, const frit_node *node)
{
    for (int i = 0; i < phase->n_products; i++)
        if (phase->products[i].nodes[0] == node) return phase->products[i].n_nodes == 1;
    return false;
}

// Follows the sources of what attention or the cache reads back to the product, over a rotation and a norm if present.
static bool trace_to_product(const frit_phase *phase, frit_cuda_heads_phase *h, int which, const frit_node *node)
{
    node = frit_node_storage(node);
    if (which == QUERIES) h->query = node;
    if (node->op == FRIT_OP_ROPE && which != VALUES) {
        h->ropes[which] = node;
        node = frit_node_storage(node->src[0]);
    }
    if (node->op == FRIT_OP_RMS_NORM && which != VALUES && node->n_dims == 3 && node->n_src > 1) {
        h->norms[which] = node;
        node = frit_node_storage(node->src[0]);
    }
    h->products[which] = node;
    return node->op == FRIT_OP_LINEAR && is_product(phase, node);
}

static const frit_node *find_write(const frit_phase *phase)
{
    for (int i = 0; i < phase->n_epilogue; i++)
        if (phase->epilogue[i].nodes[0]->op == FRIT_OP_KV_WRITE) return phase->epilogue[i].nodes[0];
    return NULL;
}

static const frit_node *find_attend(const frit_graph *g, int32_t layer)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op == FRIT_OP_ATTEND && g->nodes[i]->attend.layer == layer) return g->nodes[i];
    return NULL;
}

static bool is_known(const frit_cuda_heads_phase *h, const frit_node *node)
{
    bool found = node == h->write || node == h->attend;
    for (int i = 0; i < 3; i++) found = found || node == h->products[i];
    for (int i = 0; i < 2; i++) found = found || (node && (node == h->norms[i] || node == h->ropes[i]));
    return found;
}

// True if nodes outside of the phase read results that the fused kernels do not store.
static bool is_read_elsewhere(const frit_graph *g, const frit_cuda_heads_phase *h)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const frit_node *node = g->nodes[i];
        if (node->op == FRIT_OP_RESHAPE || is_known(h, node)) continue;
        for (int s = 0; s < node->n_src; s++) {
            const frit_node *read = node->src[s] ? frit_node_storage(node->src[s]) : NULL;
            if (read && read != h->attend && read != h->write && is_known(h, read)) return true;
        }
    }
    for (int i = 0; i < g->n_results; i++)
        if (is_known(h, frit_node_storage(g->results[i])) && g->results[i] != h->attend) return true;
    return false;
}

static bool is_same_weight(const frit_node *a, const frit_node *b)
{
    if (!a || !b) return a == b;
    a = frit_node_storage(a), b = frit_node_storage(b);
    return a->op == FRIT_OP_WEIGHT && b->op == FRIT_OP_WEIGHT && frit_tensor_is_same(a->tensor, b->tensor);
}

static bool rotate_alike(const frit_node *a, const frit_node *b)
{
    if (!a || !b) return a == b;
    const frit_rope *p = &a->rope, *q = &b->rope;
    return p->style == q->style && p->dim == q->dim && p->offset == 0 && q->offset == 0 &&
           p->magnitude == q->magnitude && is_same_weight(a->src[2], b->src[2]) &&
           is_same_weight(a->n_src > 3 ? a->src[3] : NULL, b->n_src > 3 ? b->src[3] : NULL);
}

static frit_cuda_heads shape_of(const frit_exec *exec, const frit_cuda_heads_phase *h)
{
    const frit_cache_layer *layer = &exec->cache->layers[h->write->layer];
    return (frit_cuda_heads){.n_heads = h->n_heads,
                             .n_kv_heads = h->n_kv_heads,
                             .head_size = h->head_size,
                             .is_neox = h->ropes[0] && h->ropes[0]->rope.style == FRIT_ROPE_NEOX,
                             .page_bytes = (int64_t)layer->k.page_bytes,
                             .keys = frit_cuda_cache_kind(layer->k.dtype),
                             .values = frit_cuda_cache_kind(layer->v.dtype)};
}

// A cache that is not f16 is supported if attend.h reads it.
static bool fits_types(const frit_exec *exec, const frit_cuda_heads_phase *h)
{
    const frit_cuda_heads heads = shape_of(exec, h);
    if (!frit_cuda_has_codes(&heads)) return true;
    return frit_cuda_is_attended(heads.keys) && frit_cuda_is_attended(heads.values) &&
           frit_cuda_can_attend(exec, h->attend) &&
           frit_cuda_attend_rows_bytes(&heads) <= exec->device->gpu.shared_bytes;
}

static bool fits_cache(const frit_exec *exec, const frit_cuda_heads_phase *h)
{
    const frit_cache_layer *layer = &exec->cache->layers[h->write->layer];
    const bool has_blocks = frit_dtype_get(layer->v.dtype)->block_elems > 1;
    return fits_types(exec, h) && !layer->k.transposed && layer->v.transposed == !has_blocks &&
           layer->k.dim == h->head_size && layer->v.dim == h->head_size && layer->spec.n_head_kv == h->n_kv_heads &&
           layer->k.page_bytes == layer->v.page_bytes;
}

static bool fits_products(const frit_cuda_heads_phase *h)
{
    const frit_node *x = frit_node_storage(h->products[0]->src[0]);
    for (int i = 0; i < 3; i++) {
        const frit_node *p = h->products[i];
        const int64_t width = (i == QUERIES ? h->n_heads : h->n_kv_heads) * (int64_t)h->head_size;
        if (!frit_cuda_linear_fits(p) || p->adapts || p->factor != 0 || frit_node_storage(p->src[0]) != x ||
            matrix_of(p)->shape[0] != width)
            return false;
    }
    return matrix_of(h->products[QUERIES])->dtype == matrix_of(h->products[KEYS])->dtype;
}

bool frit_cuda_is_of_heads(const frit_cuda_heads_phase *h, const frit_fusion *fusion)
{
    return is_known(h, fusion->nodes[0]);
}

bool frit_cuda_is_heads(const frit_exec *exec, const frit_phase *phase, frit_cuda_heads_phase *h)
{
    *h = (frit_cuda_heads_phase){.write = find_write(phase)};
    if (exec->is_precise || !h->write || h->write->n_src != 2) return false;
    h->attend = find_attend(exec->plan->graph, h->write->layer);
    if (!h->attend || h->attend->attend.cross || !trace_to_product(phase, h, QUERIES, h->attend->src[0]) ||
        !trace_to_product(phase, h, KEYS, h->write->src[0]) || !trace_to_product(phase, h, VALUES, h->write->src[1]))
        return false;
    for (int i = 0; i < phase->n_epilogue; i++)
        if (!is_known(h, phase->epilogue[i].nodes[0]) || phase->epilogue[i].n_nodes != 1) return false;
    h->head_size = (int)frit_cuda_width(h->attend->src[0]);
    h->n_heads = (int)h->attend->src[0]->shape[1];
    h->n_kv_heads = exec->cache->layers[h->write->layer].spec.n_head_kv;
    frit_cuda_products wanted;
    if (h->products[0] == h->products[1] || h->head_size % 16 || !fits_products(h) || !fits_cache(exec, h) ||
        !rotate_alike(h->ropes[0], h->ropes[1]) || !h->norms[0] != !h->norms[1] ||
        (h->norms[0] && h->norms[0]->eps != h->norms[1]->eps) || is_read_elsewhere(exec->plan->graph, h))
        return false;
    frit_cuda_describe_heads(exec, h, NULL, &wanted);
    return frit_cuda_can_gemv(exec, &wanted, 1);
}

// ------------------------------------------------------------------------------- the product

// True if a gemv could rotate these heads. It decides the order of rows in tiles, which all plans share, so it must not
// depend on the plan's number of rows or on the cache type.
static bool can_rotate(const frit_exec *exec, const frit_cuda_heads_phase *h)
{
    for (int i = 0; i < 3; i++)
        if (bias_of(h->products[i])) return false;
    return h->ropes[0] && h->ropes[0]->rope.dim == h->head_size && !h->norms[0] &&
           frit_cuda_can_attend(exec, h->attend);
}

static frit_cuda_row_order order_of(const frit_exec *exec, const frit_cuda_heads_phase *h)
{
    if (!can_rotate(exec, h)) return FRIT_CUDA_ORDER_NATURAL;
    return h->ropes[0]->rope.style == FRIT_ROPE_NEOX ? FRIT_CUDA_ORDER_NEOX : FRIT_CUDA_ORDER_ADJACENT;
}

void frit_cuda_describe_heads(const frit_exec *exec, const frit_cuda_heads_phase *h, const frit_node *norm,
                              frit_cuda_products *out)
{
    const frit_tensor *q = matrix_of(h->products[QUERIES]), *v = matrix_of(h->products[VALUES]);
    const int n_kv = h->n_kv_heads * h->head_size, n_qk = h->n_heads * h->head_size + n_kv;
    *out = (frit_cuda_products){.node = h->products[QUERIES],
                                .norm = norm,
                                .k = (int)q->shape[1],
                                .n = n_qk + n_kv,
                                .segments = {{q->dtype, n_qk / FRIT_TILE_ROWS}, {v->dtype, n_kv / FRIT_TILE_ROWS}},
                                .epilogue = FRIT_GPU_STORE};
    const frit_cuda_heads heads = shape_of(exec, h);
    if (!can_rotate(exec, h) || frit_cuda_has_codes(&heads) || frit_cuda_is_gemm(exec, h->products[QUERIES])) return;
    out->epilogue = FRIT_GPU_QKV;
    out->heads = heads;
}

static uint64_t page_0(const frit_exec *exec, const frit_cache_side *side)
{
    return ((const frit_cuda_memory *)exec->cache->memory)->address + side->offset;
}

// Scores are exponents of 2, so queries are multiplied by log2(e).
static float query_scale(const frit_exec *exec, const frit_cuda_heads_phase *h)
{
    return exec->is_f16[h->query->id] ? h->attend->attend.scale * 1.4426950408889634f : 1;
}

// ------------------------------------------------------------------------------- rope tables

static frit_status run_rope(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_rope_rows_args args = {.positions = step->arrays[FRIT_CUDA_ANGLES],
                                      .frequency = frit_cuda_resolve(step, l->x[0]),
                                      .factor = frit_cuda_resolve(step, l->x[1]),
                                      .rope = frit_cuda_resolve(step, l->y),
                                      .magnitude = l->node->rope.magnitude};
    return frit_cuda_run_kernel(d, l->kernel, (unsigned)step->batch->n_rows, 1, &args);
}

static frit_status new_rope_table(frit_exec *exec, const frit_node *rope, frit_cuda_rope_table *tables)
{
    frit_cuda_launch *l;
    frit_cuda_kernel kernel;
    const uint64_t n_bytes = (uint64_t)exec->plan->graph->max_rows * (uint64_t)rope->rope.dim * sizeof(float);
    FRIT_TRY(frit_cuda_rope_kernel(rope->rope.dim, &kernel));
    FRIT_TRY(frit_cuda_plan_alloc(exec, n_bytes, false, &tables->table));
    FRIT_TRY(frit_cuda_launch_new(exec, rope, &l));
    l->run = run_rope;
    l->x[0] = (frit_cuda_address){FRIT_CUDA_FIXED, tables->frequency};
    l->x[1] = (frit_cuda_address){tables->factor ? FRIT_CUDA_FIXED : FRIT_CUDA_NOWHERE, tables->factor};
    l->y = (frit_cuda_address){FRIT_CUDA_FIXED, tables->table};
    return frit_cuda_kernel_get(exec->device, &kernel, &l->kernel);
}

// The rope table of a rotation. Layers that rotate alike share it; the first one adds the launch that computes it.
static frit_status take_rope_table(frit_exec *exec, const frit_node *rope, frit_cuda_address *table)
{
    frit_cuda_address frequency, factor = {FRIT_CUDA_NOWHERE, 0};
    FRIT_TRY(frit_cuda_address_of(exec, rope->src[2], false, &frequency));
    if (rope->n_src > 3 && rope->src[3]) FRIT_TRY(frit_cuda_address_of(exec, rope->src[3], false, &factor));
    table->where = FRIT_CUDA_FIXED;
    for (int i = 0; i < exec->n_rope_tables; i++) {
        const frit_cuda_rope_table *t = &exec->rope_tables[i];
        table->at = t->table;
        if (t->frequency == frequency.at && t->factor == factor.at && t->rotated == rope->rope.dim &&
            t->magnitude == rope->rope.magnitude)
            return FRIT_OK;
    }
    frit_cuda_rope_table *tables = realloc(exec->rope_tables, (size_t)(exec->n_rope_tables + 1) * sizeof *tables);
    if (!tables) return frit_fail_memory(sizeof *tables, "the rope tables of a plan");
    exec->rope_tables = tables;
    tables = &exec->rope_tables[exec->n_rope_tables++];
    *tables = (frit_cuda_rope_table){frequency.at, factor.at, rope->rope.dim, rope->rope.magnitude, 0};
    FRIT_TRY(new_rope_table(exec, rope, tables));
    table->at = tables->table;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- launches

static frit_status run_heads(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const int n_parts = l->heads.follows_gemm ? frit_cuda_gemm_parts(l - 1, step->batch->n_rows) : 1;
    const frit_heads_args args = {.x = frit_cuda_resolve(step, l->x[0]),
                                  .scales = frit_cuda_resolve(step, l->x[1]),
                                  .bias = {l->heads.bias[0], l->heads.bias[1], l->heads.bias[2]},
                                  .query_norm = frit_cuda_resolve(step, l->x[2]),
                                  .key_norm = frit_cuda_resolve(step, l->x[3]),
                                  .rope = frit_cuda_resolve(step, l->x[4]),
                                  .positions = step->arrays[FRIT_CUDA_POSITIONS],
                                  .seqs = step->arrays[FRIT_CUDA_SEQ_OF],
                                  .pages = frit_cuda_pages_of(l, step),
                                  .queries = frit_cuda_resolve(step, l->y),
                                  .keys = l->heads.keys,
                                  .values = l->heads.values,
                                  .epsilon = l->heads.epsilon,
                                  .query_scale = l->heads.query_scale,
                                  .page_stride = step->page_stride,
                                  .n_parts = n_parts};
    frit_cuda_kernel one = *l->kernel;
    one.grid[0] = (unsigned)step->batch->n_rows;
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

// Adds the launch of heads_rows.cu, which reads the product's results in the work memory.
static frit_status lower_rest(frit_exec *exec, const frit_cuda_heads_phase *h, frit_cuda_address results,
                              frit_cuda_address scales, frit_cuda_address table)
{
    const frit_cache_layer *layer = &exec->cache->layers[h->write->layer];
    const frit_cuda_heads_rows rows = {.heads = shape_of(exec, h),
                                       .order = order_of(exec, h),
                                       .rotated = h->ropes[0] ? h->ropes[0]->rope.dim : 0,
                                       .style = h->ropes[0] ? h->ropes[0]->rope.style : FRIT_ROPE_INTERLEAVED,
                                       .has_bias = bias_of(h->products[0]) || bias_of(h->products[1]) ||
                                                   bias_of(h->products[2]),
                                       .has_norm = h->norms[0],
                                       .has_f32_queries = !exec->is_f16[h->query->id]};
    frit_cuda_kernel kernel;
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_heads_kernel(&rows, &kernel));
    FRIT_TRY(frit_cuda_launch_new(exec, h->query, &l));
    l->run = run_heads;
    l->group = layer->group;
    l->x[0] = results, l->x[1] = scales, l->x[4] = table;
    l->heads = (frit_cuda_heads_args){.follows_gemm = frit_cuda_is_gemm(exec, h->products[0]),
                                      .keys = page_0(exec, &layer->k),
                                      .values = page_0(exec, &layer->v),
                                      .epsilon = h->norms[0] ? h->norms[0]->eps : 0,
                                      .query_scale = query_scale(exec, h)};
    for (int i = 0; i < 3; i++) {
        frit_cuda_address bias = {FRIT_CUDA_NOWHERE, 0};
        if (bias_of(h->products[i])) FRIT_TRY(frit_cuda_address_of(exec, bias_of(h->products[i]), false, &bias));
        l->heads.bias[i] = bias.at;
        if (i < 2 && h->norms[i]) FRIT_TRY(frit_cuda_address_of(exec, h->norms[i]->src[1], false, &l->x[2 + i]));
    }
    FRIT_TRY(frit_cuda_address_of(exec, h->query, false, &l->y));
    return frit_cuda_kernel_get(exec->device, &kernel, &l->kernel);
}

static frit_status take_tiles(frit_exec *exec, const frit_cuda_heads_phase *h, frit_cuda_launch *l)
{
    const frit_cuda_pair pair = {.first = matrix_of(h->products[QUERIES]),
                                 .second = matrix_of(h->products[KEYS]),
                                 .order = order_of(exec, h),
                                 .head_size = h->head_size};
    for (int i = 0; i < 3; i++) l->matrices[i] = matrix_of(h->products[i]);
    FRIT_TRY(frit_cuda_tiles_get(exec, &pair, &l->x[1]));
    return frit_cuda_tensor_get(exec, matrix_of(h->products[VALUES]), true, &l->x[4]);
}

// The product writes f32 to the work memory, or queries in f16 if it rotates heads and writes the cache itself.
static frit_status lower_product(frit_exec *exec, const frit_cuda_heads_phase *h, const frit_cuda_products *wanted,
                                 const frit_node *norm, frit_cuda_launch *l)
{
    const int64_t n_rows = h->products[0]->shape[0];
    FRIT_TRY(frit_cuda_address_of(exec, norm ? norm->src[0] : h->products[0]->src[0], false, &l->x[0]));
    if (norm) FRIT_TRY(frit_cuda_address_of(exec, norm->src[1], false, &l->x[2]));
    FRIT_TRY(take_tiles(exec, h, l));
    if (frit_cuda_is_gemm(exec, h->products[0])) return frit_cuda_lower_gemm(exec, wanted, n_rows, NULL, l);
    FRIT_TRY(frit_cuda_lower_gemv(exec, wanted, n_rows, l));
    if (wanted->epilogue == FRIT_GPU_QKV) return frit_cuda_address_of(exec, h->query, false, &l->y);
    const uint64_t n_bytes = (uint64_t)n_rows * (uint64_t)wanted->n * sizeof(float);
    if (n_bytes > exec->work_bytes) exec->work_bytes = n_bytes;
    l->y = (frit_cuda_address){FRIT_CUDA_WORK, 0};
    return FRIT_OK;
}

frit_status frit_cuda_lower_heads(frit_exec *exec, const frit_cuda_heads_phase *h, const frit_node *norm)
{
    const frit_cache_layer *layer = &exec->cache->layers[h->write->layer];
    const bool is_gemm = frit_cuda_is_gemm(exec, h->products[0]);
    frit_cuda_address table = {FRIT_CUDA_NOWHERE, 0}, scales = table;
    frit_cuda_products wanted;
    frit_cuda_launch *l;
    exec->is_f16[h->query->id] = frit_cuda_can_attend(exec, h->attend);
    if (h->ropes[0]) FRIT_TRY(take_rope_table(exec, h->ropes[0], &table));
    frit_cuda_describe_heads(exec, h, norm, &wanted);
    FRIT_TRY(frit_cuda_launch_new(exec, h->products[0], &l));
    FRIT_TRY(lower_product(exec, h, &wanted, norm, l));
    l->group = layer->group;
    if (wanted.epilogue == FRIT_GPU_QKV) {
        l->x[5] = table;
        l->gemv.rotated = h->head_size;
        l->gemv.row_bytes = h->n_heads * h->head_size * 2;
        l->gemv.query_scale = query_scale(exec, h);
        l->gemv.keys = page_0(exec, &layer->k);
        l->gemv.values = page_0(exec, &layer->v);
        return FRIT_OK;
    }
    if (is_gemm) scales = l->gemm.x.scales;
    return lower_rest(exec, h, (frit_cuda_address){FRIT_CUDA_WORK, is_gemm ? l->gemm.product : 0}, scales, table);
}
