// SPDX-License-Identifier: MIT
// Choosing blocks of rows, tiles, warps and splits by estimate; defines and launch shape of kernels/gemm_wgmma.cu.
#include "backend/cuda/ops/gemm_wgmma.h"
#include "backend/cuda/ops/gemm_tiles.h"
#include "backend/cuda/weights/repack.h"

enum {
    QUARTERS = 4,
    COPY_WARPS = 4,
    COPY_REGISTERS = 24,
    BARRIER_BYTES = 1024,
    MOST_TILES = 2,
    MOST_SPLITS = 8,
    MOST_BLOCKS = 2,
    REGISTERS = 65536
};

static const int row_blocks[] = {32, 64, 96, 128, 192, 256};
static const int warp_counts[] = {4, 8, 12};

bool frit_cuda_has_wgmma(const frit_cuda_gpu *gpu)
{
    return gpu->arch == 90;
}

bool frit_cuda_gemm_is_wgmma(const frit_cuda_gpu *gpu, int64_t k)
{
    return frit_cuda_has_wgmma(gpu) && k % 64 == 0;
}

// A static_assert of the kernel compares the result with what it lays out.
static int shared_bytes(const frit_cuda_gemm_wgmma *s)
{
    return BARRIER_BYTES + QUARTERS * s->rows * 128 +
           s->warps * s->stages * s->tiles * frit_cuda_gemm_tile_bytes(s->segments);
}

static int n_groups_of(const frit_cuda_gemm_wgmma *s)
{
    return frit_cuda_gemm_groups(s->segments, s->tiles * s->warps);
}

unsigned frit_cuda_gemm_wgmma_blocks(const frit_cuda_gemm_wgmma *s, int64_t n_rows)
{
    return (unsigned)(n_groups_of(s) * ((n_rows + s->rows - 1) / s->rows));
}

// Registers that a thread of the multiplying warps needs, about, and has.
static bool has_registers(const frit_cuda_gemm_wgmma *s)
{
    const int n_warps = s->warps + COPY_WARPS, each = REGISTERS / s->at_once / (n_warps * 32) / 8 * 8;
    return (each * n_warps - COPY_REGISTERS * COPY_WARPS) / s->warps >=
           s->tiles * s->rows / 2 + (s->tiles * s->rows >= 256 ? 80 : 88);
}

static bool fits(const frit_cuda_gemm_wgmma *s, const frit_cuda_gpu *gpu)
{
    enum { RESERVED = 1024 };   // bytes of shared memory that the system takes for a block of threads
    return s->at_once * (shared_bytes(s) + RESERVED) <= gpu->shared_bytes + RESERVED && has_registers(s);
}

// Estimated clocks, from measurements on an H200. A warpgroup takes a time for converting 64 columns of weights, which
// all rows share, and one for each row. Up to eight warps of a multiprocessor do not slow each other down. No copies of
// x were seen to take longer.
static double cost_of(const frit_cuda_gemm_wgmma *s, const frit_cuda_gpu *gpu)
{
    const double start = 4000, of_stage = 100, of_weights = 300, of_row = 3.4, bytes_a_clock = 40;
    const int n_blocks = (s->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS,
              each = (n_blocks + s->splits - 1) / s->splits, n_slots = gpu->n_multiprocessors * s->at_once;
    const int n_all = (int)frit_cuda_gemm_wgmma_blocks(s, s->n_rows) * s->splits,
              n_waves = (n_all + n_slots - 1) / n_slots;
    const double crowded = s->warps * s->at_once > 8 ? s->warps * s->at_once / 8.0 : 1;
    const double stage =
        (of_stage + s->tiles * (of_weights + of_row * s->rows)) * crowded * (s->at_once > 1 ? 0.97 : 1);
    const double clocks = 4.0 * each * stage;
    const double gates = s->is_gated && s->splits > 1 ? 6000 : 0;   // clocks of the kernel that then computes gates
    const double results = 8.0 * s->splits * s->n_rows * n_groups_of(s) * s->tiles * s->warps * FRIT_TILE_ROWS;
    return gates + n_waves * (start + clocks) + results / (bytes_a_clock * gpu->n_multiprocessors);
}

static bool is_wanted(int wanted, int value)
{
    return wanted == 0 || wanted == value;
}

// Sets stages: three if shared memory allows, otherwise two. False: two do not fit either.
static bool set_stages(frit_cuda_gemm_wgmma *s, const frit_cuda_gpu *gpu)
{
    for (s->stages = 3; s->stages >= 2; s->stages--)
        if (fits(s, gpu)) return true;
    return false;
}

int frit_cuda_gemm_wgmma_candidates(const frit_cuda_gemm_wgmma *wanted, const frit_cuda_gpu *gpu,
                                    frit_cuda_gemm_wgmma *out, int most)
{
    enum { MOST = 64 };
    const int n_blocks = (wanted->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS;
    double costs[MOST];
    frit_cuda_cheapest list = {
        .items = out, .costs = costs, .item_bytes = sizeof *out, .most = most < MOST ? most : MOST};
    for (size_t r = 0; r < FRIT_COUNT(row_blocks); r++)
        for (size_t w = 0; w < FRIT_COUNT(warp_counts); w++)
            for (int tiles = 1; tiles <= MOST_TILES; tiles++)
                for (int splits = 1; splits <= MOST_SPLITS && splits <= n_blocks; splits++)
                    for (int at_once = 1; at_once <= 3; at_once++) {
                        frit_cuda_gemm_wgmma one = *wanted;
                        if (!is_wanted(one.rows, row_blocks[r]) || !is_wanted(one.warps, warp_counts[w]) ||
                            !is_wanted(one.tiles, tiles) || !is_wanted(one.splits, splits) ||
                            !is_wanted(one.at_once, at_once))
                            continue;
                        one.rows = row_blocks[r], one.warps = warp_counts[w], one.tiles = tiles, one.splits = splits,
                        one.at_once = at_once;
                        const int64_t n_parts = (int64_t)frit_cuda_gemm_wgmma_blocks(&one, one.n_rows) * splits;
                        if ((splits > 1 && !wanted->splits && n_parts > MOST_BLOCKS * gpu->n_multiprocessors) ||
                            !set_stages(&one, gpu))
                            continue;
                        frit_cuda_cheapest_add(&list, &one, cost_of(&one, gpu));
                    }
    return list.n;
}

uint64_t frit_cuda_gemm_wgmma_bytes(const frit_cuda_gpu *gpu, uint64_t n, uint64_t n_rows)
{
    enum { MOST_NUMBERS = 256 * 12 * MOST_TILES * FRIT_TILE_ROWS };   // of a block of threads
    const uint64_t most = (uint64_t)gpu->n_multiprocessors * MOST_BLOCKS * MOST_NUMBERS,
                   in_parts = n_rows * n * MOST_SPLITS < most ? n_rows * n * MOST_SPLITS : most;
    return (n_rows * n > in_parts ? n_rows * n : in_parts) * sizeof(float);
}

frit_status frit_cuda_gemm_wgmma_kernel(frit_cuda_gemm_wgmma *s, const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel)
{
    enum { QUICK_ROWS = 64 };   // up to which converting the weights takes the longest
    frit_cuda_gemm_wgmma best;
    FRIT_TRY(frit_cuda_gemm_check(s->k, s->segments));
    if (!frit_cuda_has_wgmma(gpu))
        return frit_fail(FRIT_E_UNSUPPORTED, "%s has no products of warpgroups; expected sm_90", gpu->name);
    if (!frit_cuda_gemm_is_wgmma(gpu, s->k))
        return frit_fail(FRIT_E_UNSUPPORTED, "a product of warpgroups has %d columns; expected a multiple of 64", s->k);
    if (frit_cuda_gemm_wgmma_candidates(s, gpu, &best, 1) == 0)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "a product of %d rows and %d columns does not fit into the %d bytes of "
                         "shared memory of %s",
                         s->n_rows, s->k, gpu->shared_bytes, gpu->name);
    *s = best;
    s->is_gated = s->is_gated && s->splits == 1 && s->segments[1].n_tiles == 0;
    *kernel = (frit_cuda_kernel){.file = "gemm_wgmma.cu",
                                 .name = "gemm_wgmma",
                                 .grid = {frit_cuda_gemm_wgmma_blocks(s, s->n_rows), (unsigned)s->splits, 1},
                                 .threads = (unsigned)(s->warps + COPY_WARPS) * 32,
                                 .shared_bytes = (unsigned)shared_bytes(s)};
    frit_cuda_gemm_define(kernel, s->k, s->segments);
    const int half_math = s->is_exact ? 0 : s->n_rows > QUICK_ROWS ? 1 : 2;
    const struct {
        const char *name;
        int64_t value;
    } defines[] = {
        {"ROWS", s->rows},
        {"TILES", s->tiles},
        {"WARPS", s->warps},
        {"SPLITS", s->splits},
        {"STAGES", s->stages},
        {"AT_ONCE", s->at_once},
        {"SHARED_BYTES", shared_bytes(s)},
        {"HALF_MATH", half_math},
        {"GATED", s->is_gated},
    };
    for (size_t i = 0; i < FRIT_COUNT(defines); i++) frit_cuda_define(kernel, defines[i].name, defines[i].value);
    return FRIT_OK;
}
