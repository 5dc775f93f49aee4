// SPDX-License-Identifier: MIT
// Launches of kernels/plain_cache.cu.
#include "backend/cuda/ops/cache.h"
#include "backend/cuda/exec.h"

enum { MOST_DIM = 1024, MOST_SHARED = 48 << 10, WARPS = 4, THREADS = 32 * WARPS, CHOOSE_THREADS = 256 };

typedef struct cache_type {
    frit_dtype dtype;
    int kind;
} cache_type;

static const cache_type types[] = {
    {FRIT_DTYPE_F32, FRIT_GPU_CACHE_F32},   {FRIT_DTYPE_F16, FRIT_GPU_CACHE_F16},
    {FRIT_DTYPE_BF16, FRIT_GPU_CACHE_BF16}, {FRIT_DTYPE_FP8, FRIT_GPU_CACHE_F8},
    {FRIT_DTYPE_Q8_0, FRIT_GPU_CACHE_Q8_0}, {FRIT_DTYPE_Q4_0, FRIT_GPU_CACHE_Q4_0},
    {FRIT_DTYPE_Q4_1, FRIT_GPU_CACHE_Q4_1}, {FRIT_DTYPE_Q5_0, FRIT_GPU_CACHE_Q5_0},
    {FRIT_DTYPE_Q5_1, FRIT_GPU_CACHE_Q5_1}, {FRIT_DTYPE_IQ4_NL, FRIT_GPU_CACHE_IQ4_NL},
};

int frit_cuda_cache_kind(frit_dtype dtype)
{
    size_t i = 0;
    while (i < FRIT_COUNT(types) && types[i].dtype != dtype) i++;
    return i < FRIT_COUNT(types) ? types[i].kind : -1;
}

static frit_status fill_side(const frit_exec *exec, const frit_cache_side *side, frit_gpu_side *out)
{
    const int kind = frit_cuda_cache_kind(side->dtype);
    if (kind < 0)
        return frit_fail(FRIT_E_UNSUPPORTED, "the cache has type %s, which GPUs do not read",
                         frit_dtype_get(side->dtype)->name);
    *out = (frit_gpu_side){.pages = ((const frit_cuda_memory *)exec->cache->memory)->address + side->offset,
                           .page_bytes = (long long)side->page_bytes,
                           .dim = side->dim,
                           .kind = kind,
                           .is_transposed = side->transposed,
                           .row_bytes = (int)side->row_bytes,
                           .hadamard = side->hadamard};
    return FRIT_OK;
}

bool frit_cuda_cache_fits(const frit_node *node)
{
    const frit_node *first = node->src[0];
    if (node->op == FRIT_OP_CHOOSE)
        return node->choose.block <= 1 && frit_cuda_width(first) <= MOST_DIM &&
               first->shape[1] * frit_cuda_width(first) * (int64_t)sizeof(float) <= MOST_SHARED - 4096;
    for (int i = 0; i < node->n_src && node->op == FRIT_OP_KV_WRITE; i++)
        if (frit_cuda_width(node->src[i]) > MOST_DIM) return false;
    return frit_cuda_width(node) <= MOST_DIM && frit_cuda_width(first) <= MOST_DIM;
}

// ------------------------------------------------------------------------------- writing

static frit_status run_write(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    frit_cache_args args = l->cache;
    args.k = frit_cuda_resolve(step, l->x[0]);
    args.v = frit_cuda_resolve(step, l->x[1]);
    args.positions = step->arrays[FRIT_CUDA_POSITIONS];
    args.seq_of = step->arrays[FRIT_CUDA_SEQ_OF];
    args.pages = frit_cuda_pages_of(l, step);
    args.page_stride = step->page_stride;
    args.n_rows = step->batch->n_rows;
    const int64_t n = args.n_rows * args.n_heads * (args.v ? 2 : 1);
    return frit_cuda_run_kernel(d, l->kernel, (unsigned)((n + WARPS - 1) / WARPS), 1, &args);
}

frit_status frit_cuda_lower_cache_write(frit_exec *exec, const frit_node *node)
{
    const bool is_index = node->op == FRIT_OP_INDEX_WRITE;
    const frit_cache_layer *layer = &exec->cache->layers[node->layer];
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    for (int i = 0; i < node->n_src; i++) FRIT_TRY(frit_cuda_address_of(exec, node->src[i], false, &l->x[i]));
    l->run = run_write;
    l->group = layer->group;
    FRIT_TRY(fill_side(exec, is_index ? &layer->index : &layer->k, &l->cache.keys));
    if (!is_index) FRIT_TRY(fill_side(exec, &layer->v, &l->cache.values));
    l->cache.n_heads = is_index ? 1 : layer->spec.n_head_kv;
    return frit_cuda_kernel_get_named(exec, "plain_cache.cu", "plain_kv_write", THREADS, 0, &l->kernel);
}

// ------------------------------------------------------------------------------- attention

static frit_status run_attend(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    frit_attend_plain_args args = l->attend;
    const bool is_sparse = l->node->op == FRIT_OP_ATTEND_SPARSE;
    args.q = frit_cuda_resolve(step, l->x[0]);
    *(is_sparse             ? &args.chosen
      : args.reach > 0      ? &args.gains
      : args.ends_width > 0 ? &args.ends
                            : &args.sinks) = frit_cuda_resolve(step, l->x[2]);
    args.out = frit_cuda_resolve(step, l->y);
    args.positions = step->arrays[FRIT_CUDA_POSITIONS];
    args.seq_of = step->arrays[FRIT_CUDA_SEQ_OF];
    args.seqs = step->arrays[FRIT_CUDA_SEQS];
    args.pages = frit_cuda_pages_of(l, step);
    args.page_stride = step->page_stride;
    return frit_cuda_run_kernel(d, l->kernel, (unsigned)step->batch->n_rows, (unsigned)l->node->shape[1], &args);
}

frit_status frit_cuda_lower_cache_attend(frit_exec *exec, const frit_node *node)
{
    if (exec->is_f16[frit_node_storage(node->src[0])->id]) return frit_cuda_lower_attend(exec, node);
    frit_cuda_launch *l;
    const frit_attend *attend = &node->attend;
    const frit_cache_layer *layer = &exec->cache->layers[attend->layer];
    const int64_t k_dim = frit_cuda_width(node->src[0]), v_dim = frit_cuda_width(node);
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    for (int i = 0; i < node->n_src; i++) FRIT_TRY(frit_cuda_address_of(exec, node->src[i], false, &l->x[i]));
    FRIT_TRY(frit_cuda_address_of(exec, node, false, &l->y));
    l->run = run_attend;
    l->group = layer->group;
    frit_attend_plain_args *a = &l->attend;
    *a = (frit_attend_plain_args){.n_chosen = node->op == FRIT_OP_ATTEND_SPARSE ? (int)node->src[2]->shape[1] : 0,
                                  .n_kv_heads = layer->spec.n_head_kv,
                                  .window = attend->window,
                                  .chunk = attend->chunk,
                                  .reach = attend->reach,
                                  .ends_at = attend->ends_at,
                                  .ends_width = attend->ends_at > 0 ? (int)frit_cuda_width(node->src[2]) : 0,
                                  .is_bidirectional = attend->bidirectional,
                                  .is_cross = attend->cross,
                                  .scale = attend->scale,
                                  .softcap = attend->softcap,
                                  .alibi = attend->alibi,
                                  .temp_scale = attend->temp_scale,
                                  .temp_offset = attend->temp_offset,
                                  .temp_length = attend->temp_length};
    FRIT_TRY(fill_side(exec, &layer->k, &a->keys));
    FRIT_TRY(fill_side(exec, &layer->v, &a->values));
    return frit_cuda_kernel_get_named(exec, "plain_cache.cu", "plain_attend", 128,
                                      (unsigned)(k_dim > v_dim ? k_dim : v_dim) * 4, &l->kernel);
}

// ------------------------------------------------------------------------------- choosing

static frit_status run_choose(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    frit_choose_args args = l->choose;
    args.q = frit_cuda_resolve(step, l->x[0]);
    args.w = frit_cuda_resolve(step, l->x[1]);
    args.y = frit_cuda_resolve(step, l->y);
    args.positions = step->arrays[FRIT_CUDA_POSITIONS];
    args.seq_of = step->arrays[FRIT_CUDA_SEQ_OF];
    args.pages = frit_cuda_pages_of(l, step);
    args.page_stride = step->page_stride;
    return frit_cuda_run_kernel(d, l->kernel, (unsigned)step->batch->n_rows, 1, &args);
}

uint64_t frit_cuda_choose_bytes(const frit_node *node)
{
    return (uint64_t)node->shape[0] * (uint64_t)node->choose.n * (sizeof(float) + sizeof(int32_t));
}

frit_status frit_cuda_lower_choose(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    const frit_node *q = node->src[0];
    const frit_cache_layer *layer = &exec->cache->layers[node->choose.layer];
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    for (int i = 0; i < 2; i++) FRIT_TRY(frit_cuda_address_of(exec, node->src[i], false, &l->x[i]));
    FRIT_TRY(frit_cuda_address_of(exec, node, false, &l->y));
    l->run = run_choose;
    l->group = layer->group;
    l->choose = (frit_choose_args){.n_heads = (int)q->shape[1], .n = node->choose.n};
    FRIT_TRY(fill_side(exec, &layer->index, &l->choose.keys));
    uint64_t heaps;
    FRIT_TRY(frit_cuda_plan_alloc(exec, frit_cuda_choose_bytes(node), false, &heaps));
    l->choose.heaps = heaps;
    return frit_cuda_kernel_get_named(exec, "plain_cache.cu", "plain_choose", CHOOSE_THREADS,
                                      (unsigned)(q->shape[1] * q->shape[2]) * 4, &l->kernel);
}
