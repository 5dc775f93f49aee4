// SPDX-License-Identifier: MIT
// Choosing groups, warps and stages; defines and launch shape of kernels/product.cu.
#include "backend/cuda/ops/product.h"
#include "backend/cuda/weights/repack.h"

enum { MAX_ROWS = 16 };

static int tile_bytes_of(const frit_cuda_segment *segment)
{
    const frit_tile_format *format = segment->n_tiles ? frit_tile_format_of(segment->dtype) : NULL;
    return format ? format->tile_bytes : 0;
}

static int stage_bytes_of(const frit_cuda_product *p)
{
    const int a = tile_bytes_of(&p->segments[0]), b = tile_bytes_of(&p->segments[1]);
    return a > b ? a : b;
}

bool frit_cuda_is_16_bits(frit_dtype dtype)
{
    return dtype == FRIT_DTYPE_F16 || dtype == FRIT_DTYPE_BF16 || dtype == FRIT_DTYPE_F32 ||
           dtype == FRIT_DTYPE_FP8_128;
}

// As phase.cuh lays it out. A static_assert of product.cu compares them.
static int shared_bytes(const frit_cuda_product *p, int parts, int groups, int warps, int stages)
{
    const int blocks = (p->k / parts + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS;
    const int block_bytes = frit_cuda_is_16_bits(p->segments[0].dtype) ? 512 : 256;
    const int x = 2 * p->rows * (blocks * block_bytes + 64), sums = p->rows * blocks * 80;
    const int partial = groups * 2 * warps * p->rows * 16 * 4, squares = groups * warps * p->rows * 4 + 8;
    return groups * warps * stages * (stage_bytes_of(p) + 8) + x + sums + partial + squares;
}

// Uses two groups if registers and shared memory allow, because the warps of a group wait for each other at the end of
// a row tile. Two stages keep memory busy. Only one of them is filled before the input is read: more copies in flight
// would delay the input, and the reads of the kernel before (docs/log/gpu.md).
static void choose(const frit_cuda_product *p, int parts, int limit, int *groups, int *warps, int *stages)
{
    const int least = *stages ? *stages : 2;
    const bool is_heavy = frit_cuda_is_16_bits(p->segments[0].dtype) || p->rows > 8;
    if (!*groups) *groups = !*warps && !is_heavy && shared_bytes(p, parts, 2, 8, least) <= limit ? 2 : 1;
    if (!*warps) *warps = shared_bytes(p, parts, *groups, 8, least) <= limit ? 8 : 4;
    if (*stages) return;
    *stages = 2;
    const int most = frit_cuda_is_16_bits(p->segments[0].dtype) ? 3 : 2;
    while (*stages < most && shared_bytes(p, parts, *groups, *warps, *stages + 1) <= limit) ++*stages;
}

static frit_status check_shape(const frit_cuda_product *p)
{
    if (p->rows < 1 || p->rows > MAX_ROWS)
        return frit_fail(FRIT_E_UNSUPPORTED, "a decode product has %d rows; expected 1 to %d", p->rows, MAX_ROWS);
    if (p->k < 32 || p->k % 32)
        return frit_fail(FRIT_E_UNSUPPORTED, "a decode product has %d columns; expected a multiple of 32", p->k);
    for (int i = 0; i < FRIT_GPU_SEGMENTS; i++) {
        const frit_cuda_segment *segment = &p->segments[i];
        if (segment->n_tiles && !frit_tile_format_of(segment->dtype))
            return frit_fail(FRIT_E_UNSUPPORTED, "weights of type %s have no tiles for GPUs yet",
                             frit_dtype_get(segment->dtype)->name);
    }
    const bool is_alone = frit_cuda_is_16_bits(p->segments[0].dtype) || frit_cuda_is_16_bits(p->segments[1].dtype);
    if (p->segments[1].n_tiles && is_alone && p->segments[0].dtype != p->segments[1].dtype)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "a decode product has %s and %s weights; expected f32, f16, bf16 or fp8_128 alone",
                         frit_dtype_get(p->segments[0].dtype)->name, frit_dtype_get(p->segments[1].dtype)->name);
    const frit_cuda_heads *h = &p->heads;
    if (p->epilogue == FRIT_GPU_QKV && (h->head_size % 16 || h->head_size < 16))
        return frit_fail(FRIT_E_UNSUPPORTED, "heads have %d dimensions; expected a multiple of 16", h->head_size);
    return FRIT_OK;
}

void frit_cuda_define_heads(frit_cuda_kernel *kernel, const frit_cuda_heads *heads)
{
    frit_cuda_define(kernel, "HEADS", heads->n_heads);
    frit_cuda_define(kernel, "KV_HEADS", heads->n_kv_heads);
    frit_cuda_define(kernel, "HEAD", heads->head_size);
    frit_cuda_define(kernel, "IS_NEOX", heads->is_neox);
    frit_cuda_define(kernel, "PAGE_BYTES", heads->page_bytes);
}

static int n_tiles_of(const frit_cuda_product *p)
{
    return p->segments[0].n_tiles + p->segments[1].n_tiles;
}

// True if blocks may divide the columns among them: the results must be plain sums.
static bool is_divisible(const frit_cuda_product *p)
{
    return !p->is_normed && p->epilogue <= FRIT_GPU_ADD && !p->segments[1].n_tiles && p->k % FRIT_TILE_COLUMNS == 0 &&
           p->segments[0].dtype != FRIT_DTYPE_F32 && (!p->n || p->n == n_tiles_of(p) * FRIT_TILE_ROWS);
}

// Number of parts of the columns. A block with a part converts less of the input and computes more row tiles, which
// pays for adding the parts if the input is long and has several rows.
static int parts_of(const frit_cuda_product *p, const frit_cuda_gpu *gpu)
{
    // LONG, LEAST_BLOCKS: blocks of 256 columns in all, in a part.
    enum { LEAST_ROWS = 5, LONG = 32, LEAST_BLOCKS = 8, MOST_PARTS = 4 };
    const int n_blocks = p->k / FRIT_TILE_COLUMNS;
    int best = 0;
    if (!is_divisible(p)) return 1;
    if (p->parts) return p->parts;
    for (int n = 1; n <= n_blocks; n++) {
        if (n_blocks % n || shared_bytes(p, n, 1, 8, 2) > gpu->shared_bytes) continue;
        const bool is_gain = p->rows >= LEAST_ROWS && n_blocks >= LONG && n_blocks / n >= LEAST_BLOCKS;
        if (best && (!is_gain || n > MOST_PARTS)) break;
        best = n;
    }
    return best ? best : 1;
}

uint64_t frit_cuda_product_partial_bytes(const frit_cuda_product *p, const frit_cuda_gpu *gpu)
{
    const int n = parts_of(p, gpu);
    return n > 1 ? (uint64_t)(n * p->rows) * (uint64_t)(n_tiles_of(p) * FRIT_TILE_ROWS) * sizeof(float) : 0;
}

static int grid_of(const frit_cuda_product *p, const frit_cuda_gpu *gpu, int parts)
{
    const int n_tiles = n_tiles_of(p), most = gpu->n_multiprocessors / parts;
    if (p->grid) return p->grid;
    return n_tiles < most ? n_tiles : most > 0 ? most : 1;
}

frit_status frit_cuda_product_kernel(const frit_cuda_product *p, const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel)
{
    FRIT_TRY(check_shape(p));
    const int limit = p->shared_limit ? p->shared_limit : gpu->shared_bytes, parts = parts_of(p, gpu);
    int groups = p->groups, warps = p->warps, stages = p->stages;
    choose(p, parts, limit, &groups, &warps, &stages);
    const int n_shared = shared_bytes(p, parts, groups, warps, stages), grid = grid_of(p, gpu, parts);
    if (n_shared > gpu->shared_bytes)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "a decode product of %d rows of %d columns needs %d bytes of shared memory; %s has %d",
                         p->rows, p->k, n_shared, gpu->name, gpu->shared_bytes);
    *kernel = (frit_cuda_kernel){.file = "product.cu",
                                 .name = "product",
                                 .grid = {(unsigned)grid, 1, (unsigned)parts},
                                 .threads = (unsigned)(groups * warps) * 32,
                                 .shared_bytes = (unsigned)n_shared};
    const struct {
        const char *name;
        int64_t value;
    } defines[] = {
        {"ROWS", p->rows},
        {"K", p->k / parts},
        {"MATRIX_ROWS", p->n ? p->n : n_tiles_of(p) * FRIT_TILE_ROWS},
        {"STRIDE", p->k},
        {"PARTS", parts},
        {"WARPS", warps},
        {"GROUPS", groups},
        {"STAGE_BYTES", stage_bytes_of(p)},
        {"IS_16_BITS", frit_cuda_is_16_bits(p->segments[0].dtype)},
        {"OPEN_STAGES", p->open_stages                               ? p->open_stages
                        : frit_cuda_is_16_bits(p->segments[0].dtype) ? stages
                                                                     : 1},
        {"STAGES", stages},
        {"GRID", grid},
        {"SHARED_BYTES", n_shared},
        {"COPY", gpu->arch >= 90 && !p->copies_by_thread},
        {"NORM", p->is_normed},
        {"EPILOGUE", (int)p->epilogue},
        {"TYPE0", frit_dtype_get(p->segments[0].dtype)->gguf_id},
        {"TILES0", p->segments[0].n_tiles},
        {"TYPE1", frit_dtype_get(p->segments[p->segments[1].n_tiles ? 1 : 0].dtype)->gguf_id},
        {"TILES1", p->segments[1].n_tiles},
    };
    for (size_t i = 0; i < FRIT_COUNT(defines); i++) frit_cuda_define(kernel, defines[i].name, defines[i].value);
    if (p->epilogue == FRIT_GPU_QKV) frit_cuda_define_heads(kernel, &p->heads);
    return FRIT_OK;
}
