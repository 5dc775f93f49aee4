// SPDX-License-Identifier: MIT
// Choosing blocks of rows, tiles, warps and splits by estimate; defines and launch shape of kernels/gemm_fp8.cu.
#include "backend/cuda/ops/gemm_fp8.h"
#include "backend/cuda/ops/gemm_tiles.h"
#include "backend/cuda/ops/gemm_wgmma.h"
#include "backend/cuda/weights/repack.h"

enum {
    X_STAGES = 4,
    COPY_WARPS = 4,
    BARRIER_BYTES = 1024,
    MOST_TILES = 2,
    MOST_SPLITS = 8,
    MOST_BLOCKS = 2,
    MOST_AT_ONCE = 2,
    REGISTERS = 65536,
};

static const int row_blocks[] = {32, 64, 96, 128, 192, 256};
static const int warp_counts[] = {4, 8, 12};

bool frit_cuda_gemm_is_fp8(const frit_cuda_gpu *gpu, int64_t k, const frit_cuda_segment segments[FRIT_GPU_SEGMENTS])
{
    const bool has_second = segments[1].n_tiles > 0;
    return frit_cuda_has_wgmma(gpu) && k % 128 == 0 && segments[0].dtype == FRIT_DTYPE_FP8_128 &&
           (!has_second || segments[1].dtype == FRIT_DTYPE_FP8_128);
}

// A static_assert of the kernel compares the result with what it lays out.
static int shared_bytes(const frit_cuda_gemm_fp8 *s)
{
    return BARRIER_BYTES + X_STAGES * s->rows * (128 + (int)sizeof(float)) +
           s->warps * s->stages * s->tiles * frit_cuda_gemm_tile_bytes(s->segments);
}

static int n_groups_of(const frit_cuda_gemm_fp8 *s)
{
    return frit_cuda_gemm_groups(s->segments, s->tiles * s->warps);
}

unsigned frit_cuda_gemm_fp8_blocks(const frit_cuda_gemm_fp8 *s, int64_t n_rows)
{
    return (unsigned)(n_groups_of(s) * ((n_rows + s->rows - 1) / s->rows));
}

// True if a thread has registers for the sums of its tiles, those of 128 columns, and about 48 more. Two tiles of more
// than 64 rows need too many of them.
static bool has_registers(const frit_cuda_gemm_fp8 *s)
{
    const int n_threads = (s->warps + COPY_WARPS) * 32, each = REGISTERS / s->at_once / n_threads / 8 * 8;
    const int more = (each - 24) * COPY_WARPS / s->warps / 8 * 8, has = each + more < 240 ? each + more : 240;
    const int part_rows = s->rows > 192 ? s->rows / 2 : s->rows;
    return (s->tiles == 1 || s->rows <= 64) && has >= (s->tiles * s->rows + part_rows) / 2 + 48;
}

static bool fits(const frit_cuda_gemm_fp8 *s, const frit_cuda_gpu *gpu)
{
    enum { RESERVED = 1024 };   // bytes of shared memory that the system takes for a block of threads
    return s->at_once * (shared_bytes(s) + RESERVED) <= gpu->shared_bytes + RESERVED && has_registers(s);
}

// Estimated clocks. A multiprocessor reads about `bytes_a_clock` from the L2, and less from memory, and its tensor
// cores multiply 64 x 32 numbers by a row in half a clock. One warpgroup alone leaves them idle while it adds its sums.
static double cost_of(const frit_cuda_gemm_fp8 *s, const frit_cuda_gpu *gpu)
{
    const double start = 3000, of_stage = 120, bytes_a_clock = 30, from_memory = 18, of_results = 40;
    const int n_blocks = (s->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS,
              each = (n_blocks + s->splits - 1) / s->splits, n_slots = gpu->n_multiprocessors * s->at_once;
    const int n_all = (int)frit_cuda_gemm_fp8_blocks(s, s->n_rows) * s->splits,
              n_waves = (n_all + n_slots - 1) / n_slots, group = s->tiles * s->warps;
    const double weights = (double)group * frit_cuda_gemm_tile_bytes(s->segments), x = 264.0 * s->rows;
    const double alone = s->warps * s->at_once < 8 ? 1.7 : 1.15;
    const double multiply = group / 4.0 * 4 * s->rows * alone, copy = (weights + x) / bytes_a_clock;
    const double busy = n_all < n_slots ? (double)n_all / n_slots * s->at_once : s->at_once;
    const double stage = of_stage + (multiply > copy ? multiply : copy) * (busy > 1 ? busy : 1);
    const double clocks = n_waves * (start + each * stage);
    const double least = weights * n_groups_of(s) * n_blocks / (from_memory * gpu->n_multiprocessors);
    const double gates = s->is_gated && s->splits > 1 ? 6000 : 0;   // clocks of the kernel that then computes gates
    const double results = 8.0 * s->splits * s->n_rows * n_groups_of(s) * group * FRIT_TILE_ROWS;
    return gates + (clocks > least ? clocks : least) + 0.1 * clocks + results / (of_results * gpu->n_multiprocessors);
}

static bool is_wanted(int wanted, int value)
{
    return wanted == 0 || wanted == value;
}

// Sets stages: up to four if shared memory allows, two at least. False: two do not fit either.
static bool set_stages(frit_cuda_gemm_fp8 *s, const frit_cuda_gpu *gpu)
{
    for (s->stages = 4; s->stages >= 2; s->stages--)
        if (fits(s, gpu)) return true;
    return false;
}

static void add_candidates(const frit_cuda_gemm_fp8 *wanted, const frit_cuda_gpu *gpu, int rows, int warps,
                           frit_cuda_cheapest *list)
{
    const int n_blocks = (wanted->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS;
    for (int tiles = 1; tiles <= MOST_TILES; tiles++)
        for (int splits = 1; splits <= MOST_SPLITS && splits <= n_blocks; splits++)
            for (int at_once = 1; at_once <= MOST_AT_ONCE; at_once++) {
                frit_cuda_gemm_fp8 one = *wanted;
                if (!is_wanted(one.tiles, tiles) || !is_wanted(one.splits, splits) || !is_wanted(one.at_once, at_once))
                    continue;
                one.rows = rows, one.warps = warps, one.tiles = tiles, one.splits = splits, one.at_once = at_once;
                const int64_t n_parts = (int64_t)frit_cuda_gemm_fp8_blocks(&one, one.n_rows) * splits;
                if ((splits > 1 && !wanted->splits && n_parts > MOST_BLOCKS * gpu->n_multiprocessors) ||
                    !set_stages(&one, gpu))
                    continue;
                frit_cuda_cheapest_add(list, &one, cost_of(&one, gpu));
            }
}

static bool choose(frit_cuda_gemm_fp8 *s, const frit_cuda_gpu *gpu)
{
    frit_cuda_gemm_fp8 best;
    double cost;
    frit_cuda_cheapest list = {.items = &best, .costs = &cost, .item_bytes = sizeof best, .most = 1};
    for (size_t r = 0; r < FRIT_COUNT(row_blocks); r++)
        for (size_t w = 0; w < FRIT_COUNT(warp_counts); w++)
            if (is_wanted(s->rows, row_blocks[r]) && is_wanted(s->warps, warp_counts[w]))
                add_candidates(s, gpu, row_blocks[r], warp_counts[w], &list);
    if (list.n > 0) *s = best;
    return list.n > 0;
}

frit_status frit_cuda_gemm_fp8_kernel(frit_cuda_gemm_fp8 *s, const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel)
{
    FRIT_TRY(frit_cuda_gemm_check(s->k, s->segments));
    if (!frit_cuda_gemm_is_fp8(gpu, s->k, s->segments))
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "a product in fp8 has %d columns of type %s on %s; expected a multiple of 128, fp8_128, sm_90",
                         s->k, frit_dtype_get(s->segments[0].dtype)->name, gpu->name);
    if (!choose(s, gpu))
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "a product in fp8 of %d rows and %d columns does not fit into the %d bytes of shared memory "
                         "of %s",
                         s->n_rows, s->k, gpu->shared_bytes, gpu->name);
    s->is_gated = s->is_gated && s->splits == 1 && s->segments[1].n_tiles == 0;
    *kernel = (frit_cuda_kernel){.file = "gemm_fp8.cu",
                                 .name = "gemm_fp8",
                                 .grid = {frit_cuda_gemm_fp8_blocks(s, s->n_rows), (unsigned)s->splits, 1},
                                 .threads = (unsigned)(s->warps + COPY_WARPS) * 32,
                                 .shared_bytes = (unsigned)shared_bytes(s)};
    frit_cuda_gemm_define(kernel, s->k, s->segments);
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
        {"GATED", s->is_gated},
    };
    for (size_t i = 0; i < FRIT_COUNT(defines); i++) frit_cuda_define(kernel, defines[i].name, defines[i].value);
    return FRIT_OK;
}
