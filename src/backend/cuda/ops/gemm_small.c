// SPDX-License-Identifier: MIT
// Choosing tiles, warps and splits by estimate; defines and launch shape of kernels/gemm_small.cu.
#include "backend/cuda/ops/gemm_small.h"
#include "backend/cuda/ops/gemm_tiles.h"
#include "backend/cuda/weights/repack.h"

enum { X_STRIDE = 544, MOST_WARPS = 16, MOST_TILES = 2, MOST_SPLITS = 8, MOST_BLOCKS = 2 };

// A static_assert of the kernels compares the result with what they lay out.
int frit_cuda_gemm_small_shared(int n_rows, int n_tiles, int tile_bytes, int stages)
{
    return stages * (n_rows * X_STRIDE + n_tiles * tile_bytes);
}

static int shared_bytes(const frit_cuda_gemm_small *s, int tiles, int warps)
{
    return frit_cuda_gemm_small_shared(s->rows, warps * tiles, frit_cuda_gemm_tile_bytes(s->segments),
                                       s->stages ? s->stages : 2);
}

static int blocks_per_multiprocessor(const frit_cuda_gemm_small *s, const frit_cuda_gpu *gpu, int tiles, int warps)
{
    enum { REGISTERS = 65536, LEAST = 56, THREADS = 2048 };
    const int n_registers = LEAST * tiles + s->rows * tiles / 2 + 8;   // of a thread, about
    const int by_registers = REGISTERS / (n_registers * warps * 32), by_threads = THREADS / (warps * 32);
    int n = gpu->shared_bytes / shared_bytes(s, tiles, warps);
    if (n > by_registers) n = by_registers;
    return n < by_threads ? n : by_threads;
}

static int at_least_one(int n)
{
    return n < 1 ? 1 : n;
}

// Estimated clocks of the product: the largest of the time to fetch a multiprocessor's bytes, to issue its instructions
// and to run its tensor core products, longer with few warps; plus the start of a block and the traffic of partial
// results.
static double cost_of(const frit_cuda_gemm_small *s, const frit_cuda_gpu *gpu, int tiles, int warps, int splits)
{
    const double bytes_a_clock = 24, start = 1500, enough_warps = 12, least_warps = 8;
    const int n_blocks = (s->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS,
              n_groups = frit_cuda_gemm_groups(s->segments, tiles * warps);
    const int each = (n_blocks + splits - 1) / splits, n_all = n_groups * splits;
    const int n_fit = at_least_one(blocks_per_multiprocessor(s, gpu, tiles, warps)),
              n_needed = (n_all + gpu->n_multiprocessors - 1) / gpu->n_multiprocessors,
              n_at_once = n_needed < n_fit ? n_needed : n_fit, n_waves = (n_needed + n_at_once - 1) / n_at_once;
    const double n_mma = 2.0 * s->rows * tiles,
                 bytes = s->rows * 512 + warps * tiles * frit_cuda_gemm_tile_bytes(s->segments);
    double clocks = bytes / bytes_a_clock;
    const double issue = (300.0 * tiles + n_mma + 2.0 * s->rows + 100) * warps / 4, products = n_mma * warps * 2;
    if (clocks < issue) clocks = issue;
    if (clocks < products) clocks = products;
    if (n_at_once * warps < enough_warps) clocks *= n_at_once * warps < least_warps ? 1.5 : 1.2;
    const double gates = s->is_gated && splits > 1 ? 6000 : 0;   // clocks of the kernel that then computes gates
    const double results = 8.0 * splits * s->rows * n_groups * tiles * warps * FRIT_TILE_ROWS;
    return gates + n_waves * (start + n_at_once * each * clocks) + results / (bytes_a_clock * gpu->n_multiprocessors);
}

// Numbers of warps that give all schedulers about as many warps. Others were slower in all measurements.
static bool is_tried(int warps)
{
    return warps % 4 == 0 || warps < 4 || warps == 14;
}

int frit_cuda_gemm_small_candidates(const frit_cuda_gemm_small *wanted, const frit_cuda_gpu *gpu,
                                    frit_cuda_gemm_small *out, int most)
{
    enum { MOST = 8 };
    const frit_cuda_gemm_small *s = wanted;
    const int n_blocks = (s->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS, most_splits = at_least_one(n_blocks / 2);
    double costs[MOST];
    frit_cuda_cheapest list = {
        .items = out, .costs = costs, .item_bytes = sizeof *out, .most = most < MOST ? most : MOST};
    for (int tiles = 1; tiles <= MOST_TILES; tiles++)
        for (int warps = 1; warps <= MOST_WARPS; warps++)
            for (int splits = 1; splits <= MOST_SPLITS && splits <= most_splits && is_tried(warps); splits++) {
                const int n_more = splits > 1 ? frit_cuda_gemm_groups(s->segments, tiles * warps) * splits : 0;
                if ((s->tiles && s->tiles != tiles) || (s->warps && s->warps != warps) ||
                    (s->splits && s->splits != splits) || blocks_per_multiprocessor(s, gpu, tiles, warps) < 1 ||
                    (!s->splits && n_more > MOST_BLOCKS * gpu->n_multiprocessors))
                    continue;
                frit_cuda_gemm_small one = *s;
                one.tiles = tiles, one.warps = warps, one.splits = splits;
                frit_cuda_cheapest_add(&list, &one, cost_of(s, gpu, tiles, warps, splits));
            }
    return list.n;
}

// Finds the candidates with the least estimated cost.
static void choose(frit_cuda_gemm_small *s, const frit_cuda_gpu *gpu)
{
    frit_cuda_gemm_small best;
    if (frit_cuda_gemm_small_candidates(s, gpu, &best, 1) > 0) *s = best;
    s->tiles = at_least_one(s->tiles);
    s->warps = at_least_one(s->warps);
    s->splits = at_least_one(s->splits);
}

const double frit_cuda_gates_ns = 4000;

double frit_cuda_gemm_small_after_ns(const frit_cuda_gemm_small *s, bool wants_gates, const frit_cuda_gpu *gpu)
{
    const double bytes_a_nanosecond = 24 * 1.7 * gpu->n_multiprocessors;
    const double n = (double)(s->segments[0].n_tiles + s->segments[1].n_tiles) * FRIT_TILE_ROWS;
    return (s->splits - 1) * 4.0 * s->rows * n / bytes_a_nanosecond +
           (wants_gates && s->splits > 1 ? frit_cuda_gates_ns : 0);
}

// Splits are used only while groups * splits blocks run at the same time.
uint64_t frit_cuda_gemm_small_bytes(const frit_cuda_gpu *gpu, uint64_t n, uint64_t n_rows)
{
    const uint64_t most = (uint64_t)gpu->n_multiprocessors * MOST_BLOCKS * MOST_TILES * MOST_WARPS * FRIT_TILE_ROWS;
    const uint64_t in_parts = n * MOST_SPLITS < most ? n * MOST_SPLITS : most;
    const uint64_t rows = n_rows < FRIT_CUDA_GEMM_SMALL_ROWS ? n_rows : FRIT_CUDA_GEMM_SMALL_ROWS;
    return rows * (n > in_parts ? n : in_parts) * sizeof(float);
}

static frit_status check(const frit_cuda_gemm_small *s)
{
    if (s->rows < 8 || s->rows > FRIT_CUDA_GEMM_SMALL_ROWS || s->rows % 8)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product has %d rows; expected a multiple of 8 up to %d", s->rows,
                         (int)FRIT_CUDA_GEMM_SMALL_ROWS);
    return frit_cuda_gemm_check(s->k, s->segments);
}

// Three stages if shared memory and the number of columns allow.
static int stages_of(const frit_cuda_gemm_small *s, const frit_cuda_gpu *gpu)
{
    const int n_blocks = (s->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS / s->splits;
    const int n_shared =
        frit_cuda_gemm_small_shared(s->rows, s->warps * s->tiles, frit_cuda_gemm_tile_bytes(s->segments), 3);
    return n_blocks > 2 && n_shared <= gpu->shared_bytes ? 3 : 2;
}

frit_status frit_cuda_gemm_small_kernel(frit_cuda_gemm_small *s, const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel)
{
    FRIT_TRY(check(s));
    choose(s, gpu);
    s->is_gated = s->is_gated && s->splits == 1 && s->segments[1].n_tiles == 0;
    if (!s->stages) s->stages = stages_of(s, gpu);
    const int n_shared = shared_bytes(s, s->tiles, s->warps);
    if (n_shared > gpu->shared_bytes)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product of %d rows needs %d bytes of shared memory; %s has %d", s->rows,
                         n_shared, gpu->name, gpu->shared_bytes);
    *kernel = (frit_cuda_kernel){
        .file = "gemm_small.cu",
        .name = "gemm_small",
        .grid = {(unsigned)frit_cuda_gemm_groups(s->segments, s->tiles * s->warps), (unsigned)s->splits, 1},
        .threads = (unsigned)s->warps * 32,
        .shared_bytes = (unsigned)n_shared};
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
        {"SHARED_BYTES", n_shared},
        {"HALF_MATH", s->is_exact ? 0 : 2},
        {"GATED", s->is_gated},
    };
    for (size_t i = 0; i < FRIT_COUNT(defines); i++) frit_cuda_define(kernel, defines[i].name, defines[i].value);
    return FRIT_OK;
}
