// SPDX-License-Identifier: MIT
// From the description of a dense model to the one kernel of its decode steps.
#include "backend/cuda/decode.h"
#include "backend/cuda/weights/repack.h"
#include "backend/cuda/ops/rows.h"

enum { COLUMNS = FRIT_TILE_COLUMNS, MAX_ROWS = 8, MAX_STAGES = 12 };

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

static int blocks_of(int k)
{
    return (k + COLUMNS - 1) / COLUMNS;
}

static int tile_bytes_of(frit_dtype dtype)
{
    return frit_tile_format_of(dtype)->tile_bytes;
}

static int stage_bytes_of(const frit_cuda_decode *d)
{
    return max_int(tile_bytes_of(d->most), max_int(tile_bytes_of(d->more), tile_bytes_of(d->head)));
}

static int scratch_bytes_of(const frit_cuda_decode *d)
{
    return d->groups * d->warps * (d->heads.n_heads / d->heads.n_kv_heads) * (d->heads.head_size + 2) * 4;
}

static int max_k_of(const frit_cuda_decode *d)
{
    return max_int(max_int(d->dim, d->n_ff), d->heads.n_heads * d->heads.head_size);
}

static bool is_16_bits(frit_dtype dtype)
{
    return dtype == FRIT_DTYPE_F16 || dtype == FRIT_DTYPE_BF16 || dtype == FRIT_DTYPE_F32;
}

// As phase.cuh lays it out; decode.cu checks that it is enough.
static int shared_bytes(const frit_cuda_decode *d, int stages)
{
    const int blocks = blocks_of(max_k_of(d)), all_warps = d->groups * d->warps;
    const int x = 2 * d->rows * (blocks * (is_16_bits(d->most) ? 512 : 256) + 64) + d->rows * blocks * 80;
    const int partial = d->groups * 2 * d->warps * d->rows * 16 * 4, squares = all_warps * d->rows * 4 + 8;
    return all_warps * stages * (stage_bytes_of(d) + 8) + max_int(x, scratch_bytes_of(d) + 16) + partial + squares;
}

static frit_status check(const frit_cuda_decode *d, const frit_cuda_gpu *gpu)
{
    const frit_dtype types[] = {d->most, d->more, d->head, d->table};
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        if (!frit_tile_format_of(types[i]))
            return frit_fail(FRIT_E_UNSUPPORTED, "weights of type %s have no tiles for GPUs yet",
                             frit_dtype_get(types[i])->name);
        if (i < 3 && is_16_bits(types[i]) && types[i] != types[0])
            return frit_fail(FRIT_E_UNSUPPORTED,
                             "%s and %s weights in one decode kernel; expected f32, f16 or bf16 alone",
                             frit_dtype_get(types[0])->name, frit_dtype_get(types[i])->name);
    }
    if (gpu->arch < 90)
        return frit_fail(FRIT_E_UNSUPPORTED, "one kernel for a decode step: %s is sm_%d; expected sm_90 or newer",
                         gpu->name, gpu->arch);
    if (d->rows < 1 || d->rows > MAX_ROWS || d->n_layers > FRIT_GPU_MAX_LAYERS)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "one kernel for a decode step of %d rows and %d layers; expected at most %d and %d", d->rows,
                         d->n_layers, MAX_ROWS, (int)FRIT_GPU_MAX_LAYERS);
    return FRIT_OK;
}

static void define_all(const frit_cuda_decode *d, frit_cuda_kernel *kernel)
{
    const struct {
        const char *name;
        int64_t value;
    } defines[] = {
        {"ROWS", d->rows},
        {"GROUPS", d->groups},
        {"WARPS", d->warps},
        {"OPEN_STAGES", d->stages},
        {"STAGES", d->stages},
        {"GRID", kernel->grid[0]},
        {"COPY", 1},
        {"STAGE_BYTES", stage_bytes_of(d)},
        {"MAX_K", max_k_of(d)},
        {"IS_16_BITS", is_16_bits(d->most)},
        {"SCRATCH_BYTES", scratch_bytes_of(d)},
        {"SHARED_BYTES", kernel->shared_bytes},
        {"SPLITS", d->splits},
        {"ATTEND_WARPS", d->groups * d->warps},
        {"DIM", d->dim},
        {"FF", d->n_ff},
        {"VOCABULARY", d->n_vocab},
        {"LAYERS", d->n_layers},
        {"TOKEN_STRIDE", d->n_positions},
        {"TRACE", d->is_traced},
        {"TYPE_MOST", frit_dtype_get(d->most)->gguf_id},
        {"TYPE_MORE", frit_dtype_get(d->more)->gguf_id},
        {"TYPE_HEAD", frit_dtype_get(d->head)->gguf_id},
        {"TYPE_TABLE", frit_dtype_get(d->table)->gguf_id},
    };
    for (size_t i = 0; i < FRIT_COUNT(defines); i++) frit_cuda_define(kernel, defines[i].name, defines[i].value);
    frit_cuda_define_attend(kernel, &(frit_cuda_attend){.heads = d->heads});
}

frit_status frit_cuda_decode_kernel(frit_cuda_decode *d, const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel)
{
    FRIT_TRY(check(d, gpu));
    const int grid = gpu->n_multiprocessors;
    if (!d->groups) d->groups = is_16_bits(d->most) ? 1 : 2;
    if (!d->warps) d->warps = 8;
    if (!d->splits) d->splits = max_int(1, grid / (d->heads.n_kv_heads * d->rows));
    if (!d->stages)
        for (d->stages = 2; d->stages < MAX_STAGES && shared_bytes(d, d->stages + 1) <= gpu->shared_bytes - 16;)
            d->stages++;
    const int n_shared = shared_bytes(d, d->stages);
    if (n_shared > gpu->shared_bytes - 16)   // 16: a word outside
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "one kernel for a decode step of %d rows: %d bytes of shared memory; %s has %d", d->rows,
                         n_shared, gpu->name, gpu->shared_bytes);
    *kernel = (frit_cuda_kernel){.file = "decode.cu",
                                 .name = "decode",
                                 .grid = {(unsigned)grid, 1, 1},
                                 .threads = (unsigned)(d->groups * d->warps) * 32,
                                 .shared_bytes = (unsigned)n_shared};
    define_all(d, kernel);
    return FRIT_OK;
}

// `row`: the first row tile within its phase.
static void add(frit_decode_args *args, uint64_t weights, frit_dtype dtype, int row, int n_rows, int k)
{
    const uint64_t n_bytes = (uint64_t)tile_bytes_of(dtype);
    args->matrices[args->n_matrices++] =
        (frit_gpu_matrix){.weights = weights - (uint64_t)(row * blocks_of(k)) * n_bytes,
                          .end = row + n_rows / FRIT_TILE_ROWS,
                          .blocks = blocks_of(k),
                          .stride = blocks_of(k),
                          .bytes = (int)n_bytes,
                          .is_new = row == 0};
}

void frit_cuda_decode_matrices(const frit_cuda_decode *d, const frit_cuda_layer *layers, uint64_t head,
                               frit_decode_args *args)
{
    const int n_q = d->heads.n_heads * d->heads.head_size, n_kv = d->heads.n_kv_heads * d->heads.head_size;
    args->n_matrices = 0;
    for (int i = 0; i < d->n_layers; i++) {
        const frit_cuda_layer *l = &layers[i];
        const frit_dtype mixed = l->is_more ? d->more : d->most;
        add(args, l->qk, d->most, 0, n_q + n_kv, d->dim);
        add(args, l->v, mixed, (n_q + n_kv) / FRIT_TILE_ROWS, n_kv, d->dim);
        add(args, l->o, d->most, 0, d->dim, n_q);
        add(args, l->gate_up, d->most, 0, 2 * d->n_ff, d->dim);
        add(args, l->down, mixed, 0, d->dim, d->n_ff);
        args->layers[i].is_more = l->is_more;
    }
    add(args, head, d->head, 0, d->n_vocab, d->dim);
}
