// SPDX-License-Identifier: MIT
// From the description of a product of 17 to 128 rows to the kernel that computes it.
#include "backend/cuda/some_rows.h"
#include "backend/cuda/repack.h"

enum { X_STRIDE = 544, MOST_WARPS = 8, MOST_TILES = 2, MOST_SPLITS = 8, MOST_BLOCKS = 2 };

static int tile_bytes_of(const frit_cuda_some *s)
{
    int most = 0;
    for (int i = 0; i < FRIT_GPU_SEGMENTS && s->segments[i].n_tiles; i++) {
        const int n = frit_tile_format_of(s->segments[i].dtype)->tile_bytes;
        if (n > most) most = n;
    }
    return most;
}

// The kernels check that it is enough.
int frit_cuda_some_shared(int n_rows, int n_tiles, int tile_bytes)
{
    return 2 * (n_rows * X_STRIDE + n_tiles * tile_bytes);
}

static int shared_bytes(const frit_cuda_some *s, int tiles, int warps)
{
    return frit_cuda_some_shared(s->rows, warps * tiles, tile_bytes_of(s));
}

static int n_groups_of(const frit_cuda_some *s, int tiles, int warps)
{
    const int group = tiles * warps;
    int n = 0;
    for (int i = 0; i < FRIT_GPU_SEGMENTS; i++) n += (s->segments[i].n_tiles + group - 1) / group;
    return n;
}

// Two tiles of a warp read rows from shared memory once, but up to 64 rows of results are what registers hold for
// them; and half as many blocks must be enough to keep most multiprocessors busy.
static void choose(frit_cuda_some *s, const frit_cuda_gpu *gpu)
{
    const bool has_room = s->rows <= 64 && shared_bytes(s, MOST_TILES, MOST_WARPS) <= gpu->shared_bytes;
    if (!s->tiles)
        s->tiles = has_room && n_groups_of(s, MOST_TILES, MOST_WARPS) * 2 > gpu->n_multiprocessors ? MOST_TILES : 1;
    if (!s->warps) {
        s->warps = MOST_WARPS;
        while (s->warps > 1 && shared_bytes(s, s->tiles, s->warps) > gpu->shared_bytes) s->warps /= 2;
    }
    if (s->splits) return;
    const int n_blocks = (s->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS;
    const int fit = shared_bytes(s, s->tiles, s->warps) * MOST_BLOCKS <= gpu->shared_bytes ? MOST_BLOCKS : 1;
    s->splits = gpu->n_multiprocessors * fit / n_groups_of(s, s->tiles, s->warps);
    if (s->splits > n_blocks / 2) s->splits = n_blocks / 2;
    if (s->splits > MOST_SPLITS) s->splits = MOST_SPLITS;
    if (s->splits < 1) s->splits = 1;
}

// There is more than one part only where so many times the groups are blocks that run at a time.
uint64_t frit_cuda_some_bytes(const frit_cuda_gpu *gpu, uint64_t n, uint64_t n_rows)
{
    const uint64_t most = (uint64_t)gpu->n_multiprocessors * MOST_BLOCKS * MOST_TILES * MOST_WARPS * FRIT_TILE_ROWS;
    const uint64_t in_parts = n * MOST_SPLITS < most ? n * MOST_SPLITS : most;
    const uint64_t rows = n_rows < FRIT_CUDA_SOME_ROWS ? n_rows : FRIT_CUDA_SOME_ROWS;
    return rows * (n > in_parts ? n : in_parts) * sizeof(float);
}

static frit_status check(const frit_cuda_some *s)
{
    if (s->rows < 8 || s->rows > FRIT_CUDA_SOME_ROWS || s->rows % 8)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product of %d rows; expected a multiple of 8 up to %d", s->rows,
                         (int)FRIT_CUDA_SOME_ROWS);
    if (s->k < 32 || s->k % 32)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product of %d columns; expected a multiple of 32", s->k);
    for (int i = 0; i < FRIT_GPU_SEGMENTS && s->segments[i].n_tiles; i++) {
        const frit_tile_format *format = frit_tile_format_of(s->segments[i].dtype);
        if (!format || format->low_bits > 16)
            return frit_fail(FRIT_E_UNSUPPORTED, "weights of type %s in a product of f16",
                             frit_dtype_get(s->segments[i].dtype)->name);
    }
    return FRIT_OK;
}

frit_status frit_cuda_some_kernel(frit_cuda_some *s, const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel)
{
    FRIT_TRY(check(s));
    choose(s, gpu);
    const int n_shared = shared_bytes(s, s->tiles, s->warps);
    if (n_shared > gpu->shared_bytes)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product of %d rows: %d bytes of shared memory; %s has %d", s->rows,
                         n_shared, gpu->name, gpu->shared_bytes);
    *kernel = (frit_cuda_kernel){.file = "some_rows.cu",
                                 .name = "some_rows",
                                 .grid = {(unsigned)n_groups_of(s, s->tiles, s->warps), (unsigned)s->splits, 1},
                                 .threads = (unsigned)s->warps * 32,
                                 .shared_bytes = (unsigned)n_shared};
    const frit_cuda_segment *second = &s->segments[s->segments[1].n_tiles ? 1 : 0];
    const struct {
        const char *name;
        int64_t value;
    } defines[] = {
        {"TYPE0", frit_dtype_get(s->segments[0].dtype)->gguf_id},
        {"TILES0", s->segments[0].n_tiles},
        {"TYPE1", frit_dtype_get(second->dtype)->gguf_id},
        {"TILES1", s->segments[1].n_tiles},
        {"K", s->k},
        {"ROWS", s->rows},
        {"TILES", s->tiles},
        {"WARPS", s->warps},
        {"SPLITS", s->splits},
        {"SHARED_BYTES", n_shared},
    };
    for (size_t i = 0; i < FRIT_COUNT(defines); i++) frit_cuda_define(kernel, defines[i].name, defines[i].value);
    return FRIT_OK;
}
