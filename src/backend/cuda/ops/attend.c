// SPDX-License-Identifier: MIT
// Launches of attention with queries in f16, which heads.c writes: flash decoding (kernels/attend.cu) for single rows,
// and kernels/attend_rows.cu for prompts.
#include "backend/cuda/ops/attend.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/cache.h"
#include "backend/cuda/ops/rows.h"
#include "backend/cuda/shared_pages.h"

// Pages of 32 positions from which a kernel that copies pages ahead is faster. With many rows each block of threads has
// all pages of its row, so that the copies begin to pay earlier.
enum { FAR_FROM = 64, FAR_FROM_OF_MANY_ROWS = 16 };

static int head_size_of(const frit_node *attend)
{
    return (int)frit_cuda_width(attend->src[0]);
}

static int n_kv_heads_of(const frit_exec *exec, const frit_node *attend)
{
    return exec->cache->layers[attend->attend.layer].spec.n_head_kv;
}

static const frit_node *sinks_of(const frit_node *attend)
{
    return attend->n_src > 2 ? attend->src[2] : NULL;
}

bool frit_cuda_can_attend(const frit_exec *exec, const frit_node *attend)
{
    const frit_attend *a = &attend->attend;
    const int size = head_size_of(attend), n_heads = (int)attend->src[0]->shape[1];
    return !a->chunk && a->alibi == 0 && !a->bidirectional && !a->cross && !a->reach && !a->ends_at &&
           a->temp_scale == 0 && size % 32 == 0 && size <= 256 && frit_cuda_width(attend) == size &&
           n_heads % n_kv_heads_of(exec, attend) == 0;
}

static const frit_cuda_attend_variant *variant_for(const frit_cuda_attend_fast *a, int32_t n_rows)
{
    int i = 0;
    while (i + 1 < a->n_variants && a->variants[i].rows < n_rows) i++;
    return &a->variants[i];
}

// Scores are exponents of 2, so the cap is multiplied by log2(e).
static float softcap_of(const frit_cuda_launch *l)
{
    return l->node->attend.softcap * 1.4426950408889634f;
}

// Rows of a slab of the result, if it is a gemm's input.
static int slab_rows_of(const frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    return frit_cuda_slab_rows(d, frit_cuda_row_elems(l->node), step->batch->n_rows);
}

static frit_status run_rows(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const float softcap = softcap_of(l);
    const frit_attend_rows_args args = {.q = frit_cuda_resolve(step, l->x[0]),
                                        .tiles = step->arrays[FRIT_CUDA_ROW_TILES],
                                        .pages = frit_cuda_pages_of(l, step),
                                        .keys = l->attend_fast.keys,
                                        .values = l->attend_fast.values,
                                        .sinks = frit_cuda_resolve(step, l->x[3]),
                                        .out = frit_cuda_resolve(step, l->y),
                                        .softcap = softcap,
                                        .inverse_softcap = softcap != 0 ? 1 / softcap : 0,
                                        .page_stride = step->page_stride,
                                        .slab_rows = slab_rows_of(d, l, step)};
    frit_cuda_kernel one = *l->attend_fast.rows;
    one.grid[0] = (unsigned)step->n_row_tiles;
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

// The pages that the rows of a tile share.
static frit_status run_shared(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const float softcap = softcap_of(l);
    const frit_attend_rows_args args = {.q = frit_cuda_resolve(step, l->x[0]),
                                        .tiles = step->arrays[FRIT_CUDA_SHARED_TILES],
                                        .pages = frit_cuda_pages_of(l, step),
                                        .keys = l->attend_fast.keys,
                                        .values = l->attend_fast.values,
                                        .partial = step->work,
                                        .softcap = softcap,
                                        .inverse_softcap = softcap != 0 ? 1 / softcap : 0,
                                        .page_stride = step->page_stride};
    frit_cuda_kernel one = *l->attend_fast.shared;
    one.grid[0] = (unsigned)(step->n_shared_tiles * FRIT_CUDA_SHARED_PARTS);
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

static uint64_t row_bytes_of(const frit_node *node, size_t number_bytes)
{
    return (uint64_t)node->shape[1] * (uint64_t)node->shape[2] * number_bytes;
}

// Rows [first, first + n_rows) of the step, row by row.
static frit_status run_single_rows(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step,
                                   int32_t first, int32_t n_rows)
{
    const frit_cuda_attend_fast *a = &l->attend_fast;
    const frit_cuda_attend_variant *v = variant_for(a, n_rows);
    const uint64_t r = (uint64_t)first, q_bytes = row_bytes_of(l->node->src[0], sizeof(uint16_t)),
                   out_bytes = row_bytes_of(l->node->src[0], sizeof(float));   // parts of a step are f32
    const float softcap = softcap_of(l);
    const bool is_shared = a->beside && step->n_shared_tiles > 0;
    const frit_attend_args args = {.q = frit_cuda_resolve(step, l->x[0]) + r * q_bytes,
                                   .positions = step->arrays[FRIT_CUDA_POSITIONS] + r * sizeof(int32_t),
                                   .seq_of = step->arrays[FRIT_CUDA_SEQ_OF] + r * sizeof(int32_t),
                                   .pages = frit_cuda_pages_of(l, step),
                                   .keys = a->keys,
                                   .values = a->values,
                                   .sinks = frit_cuda_resolve(step, l->x[3]),
                                   .softcap = softcap,
                                   .inverse_softcap = softcap != 0 ? 1 / softcap : 0,
                                   .partial = is_shared ? step->work : frit_cuda_resolve(step, l->x[1]),
                                   .n_shared = is_shared ? step->arrays[FRIT_CUDA_SHARED_PAGES] : 0,
                                   .arrived = frit_cuda_resolve(step, l->x[is_shared ? 4 : 2]),
                                   .out = frit_cuda_resolve(step, l->y) + r * out_bytes,
                                   .page_stride = step->page_stride,
                                   .slab_rows = slab_rows_of(d, l, step)};
    const bool is_far = v->far && (!v->kernel || step->page_stride >= v->far_from);
    frit_cuda_kernel kernel = is_shared ? *a->beside : is_far ? *v->far : *v->kernel;
    kernel.grid[1] = (unsigned)n_rows;
    return frit_cuda_kernel_launch(&d->gpu, &kernel, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

static frit_status run_attend(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const int32_t n_rows = l->attend_fast.rows ? step->n_single_rows : step->batch->n_rows;
    const int32_t most = l->attend_fast.most_rows ? l->attend_fast.most_rows : n_rows;
    if (n_rows < step->batch->n_rows) FRIT_TRY(run_rows(d, l, step));
    if (l->attend_fast.shared && step->n_shared_tiles > 0) FRIT_TRY(run_shared(d, l, step));
    for (int32_t i = 0; i < n_rows; i += most)
        FRIT_TRY(run_single_rows(d, l, step, i, n_rows - i < most ? n_rows - i : most));
    return FRIT_OK;
}

// Codes are read word by word, which is slow from global memory: pages are always copied to shared memory.
static bool is_always_far(const frit_cuda_attend *attend)
{
    return attend->stages && frit_cuda_has_codes(&attend->heads);
}

static frit_status add_variant(frit_exec *exec, const frit_cuda_attend *attend, frit_cuda_attend_variant *v)
{
    enum { FULL_FROM = 16, FULL_WARPS = 4 };   // twice as many blocks of threads fit
    frit_cuda_attend far = *attend;
    frit_cuda_kernel kernel;
    far.stages = frit_cuda_attend_stages(&attend->heads, &exec->device->gpu);
    if (far.stages) {
        FRIT_TRY(frit_cuda_attend_kernel(&far, v->n_far_splits, 0, &kernel));
        FRIT_TRY(frit_cuda_kernel_get(exec->device, &kernel, &v->far));
    }
    if (is_always_far(&far)) return FRIT_OK;
    FRIT_TRY(frit_cuda_attend_kernel(attend, v->n_splits, v->rows < FULL_FROM ? 0 : FULL_WARPS, &kernel));
    return frit_cuda_kernel_get(exec->device, &kernel, &v->kernel);
}

static int at_least_one(int n)
{
    return n < 1 ? 1 : n;
}

static frit_status alloc_parts(frit_exec *exec, uint64_t part_bytes, uint64_t n_arrived, frit_cuda_launch *l)
{
    l->x[1].where = l->x[2].where = FRIT_CUDA_FIXED;
    FRIT_TRY(frit_cuda_plan_alloc(exec, part_bytes, false, &l->x[1].at));
    return frit_cuda_plan_alloc(exec, n_arrived * sizeof(uint32_t), true, &l->x[2].at);
}

// Bytes of the parts of n_rows rows.
static uint64_t bytes_of_parts(const frit_cuda_heads *heads, int64_t n_rows, int n_parts)
{
    return (uint64_t)n_rows * (uint64_t)frit_cuda_query_tiles(heads) * (uint64_t)n_parts *
           (uint64_t)frit_cuda_tile_queries(heads) * (uint64_t)(heads->head_size + 2) * sizeof(float);
}

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

// Adds the only kernel of a deterministic device. It copies no pages ahead, unless all kernels do. Its parts lie in the
// work memory, where no product's results are between two launches.
static frit_status add_only_variant(frit_exec *exec, const frit_cuda_attend *attend, int64_t max_rows,
                                    frit_cuda_launch *l)
{
    frit_cuda_attend_fast *a = &l->attend_fast;
    const int64_t n_rows = at_most(max_rows, FRIT_CUDA_ATTEND_ONLY_ROWS);
    const uint64_t n_bytes = bytes_of_parts(&attend->heads, n_rows, FRIT_CUDA_ATTEND_ONLY_PARTS);
    a->n_variants = 1;
    a->most_rows = FRIT_CUDA_ATTEND_ONLY_ROWS;
    a->variants[0] = (frit_cuda_attend_variant){.rows = FRIT_CUDA_ATTEND_ONLY_ROWS,
                                                .n_splits = FRIT_CUDA_ATTEND_ONLY_PARTS,
                                                .n_far_splits = FRIT_CUDA_ATTEND_ONLY_PARTS};
    FRIT_TRY(add_variant(exec, attend, &a->variants[0]));
    if (a->variants[0].kernel) a->variants[0].far = NULL;
    if (n_bytes > exec->work_bytes) exec->work_bytes = n_bytes;
    FRIT_TRY(alloc_parts(exec, 0, (uint64_t)n_rows * (uint64_t)frit_cuda_query_tiles(&attend->heads), l));
    l->x[1] = (frit_cuda_address){FRIT_CUDA_WORK, 0};
    return FRIT_OK;
}

// Adds kernels for 1, 2, 4 .. rows, with as many parts as run at the same time: two blocks on a multiprocessor, or one
// block that copies pages ahead. Allocates memory for their partial results.
static frit_status add_variants(frit_exec *exec, const frit_cuda_attend *attend, int64_t max_rows, frit_cuda_launch *l)
{
    const frit_cuda_heads *heads = &attend->heads;
    const frit_cuda_gpu *gpu = &exec->device->gpu;
    const int n_tiles = frit_cuda_query_tiles(heads), n_queries = frit_cuda_tile_queries(heads);
    frit_cuda_attend_fast *a = &l->attend_fast;
    const int n_blocks = gpu->n_multiprocessors * (heads->head_size > 128 ? 1 : 2);
    const uint64_t part_bytes = (uint64_t)(n_tiles * n_queries * (heads->head_size + 2)) * sizeof(float);
    uint64_t n_bytes = 0, n_arrived = 0;
    for (int rows = 1; a->n_variants < FRIT_CUDA_ATTEND_VARIANTS; rows *= 2) {
        frit_cuda_attend_variant *v = &a->variants[a->n_variants++];
        const bool is_last = a->n_variants == FRIT_CUDA_ATTEND_VARIANTS;
        *v = (frit_cuda_attend_variant){.rows = rows,
                                        .n_splits = is_last ? 1 : at_least_one(n_blocks / (n_tiles * rows)),
                                        .n_far_splits =
                                            at_least_one(is_last ? 1 : gpu->n_multiprocessors / (n_tiles * rows)),
                                        .far_from = is_last ? FAR_FROM_OF_MANY_ROWS : FAR_FROM};
        FRIT_TRY(add_variant(exec, attend, v));
        const uint64_t own = (uint64_t)rows * (uint64_t)v->n_splits * part_bytes;
        if (v->n_splits > 1 && own > n_bytes) n_bytes = own;
        if (v->n_splits > 1) n_arrived = (uint64_t)(rows * n_tiles);
        if (rows >= max_rows) break;
    }
    return alloc_parts(exec, n_bytes, n_arrived, l);
}

static frit_status take_rows(frit_exec *exec, const frit_cuda_attend *attend, frit_cuda_launch *l)
{
    frit_cuda_kernel kernel;
    FRIT_TRY(frit_cuda_attend_rows_kernel(attend, &exec->device->gpu, &kernel));
    return frit_cuda_kernel_get(exec->device, &kernel, &l->attend_fast.rows);
}

uint64_t frit_cuda_attend_work(const frit_exec *exec, const frit_cuda_heads *heads, int window, int64_t n_rows)
{
    if (exec->device->is_deterministic)
        return bytes_of_parts(heads, at_most(n_rows, FRIT_CUDA_ATTEND_ONLY_ROWS), FRIT_CUDA_ATTEND_ONLY_PARTS);
    if (window || n_rows < FRIT_CUDA_ATTEND_ROWS_FROM) return 0;
    return bytes_of_parts(heads, at_most(n_rows, FRIT_CUDA_SHARED_MOST_ROWS), FRIT_CUDA_SHARED_PARTS + 1);
}

// Adds the kernels for pages that sequences share. The parts lie in the work memory, where no product's results are
// between the two launches. Layers with windows have none: their first pages are not seen by late rows.
static frit_status take_shared(frit_exec *exec, const frit_cuda_attend *attend, int64_t n_rows, frit_cuda_launch *l)
{
    enum { WARPS = 4 };
    const frit_cuda_heads *heads = &attend->heads;
    const uint64_t n_bytes = frit_cuda_attend_work(exec, heads, attend->window, n_rows);
    frit_cuda_attend shared = *attend;
    frit_cuda_kernel rows, beside;
    if (attend->window || (exec->shared_group >= 0 && exec->shared_group != l->group)) return FRIT_OK;
    shared.shared_parts = FRIT_CUDA_SHARED_PARTS;
    shared.own_parts = 1;
    FRIT_TRY(frit_cuda_attend_rows_kernel(&shared, &exec->device->gpu, &rows));
    shared.stages = frit_cuda_attend_stages(heads, &exec->device->gpu);
    if (!is_always_far(&shared)) shared.stages = 0;
    FRIT_TRY(frit_cuda_attend_kernel(&shared, shared.own_parts, shared.stages ? 0 : WARPS, &beside));
    FRIT_TRY(frit_cuda_kernel_get(exec->device, &rows, &l->attend_fast.shared));
    FRIT_TRY(frit_cuda_kernel_get(exec->device, &beside, &l->attend_fast.beside));
    if (n_bytes > exec->work_bytes) exec->work_bytes = n_bytes;
    exec->shared_group = l->group;
    l->x[4].where = FRIT_CUDA_FIXED;
    const uint64_t n_arrived =
        (uint64_t)at_most(n_rows, FRIT_CUDA_SHARED_MOST_ROWS) * (uint64_t)frit_cuda_query_tiles(heads);
    return frit_cuda_plan_alloc(exec, n_arrived * sizeof(uint32_t), true, &l->x[4].at);
}

frit_status frit_cuda_lower_attend(frit_exec *exec, const frit_node *node)
{
    const frit_cache_layer *layer = &exec->cache->layers[node->attend.layer];
    const uint64_t base = ((const frit_cuda_memory *)exec->cache->memory)->address;
    const bool feeds = exec->is_f16_input[node->id] = frit_cuda_feeds_gemm(exec, node);
    const frit_cuda_attend attend = {.heads = {.n_heads = (int)node->src[0]->shape[1],
                                               .n_kv_heads = layer->spec.n_head_kv,
                                               .head_size = head_size_of(node),
                                               .page_bytes = (int64_t)layer->k.page_bytes,
                                               .keys = frit_cuda_cache_kind(layer->k.dtype),
                                               .values = frit_cuda_cache_kind(layer->v.dtype)},
                                     .window = node->attend.window,
                                     .has_softcap = node->attend.softcap != 0,
                                     .has_sinks = sinks_of(node),
                                     .out = feeds ? FRIT_CUDA_F16 : FRIT_CUDA_F32};
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    FRIT_TRY(frit_cuda_address_of(exec, node->src[0], false, &l->x[0]));
    FRIT_TRY(frit_cuda_address_of(exec, node, false, &l->y));
    l->run = run_attend;
    l->group = layer->group;
    l->attend_fast = (frit_cuda_attend_fast){.keys = base + layer->k.offset, .values = base + layer->v.offset};
    if (sinks_of(node)) FRIT_TRY(frit_cuda_address_of(exec, sinks_of(node), false, &l->x[3]));
    if (exec->device->is_deterministic) return add_only_variant(exec, &attend, node->shape[0], l);
    FRIT_TRY(add_variants(exec, &attend, node->shape[0], l));
    if (node->shape[0] < FRIT_CUDA_ATTEND_ROWS_FROM) return FRIT_OK;
    FRIT_TRY(take_rows(exec, &attend, l));
    return take_shared(exec, &attend, node->shape[0], l);
}
